"""Exceptions that ended a compilation, or the run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """An exception that ended a compilation, or one that the program did not handle.

    Torch wraps what goes wrong while it traces; `cause` is the innermost exception, which says what was wrong.

    >>> Failure("TorchRuntimeError", "RuntimeError when making fake tensor call", "RuntimeError: sizes differ").summary
    'RuntimeError: sizes differ'
    >>> Failure("Unsupported", "Data-dependent branching\\n  Explanation: …").summary
    'Unsupported: Data-dependent branching'
    """

    error: str
    """The type of what was raised."""
    message: str = ""
    cause: str = ""
    """Type and first line of the innermost exception, where another was raised from it."""
    compilation: str | None = None
    """Which compilation it ended; None for one that left the program."""
    stack: int | None = None
    """Where in the program that was."""

    @property
    def summary(self) -> str:
        """What went wrong, in one line."""
        first = next((line.strip() for line in self.message.splitlines() if line.strip()), "")
        return self.cause or (f"{self.error}: {first}" if first else self.error)
