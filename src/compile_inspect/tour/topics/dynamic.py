"""A topic of the tour: sizes that vary, the guards that detect it, and the recompiles that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.records.compilations import Outcome
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
"""The name of each setting, torch.compile's `dynamic`, and whether the first dimension is marked."""


@dataclass(frozen=True)
class FailedGuard:
    """The guard that made a call recompile; `rows` is 0 where it cannot be attributed to one call."""

    rows: int
    reason: str


@dataclass(frozen=True)
class SettingRun:
    """One setting: what each call did, which guards failed, and the symbols and guards of the compiled versions."""

    setting: str
    calls: tuple[Call, ...]
    failed_guards: tuple[FailedGuard, ...] = ()
    symbols: tuple[str, ...] = ()
    """Sizes that are symbolic in some version, such as `x.size()[0]`."""
    guards: int = 0
    """Guards of the version compiled last."""
    compilations: int = 0
    """Frames that were compiled; with graph breaks, one call compiles several."""

    @property
    def compiled(self) -> tuple[int, ...]:
        """The numbers of rows whose calls compiled."""
        return tuple(call.rows for call in self.calls if call.outcome is CallOutcome.COMPILED)

    @property
    def errors(self) -> dict[str, list[int]]:
        """The first line of each error, and the rows of the calls that raised it."""
        errors: dict[str, list[int]] = {}
        for call in self.calls:
            if call.outcome is CallOutcome.RAISED:
                errors.setdefault(call.message.splitlines()[0], []).append(call.rows)
        return errors


@dataclass(frozen=True)
class DynamicShapes:
    """The results of `run_dynamic_shapes`."""

    model: str
    runs: tuple[SettingRun, ...]

    def run(self, setting: str) -> SettingRun:
        """One setting, by its name."""
        return next(run for run in self.runs if run.setting == setting)

    def answer(self) -> tuple[str, ...]:
        """What was recompiled and why, with the numbers of this run."""
        if not self.runs:
            return ()
        sizes = ", ".join(str(call.rows) for call in self.runs[0].calls)
        sentences = [
            f"{self.model} was called with inputs of {sizes} rows. Compilations: "
            + ", ".join(f"{run.compilations} with {run.setting}" for run in self.runs)
            + "."
        ]
        first = self.runs[0]
        if first.compilations > len(first.compiled) > 0:
            sentences.append(
                f"With {first.setting}, {count(len(first.compiled), 'call')} compiled "
                f"{count(first.compilations, 'frame')}: with graph breaks, one call compiles several."
            )
        if first.compiled:
            rows = ", ".join(map(str, first.compiled))
            reused = [str(call.rows) for call in first.calls if call.outcome is CallOutcome.REUSED]
            sentences.append(
                f"With {first.setting}, the calls with {rows} rows compiled"
                + (f", and those with {', '.join(reused)} rows reused compiled code" if reused else "")
                + "."
            )
        for failure, times in Counter(first.failed_guards).items():
            sentences.append(
                f"The call with {count(failure.rows, 'row')} recompiled because this guard failed: {failure.reason}."
                if failure.rows
                else f"This guard failed {count(times, 'time')}: {failure.reason}."
            )
        if first.symbols:
            sentences.append(f"These sizes became symbolic: {', '.join(first.symbols)}.")
        if first.guards:
            sentences.append(f"The version compiled last has {count(first.guards, 'guard')}, which are checked at every call.")
        for run in self.runs:
            for message, sizes_of in run.errors.items():
                single = len(sizes_of) == 1
                calls = f"call with {count(sizes_of[0], 'row')}" if single else f"calls with {_listed(sizes_of)} rows"
                sentences.append(f"With {run.setting}, the {calls} raised an error: {message.rstrip('.')}.")
        return tuple(sentences)


def run_dynamic_shapes(target: Target | None = None, *, guide: Guide | None = None) -> DynamicShapes:
    """Call a model with inputs of 4, 5, 6, 7 and 1 rows under each setting, and record what is compiled.

    The default target is the tour's MLP. The first dimension of the inputs varies, over numbers that the model accepts in
    eager mode. The backend only runs the graph, because guards and recompiles belong to Dynamo and not to the backend.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    sizes = valid_sizes(target, SIZES, guide)
    if not sizes:
        return DynamicShapes(model_name(target), ())
    guide.ask(
        f"How many of the calls with {_listed(sizes)} rows compile with the default settings of torch.compile?",
        [str(number) for number in range(len(sizes) + 1)],
    )
    with guide.working("calling with different sizes"):
        runs = tuple(_run(target, sizes, *setting) for setting in SETTINGS)
    result = DynamicShapes(model_name(target), runs)
    _show(result, guide)
    return result


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

        return backend.observe(lambda: call_with_rows(target, called, rows), rows)

    with silence(), torch.no_grad(), record() as recording:
        calls = [call(rows) for rows in sizes]
    torch_private.forget_compiled_code()
    return _read(setting, tuple(calls), recording.inspection)


def _read(setting: str, calls: tuple[Call, ...], inspection: Inspection) -> SettingRun:
    """Combine the outcomes of the calls with the recording."""
    raised = any(call.outcome is CallOutcome.RAISED for call in calls)
    recompiled_rows = [call.rows for call in calls if call.outcome is CallOutcome.COMPILED][1:]
    reasons = [item.latest.reason for item in inspection.recompiles if item.latest is not None]
    # With graph breaks, one call compiles several frames, and reasons cannot be attributed to calls.
    rows = recompiled_rows if len(recompiled_rows) == len(reasons) and not raised else [0] * len(reasons)
    compiled = [item for item in inspection.compilations if item.outcome is Outcome.COMPILED]
    symbols = dict.fromkeys(where for item in compiled for where in item.dynamic_symbols.values())
    last = compiled[-1] if compiled else None
    return SettingRun(
        setting,
        calls,
        tuple(FailedGuard(number, reason) for number, reason in zip(rows, reasons, strict=True)),
        tuple(symbols),
        last.guard_count if last else 0,
        len(compiled),
    )


def _show(result: DynamicShapes, guide: Guide) -> None:
    rows = [
        [run.setting, *(call.outcome.short for call in run.calls), str(run.compilations), str(run.guards or "-")]
        for run in result.runs
    ]
    columns = [
        "Setting",
        *(count(call.rows, "row") for call in result.runs[0].calls),
        ">Compilations",
        ">Guards of last version",
    ]
    guide.table(f"{result.model}, called with inputs of these sizes in turn", columns, rows)
    failures = [
        [run.setting, str(failure.rows) if failure.rows else "-", failure.reason]
        for run in result.runs
        for failure in run.failed_guards
    ]
    if failures:
        guide.table("Guards that failed", ["Setting", ">Rows", "Guard"], failures)
    guide.table(
        "Sizes that became symbolic",
        ["Setting", "Sizes"],
        [[run.setting, ", ".join(run.symbols) or "none"] for run in result.runs],
    )
    guide.reveal(len(result.runs[0].compiled))
