"""Errors a user can act on.

    NonsmoothError
    ├── ProblemError   the function, the start or what the function returned does not describe a problem
    ├── OptionError    an option is misspelt or has a value that makes no sense
    ├── StateError     a saved state cannot be read, or does not belong to this problem
    └── QPError        no solver for the quadratic subproblems is installed, or the one asked for is not

Each message names the offending value and says what to do about it. Errors raised by the user's own function are
never wrapped: at the start they are raised as they are, later they are kept in the result.
"""

from __future__ import annotations


class NonsmoothError(Exception):
    """Something the user can put right; the message says how."""


class ProblemError(NonsmoothError, ValueError):
    """The function, the start or what the function returned does not describe a problem."""


class OptionError(NonsmoothError, ValueError):
    """An option is misspelt or has a value that makes no sense."""


class StateError(NonsmoothError):
    """A saved state cannot be read, or does not belong to this problem."""


class QPError(NonsmoothError):
    """No solver for the quadratic subproblems is installed, or the one asked for is not."""
