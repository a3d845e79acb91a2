"""Predict how often torch.compile will compile for a sequence of inputs, without running a backend.

Dynamo itself checks its guards for every input and traces only if no existing version fits. The traced graph runs as it is,
and only once if only its guards can matter to later calls.

Guards that a backend would add are not predicted; Inductor adds few, on sizes for which it specializes its kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.dynamo_run import OnCall, run
from compile_inspect.recompiles.forecasts import forecast_of
from compile_inspect.records.forecast import Forecast
from compile_inspect.target import Inputs, Target
from compile_inspect.torch_private import dynamo_state


def predict(
    target: Target,
    inputs: Sequence[Inputs | Call],
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    on_call: OnCall | None = None,
) -> Forecast:
    """Predict what torch.compile will compile for these inputs, one after the other, in a fresh process.

    `dynamic` is the option of torch.compile, `limit` the recompile limit (Dynamo's own if None). The process is left as it
    was: compiled code, counters, configuration, random numbers, and the state of the target. `on_call` is called before each
    call with the number of calls made so far and the total.

        forecast = predict(Target(model), [((torch.randn(n, 8),), {}) for n in (1, 2, 8, 64)])
        for compilation in forecast.recompiles:
            print(compilation.call, compilation.cause)
    """
    calls = as_calls(inputs)
    dynamo_run = run(
        target, calls, dynamo_state.GraphRecorder(), dynamic=dynamic, limit=limit, run_graphs_once=True, on_call=on_call
    )
    return forecast_of(dynamo_run, calls, dynamic)
