"""How often torch.compile will compile for a sequence of inputs, found out without any backend.

Dynamo itself checks its guards against every input, and traces only where none of its versions fits; what it traces is
run as it is, and only once where nothing but its guards can matter to later calls.

Guards that a backend would add are not foreseen; Inductor adds few, on sizes that it specializes its kernels for.
"""

from __future__ import annotations

from collections.abc import Sequence

from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.reading import read
from compile_inspect.recompiles.running import OnCall, run
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
    """What torch.compile will compile for these inputs, one after the other, in a fresh process.

    `dynamic` is what torch.compile would be given, `limit` the recompile limit (Dynamo's own where it is None). The
    process is left as it was: compiled code, counters, configuration, random numbers, and what the target holds. `on_call`
    is told before each call how many were made and how many there are.

        forecast = predict(Target(model), [((torch.randn(n, 8),), {}) for n in (1, 2, 8, 64)])
        for compilation in forecast.recompiles:
            print(compilation.call, compilation.cause)
    """
    calls = as_calls(inputs)
    ran = run(target, calls, dynamo_state.GraphRecorder(), dynamic=dynamic, limit=limit, sparing=True, on_call=on_call)
    return read(ran, calls, dynamic)
