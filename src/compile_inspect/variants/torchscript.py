"""TorchScript, by tracing one call or by compiling the source."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from compile_inspect.variants.base import Prepared, RefusalError, Variant
from compile_inspect.variants.task import Task


@dataclass(frozen=True)
class TorchScript(Variant):
    """`torch.jit.trace` or `torch.jit.script`; deprecated, but still in use."""

    how: str = "trace"

    @property
    def name(self) -> str:
        """`torchscript/trace` or `torchscript/script`."""
        return f"torchscript/{self.how}"

    @property
    def assumes(self) -> tuple[str, ...]:
        """A trace follows one path through the code."""
        if self.how == "trace":
            return ("Every branch takes the path it took for the traced inputs.", "Python values stay as they were.")
        return ("Python values of the closure and of modules stay as they were.",)

    def refusal(self, task: Task) -> str | None:
        """Keyword arguments cannot be traced."""
        if self.how == "trace" and task.kwargs:
            return "torch.jit.trace takes positional inputs only"
        return None

    def build(self, task: Task) -> Prepared:
        """Trace or script, then make the calls in which TorchScript specializes."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.how == "trace":
                with torch.set_grad_enabled(task.gradients):
                    compiled = torch.jit.trace(task.function, task.args, check_trace=False)  # type: ignore[no-untyped-call]
            elif self.how == "script":
                compiled = torch.jit.script(task.function)
            else:
                raise RefusalError(f"there is no TorchScript by {self.how!r}: it is trace or script")
            for _ in range(3):
                task.run(compiled, task.args, task.kwargs)
        return Prepared(self, lambda *args, **kwargs: task.run(compiled, args, kwargs), compiled, 0.0)
