"""A CUDA graph around eager code, or around what Inductor makes of it: one launch for everything."""

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
            program, graph, inputs = traced(task)
            _refuse_foreign_operators(graph)
            held = {place: program.inputs[place] for place in program.held}
            if not program.whole.identified.issuperset(held):
                raise Refused("it reads a tensor that is made anew, or found in another way, at every call")
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
            raise Refused(f"it calls {node.target}, and a recording would freeze whatever that reads")


class Recorded:
    """One recording: where it reads its inputs, and the memory it writes its outputs to."""

    def __init__(self, flat: Flat, tensors: list[Any]) -> None:
        import torch

        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        # Gradients too are warmed up on the stream of the recording: what the default stream did would be waited for.
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(WARM_UPS):
                flat(list(tensors))
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # The recording must have a workspace in memory of its own. Inductor's CUDA graphs let go of all shared ones, and
        # a replay that still uses one reads and writes what belongs to others by then.
        torch_private.clear_workspaces()
        try:
            with torch.cuda.graph(self.graph, stream=stream), torch.no_grad():
                self.outputs = flat(list(tensors))
        except BaseException:
            # What could not be recorded must not keep others from being: the stream may still be recording.
            with contextlib.suppress(RuntimeError), torch.cuda.stream(stream):
                if torch.cuda.is_current_stream_capturing():
                    self.graph.capture_end()
            raise
        finally:
            torch_private.clear_workspaces()
        count, storages = torch_private.storage_uses(self.outputs)
        self.uses = [(count, storage, count(storage)) for storage in storages]

    def free(self) -> bool:
        """Whether nobody else looks at the memory of the outputs any more."""
        for count, storage, uses in self.uses:  # noqa: SIM110 (a generator would cost a microsecond)
            if count(storage) != uses:
                return False
        return True


class Replays:
    """A function of tensors as recordings, safe to call at any time with any inputs of the same kind.

    One recording reads the inputs where the example's were: many programs come back to the same memory. It hands out
    its own outputs as long as nobody holds those of the call before. In every other case the second one is used, which
    has buffers for its inputs, and its outputs are copied. Parameters and buffers are read where they lie.
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
        """Whether all parameters and other held tensors still lie where the recordings read them."""
        return [pointer() for pointer in self.pointers] == self.held_addresses

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """The outputs, which stay as they are whatever is called next."""
        given = [tensors[place] for place in self._given]
        if [tensor.data_ptr() for tensor in given] == self.addresses and self.direct.free():
            self.direct.graph.replay()
            return [output.detach() for output in self.direct.outputs]
        self._fill(given)
        self._buffered.graph.replay()
        return [output.clone() for output in self._buffered.outputs]

    def reusing(self, tensors: list[Any]) -> list[Any]:
        """The outputs in memory that the next call overwrites."""
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
