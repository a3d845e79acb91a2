"""torch.compile, by backend, mode, shapes and fullgraph."""

from __future__ import annotations

import inspect as python_inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.records.timing import Doubt
from compile_inspect.torch_private.compilation_watch import CompilationWatch
from compile_inspect.variants.base import Prepared, Variant
from compile_inspect.variants.task import Task

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_MIN_CALLS = 3


@dataclass(frozen=True)
class Compiled(Variant):
    """`torch.compile(function, backend=…, mode=…, dynamic=…, fullgraph=…)`."""

    backend: str = "inductor"
    mode: str | None = None
    dynamic: bool | None = None
    fullgraph: bool = False

    @property
    def name(self) -> str:
        """The backend, then what differs from the default: `inductor/max-autotune/dynamic/fullgraph`."""
        parts = ["eager-backend" if self.backend == "eager" else self.backend]
        if self.mode is not None:
            parts.append(self.mode)
        if self.dynamic is not None:
            parts.append("dynamic" if self.dynamic else "static")
        if self.fullgraph:
            parts.append("fullgraph")
        return "/".join(parts)

    @property
    def exact(self) -> bool:
        """Backends that run eager's own kernels must give eager's own results."""
        return self.backend == "eager"

    def reuses_output_buffers(self, task: Task) -> bool:
        """The CUDA graphs of torch.compile write every result to the same memory."""
        return task.device == "cuda" and (self.backend == "cudagraphs" or self.mode in ("reduce-overhead", "max-autotune"))

    def refusal(self, task: Task) -> str | None:
        """CUDA graphs need CUDA, and modes need Inductor."""
        if self.backend == "cudagraphs" and task.device != "cuda":
            return "the backend cudagraphs needs tensors on a CUDA device"
        if self.mode == "reduce-overhead" and task.device != "cuda":
            return "reduce-overhead means CUDA graphs; on a CPU it is the same as the default mode"
        return None

    def build(self, task: Task) -> Prepared:
        """Compile by calling it until a call compiles nothing, and at least three times, which CUDA graphs need.

        A function that is compiled again at every call is called until torch reaches its recompile limit.
        """
        import torch

        mode = None if self.mode == "default" else self.mode
        # Dynamo caches compiled code by code object and backend, so it would reuse code made with other options.
        function = task.function if self.dynamic is None and not self.fullgraph else _with_separate_code(task.function)
        choices: dict[str, Any] = {"mode": mode, "dynamic": self.dynamic, "fullgraph": self.fullgraph}
        if "isolate_recompiles" in python_inspect.signature(torch.compile).parameters:
            # Otherwise other variants' compilations count toward this one's limit, past which Dynamo silently runs eager.
            choices["isolate_recompiles"] = True
        compiled = torch.compile(function, backend=self.backend, **choices)

        def run(*args: object, **kwargs: object) -> object:
            if "cudagraph" in self.backend or self.mode in ("reduce-overhead", "max-autotune"):
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
            return task.run(compiled, args, kwargs)

        max_calls = _MIN_CALLS + (torch_private.recompile_limit("recompile_limit") or 0)
        leaves, structure = torch_private.flatten((task.args, dict(task.kwargs)))
        with CompilationWatch() as watch:
            for number in range(1, max_calls + 1):
                # The function may add to, or remove from, a list or dictionary that is passed to it.
                frames, (args, kwargs) = watch.frames, torch_private.unflatten(leaves, structure)
                run(*args, **kwargs)
                if number >= _MIN_CALLS and watch.frames == frames:
                    break
        return Prepared(self, run, compiled, 0.0, eager_because=_reason_for_eager(watch))  # type: ignore[arg-type]


def _reason_for_eager(watch: CompilationWatch) -> Doubt | None:
    if watch.reached_limit:
        return Doubt.RECOMPILE_LIMIT
    # Where Dynamo compiled no frame, everything was compiled before.
    return Doubt.NO_GRAPH if watch.frames and not watch.operations else None


def _with_separate_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function behind a separate code object."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    # In a separate file too, because Dynamo may skip this one.
    code = call.__code__.replace(co_filename="<separate code>")
    return types.FunctionType(code, call.__globals__, "call", None, call.__closure__)
