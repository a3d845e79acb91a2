"""Errors that you can act on.

    NonsmoothError
    ├── ProblemError   the function, x0 or a returned value does not describe a valid problem
    ├── OptionError    an option is unknown or has an invalid value
    ├── StateError     a saved state cannot be read, or belongs to another problem
    └── QPError        no solver for the quadratic subproblems is installed, or the requested one is not

Each message names the offending value and explains the fix. Errors raised by your own function are never wrapped: at the
start they propagate unchanged, and later the result stores them.
"""

from __future__ import annotations


class NonsmoothError(Exception):
    """An error that the user can fix; the message explains how."""


class ProblemError(NonsmoothError, ValueError):
    """The function, x0 or a returned value does not describe a valid problem."""


class OptionError(NonsmoothError, ValueError):
    """An option is unknown or has an invalid value."""


class StateError(NonsmoothError):
    """A saved state cannot be read, or belongs to another problem."""


class QPError(NonsmoothError):
    """No solver for the quadratic subproblems is installed, or the requested one is not."""
