"""A topic of the tour: the stances of the compiler, and what each does with the same calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import model_name
from compile_inspect.tour.topics.call_outcomes import (
    Call,
    CallOutcome,
    CountingBackend,
    call_with_rows,
    valid_sizes,
)
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

STANCES = ("default", "force_eager", "fail_on_recompile", "eager_on_recompile", "eager_then_compile")
SIZES = (4, 5, 5, 6)
"""Rows of the calls; a prepared function is first compiled for the first number."""


@dataclass(frozen=True)
class StanceRun:
    """The calls under one stance; `prepared` says whether the function was first compiled for the rows of the first call."""

    stance: str
    prepared: bool
    calls: tuple[Call, ...]

    def count(self, outcome: CallOutcome) -> int:
        """How many calls had this outcome."""
        return sum(call.outcome is outcome for call in self.calls)

    @property
    def error(self) -> str:
        """The message of the first call that raised, in one line."""
        raised = next((call.message for call in self.calls if call.outcome is CallOutcome.RAISED), "")
        return " ".join(raised.split())


@dataclass(frozen=True)
class Stances:
    """The results of `run_stances`."""

    model: str
    runs: tuple[StanceRun, ...]

    def run(self, stance: str, *, prepared: bool = True) -> StanceRun:
        """The calls under one stance."""
        return next(run for run in self.runs if run.stance == stance and run.prepared is prepared)

    def answer(self) -> tuple[str, ...]:
        """What each stance did with the calls, counted."""
        prepared = [run for run in self.runs if run.prepared]
        if not prepared:
            return ()
        rows = [call.rows for call in prepared[0].calls]
        sizes = ", ".join(map(str, rows))
        sentences = [f"{self.model} was first compiled for {count(rows[0], 'row')}, then called with {sizes} rows."]
        sentences += [f"{run.stance}: {_count_outcomes(run)}." for run in prepared]
        unprepared = [run for run in self.runs if not run.prepared and run.calls != self.run(run.stance).calls]
        sentences += [f"{run.stance}, with nothing compiled beforehand: {_count_outcomes(run)}." for run in unprepared]
        sentences += [f"The error under {run.stance}: {run.error}" for run in prepared if run.error]
        return tuple(sentences)


def _count_outcomes(run: StanceRun) -> str:
    """The outcomes of the calls in words; outcomes that did not occur are left out."""
    verbs = {
        CallOutcome.COMPILED: "compiled",
        CallOutcome.REUSED: "reused compiled code",
        CallOutcome.EAGER: "ran in eager mode",
        CallOutcome.RAISED: "raised an error",
    }
    return ", ".join(f"{count(run.count(item), 'call')} {verb}" for item, verb in verbs.items() if run.count(item))


def run_stances(target: Target | None = None, *, guide: Guide | None = None) -> Stances:
    """Make the same calls under every stance, both with and without compiling the function beforehand.

    The default target is the tour's MLP. Sizes that the model rejects in eager mode are left out. The backend only runs the
    graph and counts.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    sizes = valid_sizes(target, SIZES, guide)
    if not sizes or not _can_be_prepared(target, sizes[0], guide):
        return Stances(model_name(target), ())
    guide.ask(
        f"Compiled for {count(sizes[0], 'row')} and called with {count(_other_size(sizes), 'row')} under eager_on_recompile, "
        "what does the model do?",
        [item.value for item in CallOutcome],
    )
    with guide.working("calling the model under each stance"):
        runs = tuple(_run(target, sizes, stance, prepared) for prepared in (True, False) for stance in STANCES)
    result = Stances(model_name(target), runs)
    _show(result, guide)
    return result


def _other_size(sizes: Sequence[int]) -> int:
    """The first number of rows that the function was not compiled for."""
    return next(rows for rows in sizes if rows != sizes[0])


def _can_be_prepared(target: Target, rows: int, guide: Guide) -> bool:
    """Whether the model is compiled at all; if not, a note says why."""
    (call,) = _run(target, (rows,), "default", prepared=False).calls
    if call.outcome is CallOutcome.RAISED:
        guide.note(f"{model_name(target)} cannot be compiled: {call.message.splitlines()[0]}")
    elif call.outcome is not CallOutcome.COMPILED:
        guide.note(f"nothing of {model_name(target)} was compiled: the call {call.outcome.value}")
    return call.outcome is CallOutcome.COMPILED


def _run(target: Target, sizes: Sequence[int], stance: str, prepared: bool) -> StanceRun:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    backend = CountingBackend()
    compiled: Callable[..., Any] = torch.compile(target.function, backend=backend)

    def call(rows: int) -> Call:
        return backend.observe(lambda: call_with_rows(target, compiled, rows), rows)

    with silence(), torch.no_grad(), torch_private.fresh_stance():
        if prepared:
            call(sizes[0])
        with torch.compiler.set_stance(stance):
            calls = tuple(call(rows) for rows in sizes)
    torch_private.forget_compiled_code()
    return StanceRun(stance, prepared, calls)


def _show(result: Stances, guide: Guide) -> None:
    sizes = [call.rows for call in result.runs[0].calls]
    for prepared in (True, False):
        rows = [[run.stance, *(call.outcome.short for call in run.calls)] for run in result.runs if run.prepared is prepared]
        state = f"compiled beforehand for {count(sizes[0], 'row')}" if prepared else "not compiled beforehand"
        guide.table(f"{result.model}, {state}", ["Stance", *(count(size, "row") for size in sizes)], rows)
    guide.listing(
        "How to set a stance",
        'with torch.compiler.set_stance("fail_on_recompile"):\n    serve(model)          # a recompile raises\n\n'
        '@torch.compiler.set_stance("force_eager")\ndef debug(model, x):\n    return model(x)       # torch.compile is off',
        language="python",
    )
    answer = result.run("eager_on_recompile").calls[sizes.index(_other_size(sizes))].outcome
    guide.reveal(list(CallOutcome).index(answer))
