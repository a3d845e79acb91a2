"""A CUDA graph around eager code, or around what Inductor makes of it: one launch for everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.variants.base import Prepared, Step, Variant
from compile_inspect.variants.functional import Flat, Functional, traced
from compile_inspect.variants.inductor import FROZEN
from compile_inspect.variants.task import Task

WARM_UPS = 3


@dataclass(frozen=True)
class CudaGraph(Variant):
    """The launches of one call recorded once and replayed, reading inputs from buffers of their own."""

    around: str = "inductor"

    @property
    def name(self) -> str:
        """`cuda-graph/eager` or `cuda-graph/inductor`."""
        return f"cuda-graph/{self.around}"

    @property
    def assumes(self) -> tuple[str, ...]:
        """Everything but the contents of tensors is frozen."""
        return (*FROZEN, "Parameters and buffers stay where they are in memory.", "No other stream uses them meanwhile.")

    @property
    def exact(self) -> bool:
        """Around eager, the kernels are eager's."""
        return self.around == "eager"

    def refusal(self, task: Task) -> str | None:
        """CUDA only."""
        return None if task.device == "cuda" else "CUDA graphs need tensors on a CUDA device"

    def build(self, task: Task) -> Prepared:
        """Trace, warm up on a stream of its own, record."""
        with torch_private.suppressed_compiler_output():
            functional, graph, inputs = traced(task)
            if self.around == "eager":
                launch = Recorded(lambda tensors: functional.function(*tensors), functional, inputs)
            else:
                compiled = torch_private.compile_graph(graph, inputs)
                launch = Recorded(lambda tensors: compiled(*tensors), functional, inputs)

        def run(*args: Any, **kwargs: Any) -> Step:
            import torch

            with torch.no_grad():
                return functional.step([output.clone() for output in launch(functional.tensors(args, kwargs))])

        run(*task.args, **task.kwargs)
        return Prepared(self, run, None, 0.0, launch)


class Recorded:
    """A recorded graph with its buffers. Outputs are its own memory: the next replay overwrites them."""

    def __init__(self, flat: Flat, functional: Functional, inputs: list[Any]) -> None:
        import torch

        self.held = len(functional.task.held)
        # Held tensors are read where they lie, so that an optimizer's changes are seen; inputs are copied in.
        self.buffers = [tensor if index < self.held else tensor.clone() for index, tensor in enumerate(inputs)]
        self.addresses = [tensor.data_ptr() for tensor in self.buffers[: self.held]]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(WARM_UPS):
                flat(list(self.buffers))
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream), torch.no_grad():
            self.outputs = flat(list(self.buffers))
        self._inputs = self.buffers[self.held :]

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """Copy the inputs in and replay."""
        for buffer, tensor in zip(self._inputs, tensors[self.held :], strict=True):
            buffer.copy_(tensor)
        self.graph.replay()
        return self.outputs
