"""Exceptions that end a run from any depth below its loop."""

from __future__ import annotations

from nonsmooth.evaluate import Trial
from nonsmooth.result import Status


class EndOfRun(Exception):  # noqa: N818 (it is not an error)
    """Ends the run with a status; code at any depth below the loop may raise it."""

    def __init__(self, status: Status, *, at: Trial | None = None, exception: Exception | None = None) -> None:
        super().__init__(status.value)
        self.status, self.at, self.exception = status, at, exception


class CallbackFailed(Exception):  # noqa: N818 (the name states what happened)
    """The user's callback raised the exception in `original`."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original
