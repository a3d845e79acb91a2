"""Compiled packages for programs that capture functions themselves, such as the solver: build, store, load, replay.

A `Task` captures a function as one graph under a guard, or raises `Refused`. A `Build` compiles it in another process, a
`Store` stores packages on disk under the key that `program_key` returns, and `load_package` loads one. `Recorded` is a CUDA
graph of a function, which `replay` runs and `waiter` waits for.
"""

from __future__ import annotations

from compile_inspect.torch_private import load_package, replay, waiter
from compile_inspect.tuning.background import Build
from compile_inspect.tuning.choosing import decide
from compile_inspect.tuning.key import program_key
from compile_inspect.tuning.store import Store
from compile_inspect.variants import Refused
from compile_inspect.variants.cuda_graph import Recorded
from compile_inspect.variants.task import Task

__all__ = ["Build", "Recorded", "Refused", "Store", "Task", "decide", "load_package", "program_key", "replay", "waiter"]
