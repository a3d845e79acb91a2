"""Errors that a user can fix.

    InspectError
    ├── TargetError    the target cannot be found, built or called
    └── CaptureError   a capture file cannot be read or written

Each message names the problem, the invalid value, and the solution. The command line prints only the message and exits with
status 2.
"""

from __future__ import annotations


class InspectError(Exception):
    """An error that the user can fix; the message explains how."""


class TargetError(InspectError):
    """The target cannot be found, built or called."""


class CaptureError(InspectError):
    """A capture file cannot be read or written."""
