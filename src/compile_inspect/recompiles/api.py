"""`predict_recompiles`: what torch.compile will compile for a sequence of calls, and how to make it compile less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from compile_inspect.eager import require_eager
from compile_inspect.errors import TargetError
from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.dynamo_run import OnCall
from compile_inspect.recompiles.observation import compare, observe
from compile_inspect.recompiles.prediction import predict
from compile_inspect.recompiles.ranges import calls_from_ranges
from compile_inspect.recompiles.remedies import find_remedies
from compile_inspect.records.forecast import Forecast
from compile_inspect.records.recompile_forecast import RecompileForecast
from compile_inspect.target import Inputs, Target, target_of_call

Progress = Callable[[str], object]

_OPTIONS = ("sweep", "calls", "dynamic", "limit", "trials", "check", "progress")


def predict_recompiles(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    sweep: Mapping[str, str | Sequence[int]] | None = None,
    calls: Sequence[Inputs | Call] | None = None,
    dynamic: bool | None = None,
    limit: int | None = None,
    trials: bool = True,
    check: str | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> RecompileForecast:
    """Predict which of a sequence of calls make torch.compile compile, why, and what would avoid that.

    Describe the calls in one of three ways: as ranges of sizes and numbers that are applied to `args` and `kwargs`, such as
    `sweep={"batch": "1..64"}` or `sweep={"batch": [1, 2, 8], "steps": range(4)}`, in all combinations; as pairs of arguments
    and keyword arguments, such as `calls=[((x,), {}), ((y,), {})]`; or as the inputs of a `Target` and its further inputs. A
    sweep names sizes as `time_variants` does, and a number among the arguments by its parameter.

    Dynamo makes the calls in a state of its own, without a backend; the process is left as it was. `dynamic` is the option of
    torch.compile, `limit` the recompile limit (torch's own if None). With `trials`, each remedy is tried by predicting
    again. `check` names a backend with which the same calls are really compiled and compared with the prediction.
    `progress` is called with a sentence before each call.

    >>> import torch
    >>> forecast = predict_recompiles(torch.relu, torch.ones(2, 3), sweep={"batch": "2..9"}, trials=False)
    >>> forecast.graph_count, [forecast.calls[item.call].label for item in forecast.graphs]
    (2, ['batch=2', 'batch=3'])
    """
    target = target_of_call(function, args, kwargs, caller="predict_recompiles", options=_OPTIONS)
    if calls is not None and sweep is not None:
        raise TargetError("sweep and calls both describe the calls: pass either sweep or calls")
    if calls is not None:
        if target.args or target.kwargs:
            raise TargetError("calls has its own inputs: leave out the others, or describe the calls with sweep")
        sequence = as_calls(calls)
        target = Target(target.function, *sequence[0].inputs, gradients=target.gradients)
    else:
        sequence = as_calls(target.all_inputs()) if sweep is None else calls_from_ranges(target, range_texts(sweep))
    return forecast_calls(
        require_eager(target), sequence, dynamic=dynamic, limit=limit, trials=trials, check=check, progress=progress
    )


def range_texts(sweep: Mapping[str, str | Sequence[int]]) -> list[str]:
    """The ranges of a sweep as the command line writes them.

    >>> range_texts({"batch": "1..64", "steps": range(3)})
    ['batch=1..64', 'steps=0,1,2']
    """
    return [
        f"{name}={values if isinstance(values, str) else ','.join(str(value) for value in values)}"
        for name, values in sweep.items()
    ]


def forecast_calls(
    target: Target,
    calls: Sequence[Call],
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    trials: bool = True,
    check: str | None = None,
    progress: Progress | None = None,
) -> RecompileForecast:
    """Like `predict_recompiles`, for calls of a target that are made already."""
    say = progress or (lambda _: None)

    def on_call(step: str) -> OnCall:
        return lambda number, count: say(f"{step} (call {number + 1} of {count}) …")

    forecast = predict(target, calls, dynamic=dynamic, limit=limit, on_call=on_call("capturing"))
    causes = find_remedies(
        target,
        calls,
        forecast,
        dynamic=dynamic,
        limit=limit,
        trials=trials,
        on_trial=lambda title: on_call(f"trying: {title}"),
    )
    comparison = None
    if check is not None:
        observed = observe(target, calls, backend=check, dynamic=dynamic, limit=limit, on_call=on_call(f"running with {check}"))
        comparison = compare(forecast, observed)
    values = {item.name: getattr(forecast, item.name) for item in fields(Forecast)}
    return RecompileForecast(**values, causes=causes, comparison=comparison)
