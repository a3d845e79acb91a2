"""Compiled packages for programs that capture functions themselves, such as the solver: build, store, load, replay.

A `Task` captures a function as one graph under a guard, or raises `RefusalError`. A `Build` compiles it in another process,
a `DecisionCache` stores packages on disk under the key that `program_key` returns, and `load_package` loads one. A
`GraphRecording` is a CUDA graph of a function, which `replay_function` runs and `stream_waiter` waits for.
"""

from __future__ import annotations

from compile_inspect.torch_private import load_package, replay_function, stream_waiter
from compile_inspect.tuning.background import Build
from compile_inspect.tuning.cache_key import program_key
from compile_inspect.tuning.decision_cache import DecisionCache
from compile_inspect.tuning.selection import decide
from compile_inspect.variants import RefusalError
from compile_inspect.variants.cuda_graph import GraphRecording
from compile_inspect.variants.task import Task

__all__ = [
    "Build",
    "DecisionCache",
    "GraphRecording",
    "RefusalError",
    "Task",
    "decide",
    "load_package",
    "program_key",
    "replay_function",
    "stream_waiter",
]
