"""The interface that all variants share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.records.timing import Doubt
    from compile_inspect.variants.captured_program import CapturedProgram
    from compile_inspect.variants.task import Task


class RefusalError(InspectError):
    """A variant cannot run a task; the message is the reason, in one line."""


@dataclass(frozen=True)
class Step:
    """The outcome of one run of a task: its result, and the gradients in the order of `Task.wanted()`."""

    result: Any
    gradients: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A variant that is ready to run.

    `run` takes the inputs of the task's function and returns a `Step`. `call` returns the result alone, with minimal
    overhead; it is None where gradients are required and are only computed together with the result.
    """

    variant: Variant
    run: Callable[..., Step]
    call: Callable[..., Any] | None
    build_seconds: float
    flat: Callable[[list[Any]], list[Any]] | None = None
    """The compiled graph itself, from its inputs to its outputs and gradients, if there is one."""
    program: CapturedProgram | None = None
    """The captured program, which maps inputs and results to the lists that `flat` takes and returns."""
    package: str | None = None
    """The path of the variant's package, if it has one."""
    eager_because: Doubt | None = None
    """Why calls run in eager mode, in whole or in part, although the variant was built."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant(ABC):
    """One way of running a target."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name on a command line and in a table, for example `inductor/max-autotune`."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the variant takes for granted, one sentence each."""
        return ()

    @property
    def exact(self) -> bool:
        """Whether it runs the very same kernels as eager, so that results must be identical."""
        return False

    def reuses_output_buffers(self, task: Task) -> bool:
        """Whether the next call reuses the memory of a result, as the variant's documentation says."""
        return False

    def refusal(self, task: Task) -> str | None:
        """Why it cannot run a task, as far as that is known without trying."""
        return None

    @abstractmethod
    def build(self, task: Task) -> Prepared:
        """Get it ready, including the first call, so that nothing is left to compile."""

    def prepare(self, task: Task) -> Prepared:
        """Get it ready; raises `RefusalError` with a one-line reason where that is not possible."""
        reason = self.refusal(task)
        if reason is not None:
            raise RefusalError(reason)
        started = perf_counter()
        try:
            prepared = self.build(task)
        except RefusalError:
            raise
        except Exception as error:  # any exception of a compiler is a reason not to use it
            raise RefusalError(one_line(error)) from error
        return _with_build_time(prepared, perf_counter() - started)


def _with_build_time(prepared: Prepared, seconds: float) -> Prepared:
    return replace(prepared, build_seconds=seconds)


def one_line(error: BaseException) -> str:
    """The first nonempty line of an exception's message, with its type.

    >>> one_line(ValueError("\\n\\n  bad shape\\nmore"))
    'ValueError: bad shape'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if len(text) > 200:
        text = text[:197] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
