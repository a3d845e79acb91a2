"""Convert the record of a run to a forecast: compilations by the call that caused them, failed guards, limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compile_inspect.recompiles.calls import Call, describe
from compile_inspect.recompiles.dynamo_run import Run
from compile_inspect.records import Compilation, CompilationOutcome, GuardFailure
from compile_inspect.records.forecast import Forecast, ForecastCall, ForecastCompilation, ForecastLimit

_COMPILED = (CompilationOutcome.COMPILED, CompilationOutcome.NOTHING_TO_COMPILE)


class _FrameNumbers:
    """Renumbers torch's frames from 0 in the order in which they were compiled."""

    def __init__(self, run: Run) -> None:
        frames = dict.fromkeys(_frame(identifier) for call_run in run.call_runs for identifier in call_run.started_compilations)
        self._numbers = {frame: str(number) for number, frame in enumerate(frames)}

    def frame(self, identifier: str) -> str:
        """The new number of the frame of a compilation."""
        return self._numbers.get(_frame(identifier), _frame(identifier))

    def short(self, identifier: str) -> str:
        """The id of a compilation with the new frame number."""
        return f"{self.frame(identifier)}/{_base(identifier).rpartition('/')[2]}"


def _base(identifier: str) -> str:
    return identifier.partition("@")[0].lstrip("!")


def _frame(identifier: str) -> str:
    return _base(identifier).rpartition("/")[0]


def forecast_of(run: Run, calls: Sequence[Call], dynamic: bool | None) -> Forecast:
    """The forecast that follows from a run."""
    numbers = _FrameNumbers(run)
    compilations_by_id = {_base(item.id): item for item in run.inspection.compilations}
    compiled = {name: item for name, item in compilations_by_id.items() if item.outcome in _COMPILED or name in run.graphs}
    causes = {_base(item.compilation): item.failures for item in run.inspection.recompiles}
    causes = {
        identifier: tuple(_renumbered(failure, numbers) for failure in failures) for identifier, failures in causes.items()
    }
    call_of = {
        identifier: index for index, call_run in enumerate(run.call_runs) for identifier in call_run.started_compilations
    }
    limits = tuple(_limits(run, numbers, call_of, causes))
    compilations = tuple(
        ForecastCompilation(
            id=numbers.short(identifier),
            call=call_of[identifier],
            function=item.function,
            file=item.file,
            line=item.line,
            failures=causes.get(identifier, ()),
            has_graph=identifier in run.graphs,
            is_reusable=item.outcome in _COMPILED,
            symbols=item.dynamic_symbols,
        )
        for identifier, item in compiled.items()
        if identifier in call_of
    )
    return Forecast(
        calls=tuple(_calls(run, calls, numbers, compiled, limits)),
        compilations=tuple(sorted(compilations, key=lambda item: item.call)),
        limits=limits,
        break_count=len(run.inspection.breaks),
        dynamic=dynamic,
        recompile_limit=run.limit,
        seconds=run.seconds,
        notes=run.inspection.notes,
    )


def _renumbered(failure: GuardFailure, numbers: _FrameNumbers) -> GuardFailure:
    return (
        failure if failure.earlier_version is None else replace(failure, earlier_version=numbers.short(failure.earlier_version))
    )


def _limits(
    run: Run, numbers: _FrameNumbers, call_of: dict[str, int], causes: dict[str, tuple[GuardFailure, ...]]
) -> Iterator[ForecastLimit]:
    for hit in run.inspection.limits:
        identifier = _base(hit.compilation or "")
        if identifier not in call_of:
            continue
        failures = causes.get(identifier, ())
        yield ForecastLimit(
            call=call_of[identifier],
            frame=numbers.frame(identifier),
            function=hit.function,
            file=hit.file,
            line=hit.line,
            limit=hit.limit,
            value=hit.value,
            failure=failures[0] if failures else None,
        )


def _calls(
    run: Run, calls: Sequence[Call], numbers: _FrameNumbers, compiled: dict[str, Compilation], limits: Sequence[ForecastLimit]
) -> Iterator[ForecastCall]:
    for index, (call, call_run) in enumerate(zip(calls, run.call_runs, strict=True)):
        used_frames = {numbers.frame(identifier) for identifier in call_run.used_compilations}
        beyond = dict.fromkeys(limit.frame for limit in limits if limit.call <= index and limit.frame not in used_frames)
        yield ForecastCall(
            index=index,
            label=call.label,
            inputs=tuple(describe(leaf) for leaf in call.leaves()),
            new_compilations=tuple(numbers.short(item) for item in call_run.started_compilations if item in compiled),
            used_compilations=tuple(numbers.short(item) for item in call_run.used_compilations),
            eager_frames=tuple(beyond) if call_run.error is None else (),
            error=call_run.error,
            fails_in_eager=call_run.fails_in_eager,
        )
