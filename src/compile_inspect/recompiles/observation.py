"""Run the calls through torch.compile with a real backend, and compare a forecast with the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from compile_inspect import torch_private
from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.dynamo_run import OnCall, run
from compile_inspect.recompiles.forecasts import forecast_of
from compile_inspect.records.forecast import Forecast, ForecastComparison, ObservedRun
from compile_inspect.target import Inputs, Target
from compile_inspect.torch_private import dynamo_state


def observe(
    target: Target,
    inputs: Sequence[Inputs | Call],
    *,
    backend: str | Callable[..., Any] = "eager",
    dynamic: bool | None = None,
    limit: int | None = None,
    fresh: bool = False,
    on_call: OnCall | None = None,
) -> ObservedRun:
    """Compile for these inputs with a backend, as a fresh process would, and report what was compiled for each.

    `fresh` ignores Inductor's caches on disk. No backward is run.
    """
    calls = as_calls(inputs)
    counting = dynamo_state.GraphRecorder(backend)
    if fresh:
        with torch_private.without_graph_caches():
            forecast = forecast_of(run(target, calls, counting, dynamic=dynamic, limit=limit, on_call=on_call), calls, dynamic)
    else:
        forecast = forecast_of(run(target, calls, counting, dynamic=dynamic, limit=limit, on_call=on_call), calls, dynamic)
    values = {item.name: getattr(forecast, item.name) for item in fields(forecast)}
    return ObservedRun(**values, backend=backend if isinstance(backend, str) else getattr(backend, "__name__", "own"))


def compare(forecast: Forecast, observed: ObservedRun) -> ForecastComparison:
    """Differences between prediction and observation: compilations, the calls that caused them, limits, errors."""
    differences = list(_compilations(forecast, observed))
    predicted, observed_limits = (
        [(item.call, item.function, item.limit) for item in each.limits] for each in (forecast, observed)
    )
    if predicted != observed_limits:
        differences.append(f"limits are hit at calls {_list_limits(observed_limits)}, predicted were {_list_limits(predicted)}")
    for expected, call in zip(forecast.calls, observed.calls, strict=True):
        if (expected.error is None) != (call.error is None):
            differences.append(f"call {call.index} raises {call.error or 'no error'}, predicted was {expected.error or 'none'}")
        elif expected.used_compilations != call.used_compilations:
            actual, foreseen = (", ".join(one.used_compilations) for one in (call, expected))
            differences.append(f"call {call.index} runs {actual or 'no graph'}, predicted was {foreseen or 'none'}")
    return ForecastComparison(forecast, observed, tuple(differences))


def _compilations(forecast: Forecast, observed: ObservedRun) -> list[str]:
    predicted = {item.id: item for item in forecast.compilations}
    actual = {item.id: item for item in observed.compilations}
    differences = []
    for identifier in dict.fromkeys([*predicted, *actual]):
        expected, item = predicted.get(identifier), actual.get(identifier)
        if item is None and expected is not None:
            differences.append(f"{identifier} of {expected.function} was predicted for call {expected.call} and did not occur")
        elif expected is None and item is not None:
            differences.append(f"{identifier} of {item.function} occurred at call {item.call} and was not predicted")
        elif expected is not None and item is not None and (expected.call, expected.function) != (item.call, item.function):
            prediction = f"{expected.function} at call {expected.call}"
            differences.append(f"{identifier} is {item.function} at call {item.call}, predicted was {prediction}")
    return differences


def _list_limits(items: list[tuple[int, str, str]]) -> str:
    return ", ".join(f"{call} ({function}, {limit})" for call, function, limit in items) or "none"
