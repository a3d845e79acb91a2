"""A chapter of the tour: CUDA graphs by hand and by mode, and sizes made equal so that one recording serves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import call_time, model_name, result_of
from compile_inspect.tour.chapters.padding import LONGEST, PaddingRun, run_padded
from compile_inspect.tour.chapters.watching import device_of
from compile_inspect.tour.intervals import CallTime, times_as_fast
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_CHOICES = ("the result for the new input", "the result for the old input", "an error")
NO_GPU = "a CUDA graph needs an NVIDIA GPU; padding, which is what makes one recording serve, is shown by its compilations"


@dataclass(frozen=True)
class ByHand:
    """A recording that reads one tensor: what it gives after the name was bound to another tensor, and after a copy.

    Each is one entry of the result; `right` is what eager gives for the new input.
    """

    model: str
    old: float
    right: float
    rebound: float
    copied: float
    old_address: int
    new_address: int
    eager: CallTime
    replay: CallTime

    @property
    def reads_memory(self) -> bool:
        """Whether the replay gave the old result after the name was bound anew, where the new one is another."""
        return self.rebound == self.old != self.right

    @property
    def copy_is_right(self) -> bool:
        """Whether the replay gave what eager gives, after the new input was copied into place."""
        return math.isclose(self.copied, self.right, rel_tol=1e-5)


@dataclass(frozen=True)
class CudaGraphs:
    """What `run_cuda_graphs` has measured; `by_hand` is None where there is no GPU."""

    padding: tuple[PaddingRun, ...]
    by_hand: ByHand | None = None

    def answer(self) -> tuple[str, ...]:
        """What a recording freezes, and what padding is for, in figures of this run."""
        told = []
        hand = self.by_hand
        if hand is not None:
            told.append(
                f"A replay reads memory, not names. After `x = new` it gave {hand.rebound:.6g}, the old result "
                f"({hand.old:.6g}), where eager gives {hand.right:.6g} for the new input. The recording reads address "
                f"{hand.old_address:#x}, the new tensor lies at {hand.new_address:#x}."
                if hand.reads_memory
                else f"After `x = new` the replay gave {hand.rebound:.6g}, before {hand.old:.6g}, and eager {hand.right:.6g}."
            )
            told.append(
                f"After `x.copy_(new)` the replay gave {hand.copied:.6g}, "
                + ("as eager does." if hand.copy_is_right else f"where eager gives {hand.right:.6g}.")
            )
            told.append(
                f"An eager call of {hand.model} took {seconds(hand.eager.median)}, a replay {seconds(hand.replay.median)}: "
                f"{times_as_fast(hand.eager, hand.replay)}."
            )
        for run in self.padding:
            recorded = "" if run.recorded is None else f" and {count(run.recorded, 'recording')}"
            told.append(
                f"{run.way}: batches of lengths {', '.join(map(str, run.lengths))} took {count(run.compiled, 'compilation')}"
                f"{recorded}."
            )
        told.append(
            f"The results differ from those of the sequences one by one by at most "
            f"{max(run.difference for run in self.padding):.1g}: a mask keeps the padding out."
        )
        return tuple(told)


def run_cuda_graphs(target: Target | None = None, *, guide: Guide | None = None) -> CudaGraphs:
    """Record a model by hand, show what a replay reads, and count recordings with and without padding.

    Without a target it is the tour's MLP that is recorded. Without a GPU, padding is shown by compilations alone.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    by_hand = None
    if guide.machine.device != "cuda":
        guide.note(NO_GPU)
    elif device_of(target, guide) != "cuda":
        guide.note("the tensors of this model are on the CPU, and a CUDA graph holds launches of a GPU: none is made by hand")
    else:
        by_hand = _recorded_by_hand(target or guide.model("mlp"), guide)
    ways = (
        ("Padded to the longest of the batch", None, None),
        ("Padded to the longest of the batch, dynamic=False", False, None),
        (f"Padded to {LONGEST}", None, LONGEST),
    )
    with guide.working("batches of other lengths"):
        padding = tuple(run_padded(*way, guide=guide) for way in ways)
    found = CudaGraphs(padding, by_hand)
    _show_padding(found, guide)
    return found


def place_of_input(target: Target) -> int | None:
    """Which of the inputs, as a flat list, can be moved a little: the first tensor of floating-point numbers."""
    from compile_inspect import torch_private

    leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
    places = (index for index, leaf in enumerate(leaves) if torch_private.is_tensor(leaf) and leaf.is_floating_point())
    return next(places, None)


def _recorded_by_hand(target: Target, guide: Guide) -> ByHand | None:
    """A recording of the model; None, with a note, where there can be none."""
    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    place = place_of_input(target)
    if place is None:
        guide.note(f"no input of {model_name(target)} is a tensor of floating-point numbers: none is made by hand")
        return None
    guide.guess("A graph was recorded with x. What does a replay give after `x = new`?", _CHOICES)
    try:
        with guide.working("recording by hand"), silence():
            found: ByHand = result_of(target, lambda *args, **kwargs: _by_hand(target, place, args, kwargs))
    except Exception as error:  # what a model does may be forbidden while it is recorded: to read a value, for example
        guide.note(f"{model_name(target)} cannot be recorded by hand: {one_line(error)}")
        return None
    _show_by_hand(found, guide)
    return found


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Whatever makes the processor wait for the GPU raises an error: it cannot be recorded."""
    import torch

    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _by_hand(target: Target, place: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ByHand:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.agreement.run_outcome import named_leaves

    leaves, structure = torch_private.flatten((args, kwargs))
    x = leaves[place].detach().clone()
    new = x + 1

    def model(given: Any) -> Any:
        args, kwargs = torch_private.unflatten([*leaves[:place], given, *leaves[place + 1 :]], structure)
        tensors = [leaf for _, leaf in named_leaves(target.function(*args, **kwargs)) if torch_private.is_tensor(leaf)]
        if not tensors or not tensors[0].numel():
            raise ValueError("it gives no tensor to look at")
        return tensors[0]

    with torch.no_grad():
        right = model(new)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries set themselves up at their first calls, which cannot be recorded
            for _ in range(2):
                model(x)
            with _without_waiting():  # told now, before a recording that fails leaves torch's generator in its midst
                model(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        torch_private.clear_workspaces()  # a library's own memory must be the recording's too
        with torch.cuda.graph(graph):
            result = model(x)
        torch_private.clear_workspaces()
        graph.replay()
        old = result.clone()
        entry = int((right - old).abs().flatten().argmax())  # where the two inputs make the largest difference
        recorded, x = x, new  # the wrong way: the name is another tensor's now, and the recording knows no names
        graph.replay()
        rebound = result.clone()
        recorded.copy_(new)
        graph.replay()
        copied = result.clone()
        eager = call_time(lambda: model(recorded), "cuda")
        replay = call_time(graph.replay, "cuda")

    def figure(tensor: Any) -> float:
        return float(tensor.flatten()[entry])

    return ByHand(
        model_name(target),
        figure(old),
        figure(right),
        figure(rebound),
        figure(copied),
        recorded.data_ptr(),
        x.data_ptr(),
        eager,
        replay,
    )


def _show_by_hand(hand: ByHand, guide: Guide) -> None:
    guide.listing(
        "By hand",
        "graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph):   # nothing runs, launches are written down\n"
        "    result = model(x)\n\nx = new; graph.replay()         # wrong: the recording reads where the old x lies\n"
        f"x.copy_(new); graph.replay()    # {'right: ' if hand.copy_is_right else ''}the same memory, with other numbers",
        language="python",
    )
    rows = [
        ["eager, new input", f"{hand.right:.6g}"],
        ["replay, old input", f"{hand.old:.6g}"],
        ["replay after x = new", f"{hand.rebound:.6g}"],
        ["replay after x.copy_(new)", f"{hand.copied:.6g}"],
    ]
    guide.table(f"One entry of the result of {hand.model}", ["Way", ">Value"], rows)
    rows = [["eager", seconds(hand.eager.median)], ["replay", seconds(hand.replay.median)]]
    guide.table(f"A call of {hand.model}", ["Way", ">Time"], rows)
    if hand.old != hand.right:  # otherwise the two results cannot be told apart
        guide.settle(1 if hand.reads_memory else 0)


def _show_padding(found: CudaGraphs, guide: Guide) -> None:
    rows = [
        [
            run.way,
            ", ".join(map(str, run.lengths)),
            str(run.compiled),
            "-" if run.recorded is None else str(run.recorded),
            f"{run.difference:.1g}",
        ]
        for run in found.padding
    ]
    columns = ["Batches", "Lengths", ">Compilations", ">CUDA graphs recorded", ">Largest difference"]
    guide.table("Sequences of many lengths, pooled with a mask", columns, rows)
