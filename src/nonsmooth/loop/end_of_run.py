"""How a run is ended from anywhere below its loop."""

from __future__ import annotations

from nonsmooth.evaluate import Trial
from nonsmooth.result import Status


class EndOfRun(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The run has ended with a status; raised from anywhere below the loop."""

    def __init__(self, status: Status, *, at: Trial | None = None, exception: Exception | None = None) -> None:
        super().__init__(status.value)
        self.status, self.at, self.exception = status, at, exception


class CallbackFailed(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The user's callback raised the exception in `original`."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original
