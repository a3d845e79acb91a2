"""A chapter of the tour: sizes that vary, the guards that notice, and what is compiled again because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.records.compilations import Outcome
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
    from compile_inspect.records import Inspection
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

SIZES = (4, 5, 6, 7, 1)
SETTINGS: tuple[tuple[str, bool | None, bool], ...] = (
    ("dynamic=None", None, False),
    ("dynamic=True", True, False),
    ("dynamic=False", False, False),
    ("mark_dynamic(x, 0)", None, True),
)
"""How each is called, what torch.compile is given, and whether the first dimension is marked."""


@dataclass(frozen=True)
class Failure:
    """The guard that sent a call back to the compiler; `rows` is 0 where it was not a call of ours."""

    rows: int
    reason: str


@dataclass(frozen=True)
class SettingRun:
    """One setting: what each call did, which guards failed, and what the compiled versions hold."""

    setting: str
    calls: tuple[Call, ...]
    failures: tuple[Failure, ...] = ()
    symbols: tuple[str, ...] = ()
    """Sizes that are symbols in some version, such as `x.size()[0]`."""
    guards: int = 0
    """Guards of the version compiled last."""
    """What checking them all took, as torch measured it while compiling."""
    compilations: int = 0
    """Frames that were compiled: where the graph breaks, one call compiles several."""

    @property
    def compiled(self) -> tuple[int, ...]:
        """The numbers of rows that were compiled for."""
        return tuple(call.rows for call in self.calls if call.happened is Happened.COMPILED)

    @property
    def errors(self) -> dict[str, list[int]]:
        """The first line of each error, and the rows of the calls that raised it."""
        found: dict[str, list[int]] = {}
        for call in self.calls:
            if call.happened is Happened.RAISED:
                found.setdefault(call.message.splitlines()[0], []).append(call.rows)
        return found


@dataclass(frozen=True)
class DynamicShapes:
    """What `run_dynamic_shapes` has seen."""

    model: str
    runs: tuple[SettingRun, ...]

    def run(self, setting: str) -> SettingRun:
        """One setting, by its name."""
        return next(run for run in self.runs if run.setting == setting)

    def answer(self) -> tuple[str, ...]:
        """What was compiled again, and why, in figures of this run."""
        if not self.runs:
            return ()
        sizes = ", ".join(str(call.rows) for call in self.runs[0].calls)
        told = [
            f"{self.model} was called with {sizes} rows in turn. Compilations: "
            + ", ".join(f"{run.compilations} with {run.setting}" for run in self.runs)
            + "."
        ]
        first = self.runs[0]
        if first.compilations > len(first.compiled) > 0:
            told.append(
                f"With {first.setting} {count(len(first.compiled), 'call')} compiled, "
                f"{count(first.compilations, 'piece')} in all: where the graph breaks, one call compiles several."
            )
        if first.compiled:
            rows = ", ".join(map(str, first.compiled))
            reused = [str(call.rows) for call in first.calls if call.happened is Happened.REUSED]
            told.append(
                f"With {first.setting} it was compiled for {rows}"
                + (f", and {', '.join(reused)} ran what was there" if reused else "")
                + "."
            )
        for failure, times in Counter(first.failures).items():
            told.append(
                f"The call with {count(failure.rows, 'row')} failed this guard and was compiled for: {failure.reason}."
                if failure.rows
                else f"This guard failed {count(times, 'time')}: {failure.reason}."
            )
        if first.symbols:
            told.append(f"What became a symbol: {', '.join(first.symbols)}.")
        if first.guards:
            told.append(f"The version compiled last has {count(first.guards, 'guard')}, checked at every call.")
        for run in self.runs:
            for message, sizes_of in run.errors.items():
                single = len(sizes_of) == 1
                calls = f"call with {count(sizes_of[0], 'row')}" if single else f"calls with {_listed(sizes_of)} rows"
                told.append(f"With {run.setting} the {calls} raised: {message.rstrip('.')}.")
        return tuple(told)


def run_dynamic_shapes(target: Target | None = None, *, guide: Guide | None = None) -> DynamicShapes:
    """Call a model with inputs of 4, 5, 6, 7 and 1 rows under each setting, and see what is compiled for them.

    Without a target it is the tour's MLP; of a target's inputs, the first dimension is varied, by numbers that the model
    takes when it is not compiled. The backend only runs the graph: guards and recompiles are Dynamo's, whatever compiles it.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    sizes = sizes_that_run(target, SIZES, guide)
    if not sizes:
        return DynamicShapes(model_name(target), ())
    guide.guess(
        f"How many of the calls with {_listed(sizes)} rows compile, if torch.compile is told nothing?",
        [str(number) for number in range(len(sizes) + 1)],
    )
    with guide.working("calling with other sizes"):
        runs = tuple(_run(target, sizes, *setting) for setting in SETTINGS)
    found = DynamicShapes(model_name(target), runs)
    _show(found, guide)
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _run(target: Target, sizes: Sequence[int], setting: str, dynamic: bool | None, marked: bool) -> SettingRun:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.torch_private import dynamo_state

    torch_private.forget_compiled_code()
    backend = CountingBackend()
    compiled: Callable[..., Any] = torch.compile(target.function, backend=backend, dynamic=dynamic)

    def call(rows: int) -> Call:
        def called(*args: Any, **kwargs: Any) -> Any:
            for leaf in torch_private.flatten((args, kwargs))[0] if marked else ():
                if torch_private.is_tensor(leaf) and leaf.dim() and leaf.shape[0] == rows:
                    dynamo_state.mark_dynamic(leaf, 0, firmly=True)
            return compiled(*args, **kwargs)

        return backend.watch(lambda: called_with_rows(target, called, rows), rows)

    with silence(), torch.no_grad(), record() as recording:
        calls = [call(rows) for rows in sizes]
    torch_private.forget_compiled_code()
    return _read(setting, tuple(calls), recording.inspection)


def _read(setting: str, calls: tuple[Call, ...], found: Inspection) -> SettingRun:
    """What the recording tells about the calls."""
    raised = any(call.happened is Happened.RAISED for call in calls)
    again = [call.rows for call in calls if call.happened is Happened.COMPILED][1:]
    reasons = [item.latest.reason for item in found.recompiles if item.latest is not None]
    # A model with graph breaks compiles several frames in one call: then reasons cannot be dealt out to calls.
    rows = again if len(again) == len(reasons) and not raised else [0] * len(reasons)
    compiled = [item for item in found.compilations if item.outcome is Outcome.COMPILED]
    symbols = dict.fromkeys(where for item in compiled for where in item.dynamic_symbols.values())
    last = compiled[-1] if compiled else None
    return SettingRun(
        setting,
        calls,
        tuple(Failure(number, reason) for number, reason in zip(rows, reasons, strict=True)),
        tuple(symbols),
        last.guard_count if last else 0,
        len(compiled),
    )


def _show(found: DynamicShapes, guide: Guide) -> None:
    rows = [
        [run.setting, *(call.happened.short for call in run.calls), str(run.compilations), str(run.guards or "-")]
        for run in found.runs
    ]
    columns = ["Setting", *(count(call.rows, "row") for call in found.runs[0].calls), ">Compilations", ">Guards of the last"]
    guide.table(f"{found.model}, called with these numbers of rows in turn", columns, rows)
    failures = [
        [run.setting, str(failure.rows) if failure.rows else "-", failure.reason]
        for run in found.runs
        for failure in run.failures
    ]
    if failures:
        guide.table("The guard that failed", ["Setting", ">Rows", "Guard"], failures)
    guide.table(
        "Sizes that became symbols",
        ["Setting", "Where"],
        [[run.setting, ", ".join(run.symbols) or "none"] for run in found.runs],
    )
    guide.settle(len(found.runs[0].compiled))
