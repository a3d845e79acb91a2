"""A sequence of calls goes through Dynamo, set apart from the user's process, and is recorded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.run_outcome import preserve_state, seed_generators
from compile_inspect.capture.collectors.exceptions import causes_of
from compile_inspect.capture.recorder import Recording, tap
from compile_inspect.errors import TargetError
from compile_inspect.recompiles.calls import Call, copied
from compile_inspect.records import Inspection
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.torch_private import dynamo_state
from compile_inspect.variants import Task
from compile_inspect.variants.base import one_line

SEED = 0
OnCall = Callable[[int, int], object]


@dataclass
class Passage:
    """What one call did: compilations it began, graphs it ran, what it raised, and whether it raises in eager mode too."""

    begun: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    error: str | None = None
    fails_in_eager: bool = False


@dataclass(frozen=True)
class Run:
    """All calls, and the record of what was compiled."""

    passages: list[Passage]
    inspection: Inspection
    graphs: frozenset[str]
    """Compilations that gave the backend something to compile, also those that failed afterwards."""
    seconds: float
    limit: int


def run(
    target: Target,
    calls: Sequence[Call],
    backend: dynamo_state.GraphRecorder,
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    sparing: bool = False,
    on_call: OnCall | None = None,
) -> Run:
    """Make the calls in turn; everything the function holds, and all that Dynamo knew, is put back afterwards.

    With `sparing`, a graph that is all there is to a call is run once, and after that only asked for. `on_call` is told
    before each call how many there were and how many there will be.
    """
    import torch

    if limit is not None and limit < 1:
        raise TargetError(f"the recompile limit is {limit}: give a whole number from 1")
    function = dynamo_state.original_function(target.function)
    task = Task.of(Target(function, calls[0].args, calls[0].kwargs, gradients=False))
    start = time.perf_counter()
    with tap.apart(), preserve_state(task), _preserved_attributes(task), seed_generators(SEED), silence():
        with torch_private.suppressed_compiler_output(), dynamo_state.isolate_dynamo(limit=limit), Recording() as recording:
            compiled = torch.compile(function, backend=backend, dynamic=dynamic)
            passages = []
            for number, call in enumerate(calls):
                if on_call is not None:
                    on_call(number, len(calls))
                passages.append(_pass(compiled, call, backend, sparing))
                if passages[-1].error is not None:
                    _tell_eager(passages[-1], function, call)
            value = torch_private.recompile_limit("recompile_limit") or 0
        inspection = recording.inspection
    return Run(passages, inspection, frozenset(backend.compiled), time.perf_counter() - start, value)


def _pass(compiled: Callable[..., Any], call: Call, backend: dynamo_state.GraphRecorder, sparing: bool) -> Passage:
    passage, before = Passage(), dynamo_state.frame_counts()
    backend.used.clear()
    with call.situation():
        args, kwargs = copied(call.inputs)
        try:
            compiled(*args, **kwargs)
        except dynamo_state.CallEnded:
            pass
        except Exception as error:
            passage.error = one_line(causes_of(error)[-1])  # the next call may be a good one
    for frame, count in dynamo_state.frame_counts().items():
        passage.begun += [f"{frame}/{number}" for number in range(before.get(frame, 0), count)]
    passage.used = list(dict.fromkeys(backend.used))
    if sparing and passage.error is None and len(passage.used) == 1 and dynamo_state.covers_whole_call(passage.used[0]):
        backend.enough.update(passage.used)
    return passage


def _tell_eager(passage: Passage, function: Callable[..., Any], call: Call) -> None:
    """Call it once more without the compiler: what it raises there has nothing to do with compilations."""
    task = Task.of(Target(function, call.args, call.kwargs, gradients=False))
    with call.situation(), preserve_state(task), _preserved_attributes(task):
        args, kwargs = copied(call.inputs)
        try:
            function(*args, **kwargs)
        except Exception as error:
            passage.error, passage.fails_in_eager = one_line(error), True


@contextlib.contextmanager
def _preserved_attributes(task: Task) -> Iterator[None]:
    """Attributes that a module sets on itself while it runs are what they were afterwards.

    Only what differs is written: torch may watch the dictionaries.
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
