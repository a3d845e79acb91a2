"""A CUDA graph around eager code, or around what Inductor makes of it: one launch for the whole call."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.base import Prepared, Refused, Step, Variant
from compile_inspect.variants.inductor import FROZEN
from compile_inspect.variants.program import Flat, traced
from compile_inspect.variants.task import Task

WARM_UPS = 3


@dataclass(frozen=True)
class CudaGraph(Variant):
    """The launches of one call, recorded once and replayed; inputs are read from separate buffers."""

    around: str = "inductor"

    @property
    def name(self) -> str:
        """`cuda-graph/eager` or `cuda-graph/inductor`."""
        return f"cuda-graph/{self.around}"

    @property
    def assumes(self) -> tuple[str, ...]:
        """Everything except the contents of tensors is frozen."""
        return (*FROZEN, "Parameters and buffers stay where they are in memory.", "No other stream uses them meanwhile.")

    @property
    def exact(self) -> bool:
        """Around eager, the kernels are eager's."""
        return self.around == "eager"

    def refusal(self, task: Task) -> str | None:
        """CUDA only."""
        return None if task.device == "cuda" else "CUDA graphs need tensors on a CUDA device"

    def build(self, task: Task) -> Prepared:
        """Trace, warm up on a separate stream, record."""
        with torch_private.suppressed_compiler_output():
            program, graph, inputs = traced(task)
            _refuse_foreign_operators(graph)
            held = {place: program.inputs[place] for place in program.held}
            if not program.whole.identified.issuperset(held):
                raise Refused("it reads a tensor that is created or looked up anew at every call")
            if self.around == "eager":
                replays = Replays(lambda tensors: program.function(*tensors), held, inputs)
            else:
                compiled = torch_private.compile_graph(graph, inputs)
                replays = Replays(lambda tensors: compiled(*tensors), held, inputs)

        def run(*args: Any, **kwargs: Any) -> Step:
            return program.run(replays, args, kwargs)

        run(*task.args, **task.kwargs)
        return Prepared(self, run, None, 0.0, replays, program)


def _refuse_foreign_operators(graph: Any) -> None:
    """Refuse operators that are not torch's own: what their code reads is neither in the graph nor guarded."""
    import torch

    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in ("aten", "prims"):
            raise Refused(f"it calls {node.target}, and a recording would freeze what that operator reads")


class Recorded:
    """One recording: the addresses of its inputs, and the memory for its outputs."""

    def __init__(self, flat: Flat, tensors: list[Any]) -> None:
        import torch

        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        # Warm up gradients on the stream of the recording too: it would wait for work on the default stream.
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(WARM_UPS):
                flat(list(tensors))
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # The recording needs a workspace in its own memory. Inductor's CUDA graphs release all shared workspaces, and a
        # replay that still uses one reads and writes memory that belongs to something else by then.
        torch_private.clear_workspaces()
        try:
            with torch.cuda.graph(self.graph, stream=stream), torch.no_grad():
                self.outputs = flat(list(tensors))
        except BaseException:
            # A failed recording must not prevent others: the stream may still be capturing.
            with contextlib.suppress(RuntimeError), torch.cuda.stream(stream):
                if torch.cuda.is_current_stream_capturing():
                    self.graph.capture_end()
            raise
        finally:
            torch_private.clear_workspaces()
        count, storages = torch_private.storage_uses(self.outputs)
        self.uses = [(count, storage, count(storage)) for storage in storages]

    def free(self) -> bool:
        """Whether nobody else refers to the memory of the outputs anymore."""
        for count, storage, uses in self.uses:  # noqa: SIM110 (a generator would cost a microsecond)
            if count(storage) != uses:
                return False
        return True


class Replays:
    """A function of tensors as recordings, safe to call at any time with any inputs of the same kind.

    One recording reads the inputs at the addresses of the example's: many programs reuse the same memory. It returns its
    own outputs while nobody holds those of the call before. In every other case a second recording is used, which has
    buffers for its inputs, and its outputs are copied. Parameters and buffers are read at their own addresses.
    """

    def __init__(self, flat: Flat, held: dict[int, Any], inputs: list[Any]) -> None:
        self.pointers = [tensor.data_ptr for tensor in held.values()]
        self.held_addresses = [pointer() for pointer in self.pointers]
        self._given = [place for place in range(len(inputs)) if place not in held]
        self._buffers = [inputs[place].clone() for place in self._given]
        self.addresses = [inputs[place].data_ptr() for place in self._given]
        buffered = list(inputs)
        for place, buffer in zip(self._given, self._buffers, strict=True):
            buffered[place] = buffer
        self._buffered = Recorded(flat, buffered)
        self.direct = Recorded(flat, inputs)

    def in_place(self) -> bool:
        """Whether all parameters and other held tensors are still at the addresses that the recordings read."""
        return [pointer() for pointer in self.pointers] == self.held_addresses

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """The outputs, which later calls do not overwrite."""
        given = [tensors[place] for place in self._given]
        if [tensor.data_ptr() for tensor in given] == self.addresses and self.direct.free():
            self.direct.graph.replay()
            return [output.detach() for output in self.direct.outputs]
        self._fill(given)
        self._buffered.graph.replay()
        return [output.clone() for output in self._buffered.outputs]

    def reusing(self, tensors: list[Any]) -> list[Any]:
        """The outputs, in memory that the next call overwrites."""
        given = [tensors[place] for place in self._given]
        if [tensor.data_ptr() for tensor in given] == self.addresses:
            self.direct.graph.replay()
            return self.direct.outputs
        self._fill(given)
        self._buffered.graph.replay()
        return self._buffered.outputs

    def _fill(self, given: list[Any]) -> None:
        import torch

        if self._buffers:
            torch._foreach_copy_(self._buffers, given)
