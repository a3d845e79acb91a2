"""Exceptions that ended a compilation or the run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """An exception that ended a compilation, or one that the program did not handle.

    Torch wraps exceptions raised while it traces; `cause` is the innermost one, which names the actual problem.

    >>> Failure("TorchRuntimeError", "RuntimeError when making fake tensor call", "RuntimeError: sizes differ").summary
    'RuntimeError: sizes differ'
    >>> Failure("Unsupported", "Data-dependent branching\\n  Explanation: …").summary
    'Unsupported: Data-dependent branching'
    """

    error: str
    """The type of the exception."""
    message: str = ""
    cause: str = ""
    """Type and first line of the innermost exception, if the exception was raised from another one."""
    compilation: str | None = None
    """The compilation that it ended; None for an uncaught exception that ended the run."""
    stack: int | None = None
    """Index of the stack where it was raised."""

    @property
    def summary(self) -> str:
        """The problem in one line."""
        first = next((line.strip() for line in self.message.splitlines() if line.strip()), "")
        return self.cause or (f"{self.error}: {first}" if first else self.error)
