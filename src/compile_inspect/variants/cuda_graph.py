"""A CUDA graph around eager code, or around what Inductor makes of it: one launch for the whole call."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.base import Prepared, RefusalError, Step, Variant
from compile_inspect.variants.captured_program import FlatFunction, trace_task
from compile_inspect.variants.inductor import FROZEN_ASSUMPTIONS
from compile_inspect.variants.task import Task

WARM_UP_CALLS = 3


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
        return (
            *FROZEN_ASSUMPTIONS,
            "Parameters and buffers stay where they are in memory.",
            "No other stream uses them at the same time.",
        )

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
            program, graph, inputs = trace_task(task)
            _refuse_foreign_operators(graph)
            held = {position: program.inputs[position] for position in program.held_positions}
            if not program.fullgraph.identity_guarded.issuperset(held):
                raise RefusalError("it reads a tensor that is created or looked up anew at every call")
            if self.around == "eager":
                replays = ReplayedFunction(lambda tensors: program.function(*tensors), held, inputs)
            else:
                compiled = torch_private.compile_graph(graph, inputs)
                replays = ReplayedFunction(lambda tensors: compiled(*tensors), held, inputs)

        def run(*args: Any, **kwargs: Any) -> Step:
            return program.run(replays, args, kwargs)

        run(*task.args, **task.kwargs)
        return Prepared(self, run, None, 0.0, replays, program)


def _refuse_foreign_operators(graph: Any) -> None:
    """Refuse operators that are not torch's own: what their code reads is neither in the graph nor guarded."""
    import torch

    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in ("aten", "prims"):
            raise RefusalError(f"it calls {node.target}, and a recording would freeze what that operator reads")


class GraphRecording:
    """One recording: the addresses of its inputs, and the memory for its outputs."""

    def __init__(self, flat: FlatFunction, tensors: list[Any]) -> None:
        import torch

        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        # Warm up gradients on the stream of the recording too: it would wait for work on the default stream.
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(WARM_UP_CALLS):
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

    def outputs_unused(self) -> bool:
        """Whether nobody else refers to the memory of the outputs anymore."""
        for count, storage, uses in self.uses:  # noqa: SIM110 (a generator would cost a microsecond)
            if count(storage) != uses:
                return False
        return True


class ReplayedFunction:
    """A function of tensors as recordings, safe to call at any time with any inputs of the same kind.

    One recording reads the inputs at the addresses of the example's: many programs reuse the same memory. It returns its
    own outputs while nobody holds those of the call before. In every other case a second recording is used, which has
    buffers for its inputs, and its outputs are copied. Parameters and buffers are read at their own addresses.
    """

    def __init__(self, flat: FlatFunction, held: dict[int, Any], inputs: list[Any]) -> None:
        self.pointers = [tensor.data_ptr for tensor in held.values()]
        self.held_addresses = [pointer() for pointer in self.pointers]
        self._input_positions = [position for position in range(len(inputs)) if position not in held]
        self._buffers = [inputs[position].clone() for position in self._input_positions]
        self.addresses = [inputs[position].data_ptr() for position in self._input_positions]
        buffered = list(inputs)
        for position, buffer in zip(self._input_positions, self._buffers, strict=True):
            buffered[position] = buffer
        self._buffered_recording = GraphRecording(flat, buffered)
        self.direct = GraphRecording(flat, inputs)

    def tensors_in_place(self) -> bool:
        """Whether all parameters and other held tensors are still at the addresses that the recordings read."""
        return [pointer() for pointer in self.pointers] == self.held_addresses

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """The outputs, which later calls do not overwrite."""
        call_inputs = [tensors[position] for position in self._input_positions]
        if [tensor.data_ptr() for tensor in call_inputs] == self.addresses and self.direct.outputs_unused():
            self.direct.graph.replay()
            return [output.detach() for output in self.direct.outputs]
        self._fill(call_inputs)
        self._buffered_recording.graph.replay()
        return [output.clone() for output in self._buffered_recording.outputs]

    def call_reusing_outputs(self, tensors: list[Any]) -> list[Any]:
        """The outputs, in memory that the next call overwrites."""
        call_inputs = [tensors[position] for position in self._input_positions]
        if [tensor.data_ptr() for tensor in call_inputs] == self.addresses:
            self.direct.graph.replay()
            return self.direct.outputs
        self._fill(call_inputs)
        self._buffered_recording.graph.replay()
        return self._buffered_recording.outputs

    def _fill(self, call_inputs: list[Any]) -> None:
        import torch

        if self._buffers:
            torch._foreach_copy_(self._buffers, call_inputs)
