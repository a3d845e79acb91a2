"""The face that every way of running a target has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.records.timing import MeasurementWarning
    from compile_inspect.variants.program import Program
    from compile_inspect.variants.task import Task


class Refused(InspectError):  # noqa: N818 (it reads as a statement of fact)
    """A variant cannot run a task; the message is the reason, in one line."""


@dataclass(frozen=True)
class Step:
    """What one run of a task gives: its result, and the gradients in the order of `Task.wanted()`."""

    result: Any
    gradients: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A variant that is ready to run.

    `run` takes the inputs of the task's function and gives a `Step`; `call` gives the result alone, with as little
    around it as possible, and is None where gradients are wanted and only come together with the result.
    """

    variant: Variant
    run: Callable[..., Step]
    call: Callable[..., Any] | None
    build_seconds: float
    flat: Callable[[list[Any]], list[Any]] | None = None
    """The compiled graph itself, from its inputs to its outputs and gradients, where there is one."""
    program: Program | None = None
    """How the lists that `flat` takes and gives relate to inputs and results."""
    package: str | None = None
    """Where the variant lies on disk, if it does."""
    eager_reason: MeasurementWarning | None = None
    """Why calls run in eager mode, in whole or in part, though the variant was built."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant(ABC):
    """One way of running a target."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How it is called on a command line and in a table, for example `inductor/max-autotune`."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What it takes for granted, each a sentence."""
        return ()

    @property
    def exact(self) -> bool:
        """Whether it runs the very same kernels as eager, so that results must be equal up to nothing."""
        return False

    def lends_results(self, task: Task) -> bool:
        """Whether the memory of a result is used again by the next call, as its documentation says."""
        return False

    def refusal(self, task: Task) -> str | None:
        """Why it cannot run a task, as far as that is known without trying."""
        return None

    @abstractmethod
    def build(self, task: Task) -> Prepared:
        """Make it ready, first call included, so that nothing is left to be compiled."""

    def prepare(self, task: Task) -> Prepared:
        """Make it ready; raises `Refused` with a reason of one line where that is not possible."""
        reason = self.refusal(task)
        if reason is not None:
            raise Refused(reason)
        started = perf_counter()
        try:
            prepared = self.build(task)
        except Refused:
            raise
        except Exception as error:  # whatever a compiler raises is a reason not to use it
            raise Refused(one_line(error)) from error
        return _timed(prepared, perf_counter() - started)


def _timed(prepared: Prepared, seconds: float) -> Prepared:
    return replace(prepared, build_seconds=seconds)


def one_line(error: BaseException) -> str:
    """The first line of an exception that says something, with its type.

    >>> one_line(ValueError("\\n\\n  bad shape\\nmore"))
    'ValueError: bad shape'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if len(text) > 200:
        text = text[:197] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
