"""torch.compile, by backend, mode, shapes and strictness."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.variants.base import Prepared, Variant
from compile_inspect.variants.task import Task

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
EAGER_KERNELS = ("eager", "aot_eager", "cudagraphs")


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
        parts = [self.backend]
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

    def refusal(self, task: Task) -> str | None:
        """CUDA graphs need CUDA, and modes need Inductor."""
        if self.backend == "cudagraphs" and task.device != "cuda":
            return "the backend cudagraphs needs tensors on a CUDA device"
        if self.mode == "reduce-overhead" and task.device != "cuda":
            return "reduce-overhead means CUDA graphs; on a CPU it is the same as the default mode"
        return None

    def build(self, task: Task) -> Prepared:
        """Compile by calling it three times: dynamic shapes and CUDA graphs settle on the second and third."""
        import torch

        # A function of its own: a mode compiled before must not be found in the cache of this one.
        mode = None if self.mode == "default" else self.mode
        compiled = torch.compile(task.function, backend=self.backend, mode=mode, dynamic=self.dynamic, fullgraph=self.fullgraph)

        def run(*args: object, **kwargs: object) -> object:
            if "cudagraph" in self.backend or self.mode in ("reduce-overhead", "max-autotune"):
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
            return task.run(compiled, args, kwargs)

        for _ in range(3):
            run(*task.args, **task.kwargs)
        return Prepared(self, run, compiled, 0.0)  # type: ignore[arg-type]
