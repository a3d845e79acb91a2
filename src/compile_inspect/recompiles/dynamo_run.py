"""Run a sequence of calls through Dynamo, isolated from the rest of the process, and record them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.run_outcome import preserve_state, seed_generators
from compile_inspect.capture.collectors.exceptions import exception_chain
from compile_inspect.capture.recorder import Recording, tap
from compile_inspect.errors import TargetError
from compile_inspect.recompiles.calls import Call, clone_inputs
from compile_inspect.records import Inspection
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.torch_private import dynamo_state
from compile_inspect.variants import Task
from compile_inspect.variants.base import one_line

SEED = 0
OnCall = Callable[[int, int], object]


@dataclass
class CallRun:
    """One call: compilations it started, graphs it ran, what it raised, and whether it also raises in eager mode."""

    started_compilations: list[str] = field(default_factory=list)
    used_compilations: list[str] = field(default_factory=list)
    error: str | None = None
    fails_in_eager: bool = False


@dataclass(frozen=True)
class Run:
    """All calls, and the record of their compilations."""

    call_runs: list[CallRun]
    inspection: Inspection
    graphs: frozenset[str]
    """Compilations that passed a graph to the backend, including those that failed afterward."""
    seconds: float
    limit: int


def run(
    target: Target,
    calls: Sequence[Call],
    backend: dynamo_state.GraphRecorder,
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    run_graphs_once: bool = False,
    on_call: OnCall | None = None,
) -> Run:
    """Make the calls one after the other, then restore the function's state and Dynamo's state.

    With `run_graphs_once`, a graph that makes up a whole call runs once; later calls only check which graph they would use.
    `on_call` is called before each call with the number of calls made so far and the total.
    """
    import torch

    if limit is not None and limit < 1:
        raise TargetError(f"the recompile limit is {limit}: give an integer of at least 1")
    function = dynamo_state.original_function(target.function)
    task = Task.of(Target(function, calls[0].args, calls[0].kwargs, gradients=False))
    start = time.perf_counter()
    with tap.paused(), preserve_state(task), _preserved_attributes(task), seed_generators(SEED), silence():
        with torch_private.suppressed_compiler_output(), dynamo_state.isolate_dynamo(limit=limit), Recording() as recording:
            compiled = torch.compile(function, backend=backend, dynamic=dynamic)
            call_runs = []
            for number, call in enumerate(calls):
                if on_call is not None:
                    on_call(number, len(calls))
                call_runs.append(_run_call(compiled, call, backend, run_graphs_once))
                if call_runs[-1].error is not None:
                    _check_in_eager(call_runs[-1], function, call)
            value = torch_private.recompile_limit("recompile_limit") or 0
        inspection = recording.inspection
    return Run(call_runs, inspection, frozenset(backend.compiled), time.perf_counter() - start, value)


def _run_call(compiled: Callable[..., Any], call: Call, backend: dynamo_state.GraphRecorder, run_graphs_once: bool) -> CallRun:
    call_run, before = CallRun(), dynamo_state.frame_counts()
    backend.used_compilations.clear()
    with call.context():
        args, kwargs = clone_inputs(call.inputs)
        try:
            compiled(*args, **kwargs)
        except dynamo_state.CallEnded:
            pass
        except Exception as error:
            call_run.error = one_line(exception_chain(error)[-1])  # the next call may succeed
    for frame, count in dynamo_state.frame_counts().items():
        call_run.started_compilations += [f"{frame}/{number}" for number in range(before.get(frame, 0), count)]
    call_run.used_compilations = list(dict.fromkeys(backend.used_compilations))
    if (
        run_graphs_once
        and call_run.error is None
        and len(call_run.used_compilations) == 1
        and dynamo_state.covers_whole_call(call_run.used_compilations[0])
    ):
        backend.enough.update(call_run.used_compilations)
    return call_run


def _check_in_eager(call_run: CallRun, function: Callable[..., Any], call: Call) -> None:
    """Repeat the call without the compiler: an exception there is not caused by compilation."""
    task = Task.of(Target(function, call.args, call.kwargs, gradients=False))
    with call.context(), preserve_state(task), _preserved_attributes(task):
        args, kwargs = clone_inputs(call.inputs)
        try:
            function(*args, **kwargs)
        except Exception as error:
            call_run.error, call_run.fails_in_eager = one_line(error), True


@contextlib.contextmanager
def _preserved_attributes(task: Task) -> Iterator[None]:
    """Restore attributes that a module sets on itself while it runs.

    Only differences are written, because torch may watch the dictionaries.
    """
    parts = [part for module in task.modules for part in module.modules()]
    saved = [dict(vars(part)) for part in parts]
    try:
        yield
    finally:
        for part, before in zip(parts, saved, strict=True):
            now = vars(part)
            for name in set(now) - set(before):
                del now[name]
            for name, value in before.items():
                if name not in now or now[name] is not value:
                    now[name] = value
