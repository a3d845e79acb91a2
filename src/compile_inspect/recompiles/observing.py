"""The same calls through torch.compile for real, and a forecast held against what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from compile_inspect import torch_private
from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.reading import read
from compile_inspect.recompiles.running import OnCall, run
from compile_inspect.records.forecast import Comparison, Forecast, Observed
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
) -> Observed:
    """Compile for these inputs with a backend, as a fresh process would, and say what was compiled for which.

    `fresh` leaves out the caches that Inductor keeps on disk. No backward is run.
    """
    calls = as_calls(inputs)
    counting = dynamo_state.GraphRecorder(backend)
    if fresh:
        with torch_private.without_graph_caches():
            seen = read(run(target, calls, counting, dynamic=dynamic, limit=limit, on_call=on_call), calls, dynamic)
    else:
        seen = read(run(target, calls, counting, dynamic=dynamic, limit=limit, on_call=on_call), calls, dynamic)
    known = {item.name: getattr(seen, item.name) for item in fields(seen)}
    return Observed(**known, backend=backend if isinstance(backend, str) else getattr(backend, "__name__", "own"))


def compare(forecast: Forecast, observed: Observed) -> Comparison:
    """What came otherwise than foretold: compilations, the calls that caused them, limits, errors."""
    differences = list(_compilations(forecast, observed))
    foretold, seen = ([(item.call, item.function, item.limit) for item in each.limits] for each in (forecast, observed))
    if foretold != seen:
        differences.append(f"limits are hit at calls {_listed(seen)}, foretold were {_listed(foretold)}")
    for expected, call in zip(forecast.calls, observed.calls, strict=True):
        if (expected.error is None) != (call.error is None):
            differences.append(f"call {call.index} gives {call.error or 'no error'}, foretold was {expected.error or 'none'}")
        elif expected.used != call.used:
            used = f"{', '.join(call.used) or 'no graph'}, foretold was {', '.join(expected.used) or 'none'}"
            differences.append(f"call {call.index} runs {used}")
    return Comparison(forecast, observed, tuple(differences))


def _compilations(forecast: Forecast, observed: Observed) -> list[str]:
    foretold = {item.id: item for item in forecast.compilations}
    seen = {item.id: item for item in observed.compilations}
    found = []
    for identifier in dict.fromkeys([*foretold, *seen]):
        expected, item = foretold.get(identifier), seen.get(identifier)
        if item is None and expected is not None:
            found.append(f"{identifier} of {expected.function} was foretold for call {expected.call} and did not come")
        elif expected is None and item is not None:
            found.append(f"{identifier} of {item.function} came at call {item.call} and was not foretold")
        elif expected is not None and item is not None and (expected.call, expected.function) != (item.call, item.function):
            foreseen = f"{expected.function} at call {expected.call}"
            found.append(f"{identifier} is {item.function} at call {item.call}, foretold was {foreseen}")
    return found


def _listed(items: list[tuple[int, str, str]]) -> str:
    return ", ".join(f"{call} ({function}, {limit})" for call, function, limit in items) or "none"
