"""Errors a user can act on.

    InspectError
    ├── TargetError    what was asked to be inspected cannot be found or called
    └── CaptureError   a capture file cannot be read or written

Each message says what was wrong, with the offending value, and what to do about it. The command line prints
the message alone and ends with status 2.
"""

from __future__ import annotations


class InspectError(Exception):
    """Something the user can put right; the message says how."""


class TargetError(InspectError):
    """The target to inspect cannot be found, built or called."""


class CaptureError(InspectError):
    """A capture file cannot be read or written."""
