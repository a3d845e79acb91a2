"""A chapter of the tour: the stances of the compiler, and what each makes of the same calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import model_name
from compile_inspect.tour.chapters.watching import (
    Call,
    CountingBackend,
    Happened,
    called_with_rows,
    sizes_that_run,
)
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

STANCES = ("default", "force_eager", "fail_on_recompile", "eager_on_recompile", "eager_then_compile")
SIZES = (4, 5, 5, 6)
"""Rows of the calls; what is prepared is compiled for the first number before."""


@dataclass(frozen=True)
class StanceRun:
    """The calls under one stance; `prepared` says that the function had been compiled for the rows of the first before."""

    stance: str
    prepared: bool
    calls: tuple[Call, ...]

    def count(self, happened: Happened) -> int:
        """How many calls did this."""
        return sum(call.happened is happened for call in self.calls)

    @property
    def error(self) -> str:
        """The message of the first call that raised, in one line."""
        raised = next((call.message for call in self.calls if call.happened is Happened.RAISED), "")
        return " ".join(raised.split())


@dataclass(frozen=True)
class Stances:
    """What `run_stances` has seen."""

    model: str
    runs: tuple[StanceRun, ...]

    def run(self, stance: str, *, prepared: bool = True) -> StanceRun:
        """The calls under one stance."""
        return next(run for run in self.runs if run.stance == stance and run.prepared is prepared)

    def answer(self) -> tuple[str, ...]:
        """What each stance made of the calls, counted."""
        prepared = [run for run in self.runs if run.prepared]
        if not prepared:
            return ()
        rows = [call.rows for call in prepared[0].calls]
        sizes = ", ".join(map(str, rows))
        told = [f"{self.model} had been compiled for {count(rows[0], 'row')}, and was then called with {sizes}."]
        told += [f"{run.stance}: {_counted(run)}." for run in prepared]
        unprepared = [run for run in self.runs if not run.prepared and run.calls != self.run(run.stance).calls]
        told += [f"{run.stance}, where nothing had been compiled before: {_counted(run)}." for run in unprepared]
        told += [f"The error under {run.stance} says: {run.error}" for run in prepared if run.error]
        return tuple(told)


def _counted(run: StanceRun) -> str:
    """What the calls did, in words, those that did nothing left out."""
    verbs = {
        Happened.COMPILED: "compiled",
        Happened.REUSED: "ran what was compiled before",
        Happened.EAGER: "ran eagerly",
        Happened.RAISED: "raised an error",
    }
    return ", ".join(f"{count(run.count(item), 'call')} {verb}" for item, verb in verbs.items() if run.count(item))


def run_stances(target: Target | None = None, *, guide: Guide | None = None) -> Stances:
    """Make the same calls under every stance, of a function that was compiled before and of one that was not.

    Without a target it is the tour's MLP. Sizes that the model refuses by itself are left out. The backend only runs the
    graph, and counts.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    sizes = sizes_that_run(target, SIZES, guide)
    if not sizes or not _can_be_prepared(target, sizes[0], guide):
        return Stances(model_name(target), ())
    guide.guess(
        f"Compiled for {count(sizes[0], 'row')} and called with {_other(sizes)} under eager_on_recompile, what does it do?",
        [item.value for item in Happened],
    )
    with guide.working("calling under each stance"):
        runs = tuple(_run(target, sizes, stance, prepared) for prepared in (True, False) for stance in STANCES)
    found = Stances(model_name(target), runs)
    _show(found, guide)
    return found


def _other(sizes: Sequence[int]) -> int:
    """The first number that is not the one that was compiled for."""
    return next(rows for rows in sizes if rows != sizes[0])


def _can_be_prepared(target: Target, rows: int, guide: Guide) -> bool:
    """Whether the model is compiled at all; where it is not, a note says so."""
    (call,) = _run(target, (rows,), "default", prepared=False).calls
    if call.happened is Happened.RAISED:
        guide.note(f"{model_name(target)} cannot be compiled: {call.message.splitlines()[0]}")
    elif call.happened is not Happened.COMPILED:
        guide.note(f"nothing of {model_name(target)} was compiled: it {call.happened.value}")
    return call.happened is Happened.COMPILED


def _run(target: Target, sizes: Sequence[int], stance: str, prepared: bool) -> StanceRun:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    backend = CountingBackend()
    compiled: Callable[..., Any] = torch.compile(target.function, backend=backend)

    def call(rows: int) -> Call:
        return backend.watch(lambda: called_with_rows(target, compiled, rows), rows)

    with silence(), torch.no_grad(), torch_private.fresh_stance():
        if prepared:
            call(sizes[0])
        with torch.compiler.set_stance(stance):
            calls = tuple(call(rows) for rows in sizes)
    torch_private.forget_compiled_code()
    return StanceRun(stance, prepared, calls)


def _show(found: Stances, guide: Guide) -> None:
    sizes = [call.rows for call in found.runs[0].calls]
    for prepared in (True, False):
        rows = [[run.stance, *(call.happened.short for call in run.calls)] for run in found.runs if run.prepared is prepared]
        state = f"compiled before for {count(sizes[0], 'row')}" if prepared else "not compiled before"
        guide.table(f"{found.model}, {state}", ["Stance", *(count(size, "row") for size in sizes)], rows)
    guide.listing(
        "How to set one",
        'with torch.compiler.set_stance("fail_on_recompile"):\n    serve(model)          # a recompile raises\n\n'
        '@torch.compiler.set_stance("force_eager")\ndef debug(model, x):\n    return model(x)       # torch.compile is off',
        language="python",
    )
    answer = found.run("eager_on_recompile").calls[sizes.index(_other(sizes))].happened
    guide.settle(list(Happened).index(answer))
