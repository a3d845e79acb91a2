"""A topic of the tour: CUDA graphs by hand and by mode, and padding so that one recording serves many sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import call_time, model_name, result_of
from compile_inspect.tour.intervals import CallTime, describe_speedup
from compile_inspect.tour.topics.call_outcomes import device_of
from compile_inspect.tour.topics.padding import MAX_LENGTH, PaddingRun, run_padded
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_CHOICES = ("the result for the new input", "the result for the old input", "an error")
NO_GPU = "CUDA graphs need an NVIDIA GPU. The effect of padding is shown by the number of compilations"


@dataclass(frozen=True)
class ManualRecording:
    """A CUDA graph with one input: its result after the name is bound to a new tensor, and after a copy into the old one.

    Each value is one entry of the result; `expected` is eager's for the new input.
    """

    model: str
    old: float
    expected: float
    rebound: float
    copied: float
    old_address: int
    new_address: int
    eager: CallTime
    replay: CallTime

    @property
    def reads_memory(self) -> bool:
        """Whether the replay returned the old result after the name was rebound, and eager differs."""
        return self.rebound == self.old != self.expected

    @property
    def copy_is_correct(self) -> bool:
        """Whether the replay agrees with eager after the new input was copied into it."""
        return math.isclose(self.copied, self.expected, rel_tol=1e-5)


@dataclass(frozen=True)
class CudaGraphs:
    """The measurements of `run_cuda_graphs`; `manual` is None where there is no GPU."""

    padding: tuple[PaddingRun, ...]
    manual: ManualRecording | None = None

    def answer(self) -> tuple[str, ...]:
        """What a recording fixes and what padding achieves, with the numbers of this run."""
        sentences = []
        recording = self.manual
        if recording is not None:
            sentences.append(
                f"A replay reads memory addresses, not Python names. After `x = new` it returned {recording.rebound:.6g}, the "
                f"old result ({recording.old:.6g}); eager returns {recording.expected:.6g} for the new input. The recording "
                "reads address "
                f"{recording.old_address:#x}; the new tensor is at {recording.new_address:#x}."
                if recording.reads_memory
                else f"After `x = new` the replay returned {recording.rebound:.6g}; before it, {recording.old:.6g}. "
                f"Eager returns {recording.expected:.6g}."
            )
            sentences.append(
                f"After `x.copy_(new)` the replay returned {recording.copied:.6g}, "
                + ("like eager." if recording.copy_is_correct else f"where eager returns {recording.expected:.6g}.")
            )
            sentences.append(
                f"An eager call of {recording.model} took {seconds(recording.eager.median)}, a replay "
                f"{seconds(recording.replay.median)}: "
                f"{describe_speedup(recording.eager, recording.replay)}."
            )
        for run in self.padding:
            recordings = "" if run.recordings is None else f" and {count(run.recordings, 'recording')}"
            sentences.append(
                f"{run.padding}: batches of lengths {', '.join(map(str, run.lengths))} needed "
                f"{count(run.compilations, 'compilation')}"
                f"{recordings}."
            )
        sentences.append(
            f"The results differ from those of unpadded sequences by at most "
            f"{max(run.difference for run in self.padding):.1g}: a mask excludes the padding."
        )
        return tuple(sentences)


def run_cuda_graphs(target: Target | None = None, *, guide: Guide | None = None) -> CudaGraphs:
    """Record a CUDA graph of a model by hand, show what a replay reads, and count recordings with and without padding.

    The default target is the tour's MLP. Without a GPU, padding is shown by compilations alone.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    manual = None
    if guide.machine.device != "cuda":
        guide.note(NO_GPU)
    elif device_of(target, guide) != "cuda":
        guide.note(
            "the tensors of this model are on the CPU, and a CUDA graph records GPU launches: no graph was recorded by hand"
        )
    else:
        manual = _record_manually(target or guide.model("mlp"), guide)
    paddings = (
        ("Padded to the longest in the batch", None, None),
        ("Padded to the longest in the batch, dynamic=False", False, None),
        (f"Padded to {MAX_LENGTH}", None, MAX_LENGTH),
    )
    with guide.working("running batches of different lengths"):
        padding_runs = tuple(run_padded(*padding, guide=guide) for padding in paddings)
    result = CudaGraphs(padding_runs, manual)
    _show_padding(result, guide)
    return result


def index_of_float_input(target: Target) -> int | None:
    """The position of the first floating-point tensor in the flat list of inputs, which can be perturbed."""
    from compile_inspect import torch_private

    leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
    indices = (index for index, leaf in enumerate(leaves) if torch_private.is_tensor(leaf) and leaf.is_floating_point())
    return next(indices, None)


def _record_manually(target: Target, guide: Guide) -> ManualRecording | None:
    """A manual recording of the model; None, with a note, where recording is not possible."""
    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    index = index_of_float_input(target)
    if index is None:
        guide.note(f"no input of {model_name(target)} is a floating-point tensor: no graph was recorded by hand")
        return None
    guide.ask("A CUDA graph was recorded with x. What does a replay return after `x = new`?", _CHOICES)
    try:
        with guide.working("recording by hand"), silence():
            recording: ManualRecording = result_of(target, lambda *args, **kwargs: _record(target, index, args, kwargs))
    except Exception as error:  # a model may do what recording forbids, such as reading a value
        guide.note(f"{model_name(target)} cannot be recorded by hand: {one_line(error)}")
        return None
    _show_manual(recording, guide)
    return recording


@contextmanager
def _without_synchronization() -> Iterator[None]:
    """Raise an error for anything that synchronizes with the GPU, because it cannot be recorded."""
    import torch

    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _record(target: Target, index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ManualRecording:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.agreement.run_outcome import named_leaves

    leaves, structure = torch_private.flatten((args, kwargs))
    x = leaves[index].detach().clone()
    new = x + 1

    def model(x: Any) -> Any:
        args, kwargs = torch_private.unflatten([*leaves[:index], x, *leaves[index + 1 :]], structure)
        tensors = [leaf for _, leaf in named_leaves(target.function(*args, **kwargs)) if torch_private.is_tensor(leaf)]
        if not tensors or not tensors[0].numel():
            raise ValueError("it returns no tensor to compare")
        return tensors[0]

    with torch.no_grad():
        expected = model(new)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries initialize at their first calls, which cannot be recorded
            for _ in range(2):
                model(x)
            # Fails here, before a failed recording can leave torch's generator in a recording state.
            with _without_synchronization():
                model(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        torch_private.clear_workspaces()  # library workspaces must belong to the recording
        with torch.cuda.graph(graph):
            result = model(x)
        torch_private.clear_workspaces()
        graph.replay()
        old = result.clone()
        entry = int((expected - old).abs().flatten().argmax())  # where the results of the two inputs differ most
        input_tensor, x = x, new  # incorrect on purpose: this rebinds the name, which the recording does not see
        graph.replay()
        rebound = result.clone()
        input_tensor.copy_(new)
        graph.replay()
        copied = result.clone()
        eager = call_time(lambda: model(input_tensor), "cuda")
        replay = call_time(graph.replay, "cuda")

    def entry_of(tensor: Any) -> float:
        return float(tensor.flatten()[entry])

    return ManualRecording(
        model_name(target),
        entry_of(old),
        entry_of(expected),
        entry_of(rebound),
        entry_of(copied),
        input_tensor.data_ptr(),
        x.data_ptr(),
        eager,
        replay,
    )


def _show_manual(recording: ManualRecording, guide: Guide) -> None:
    guide.listing(
        "Recording by hand",
        "graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph):   # launches are recorded, nothing runs\n"
        "    result = model(x)\n\nx = new; graph.replay()         # wrong: the recording reads the address of the old x\n"
        f"x.copy_(new); graph.replay()    # {'correct: ' if recording.copy_is_correct else ''}the same memory, new values",
        language="python",
    )
    rows = [
        ["eager, new input", f"{recording.expected:.6g}"],
        ["replay, old input", f"{recording.old:.6g}"],
        ["replay after x = new", f"{recording.rebound:.6g}"],
        ["replay after x.copy_(new)", f"{recording.copied:.6g}"],
    ]
    guide.table(f"One entry of the result of {recording.model}", ["Call", ">Value"], rows)
    rows = [["eager", seconds(recording.eager.median)], ["replay", seconds(recording.replay.median)]]
    guide.table(f"A call of {recording.model}", ["Call", ">Time"], rows)
    if recording.old != recording.expected:  # otherwise the two results are indistinguishable
        guide.reveal(1 if recording.reads_memory else 0)


def _show_padding(result: CudaGraphs, guide: Guide) -> None:
    rows = [
        [
            run.padding,
            ", ".join(map(str, run.lengths)),
            str(run.compilations),
            "-" if run.recordings is None else str(run.recordings),
            f"{run.difference:.1g}",
        ]
        for run in result.padding
    ]
    columns = ["Batches", "Lengths", ">Compilations", ">CUDA graphs recorded", ">Max difference"]
    guide.table("Sequences of different lengths, pooled with a mask", columns, rows)
