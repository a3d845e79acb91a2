"""A chapter of the tour: the forward and backward graphs that AOTAutograd makes of one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compile_inspect.records import Direction, Graph, Inspection, Stage
from compile_inspect.tour.calls import difference, is_steady, model_name, result_of
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_MOST_NAMES = 8
_CHOICES = ("the results of all its operations", "only some tensors", "nothing")


@dataclass(frozen=True)
class Saved:
    """A tensor that the forward hands to the backward."""

    name: str
    form: str


@dataclass(frozen=True)
class AutogradGraphs:
    """What `run_autograd_graphs` has found: sizes of the graphs, and what goes from the one to the other."""

    model: str
    backend: str
    captured: int
    """Operations of the graph that Dynamo captured."""
    forward: int
    backward: int
    saved: tuple[Saved, ...]
    recomputed: tuple[str, ...]
    """Nodes of the backward that the forward computes as well."""
    kernels: tuple[tuple[str, str, int], ...] = ()
    """Direction, name and number of nodes of each kernel."""
    gradient_difference: float | None = 0.0
    """From eager; None where the model draws random numbers, which compiled code may draw otherwise."""
    saved_results: int = 0
    """Saved tensors that an operation of the forward has computed; the others are its inputs."""
    has_backward: bool = True
    """Whether a backward was compiled at all; it may be without operations, as that of `x + 1` is."""
    checkpointed: bool = False
    """Whether the captured graph asks for some of it to be computed again."""

    @property
    def verdict(self) -> int:
        """Which choice of the quiz the run has shown to be right."""
        return 2 if not self.saved else 0 if self.saved_results >= self.forward else 1

    def answer(self) -> tuple[str, ...]:
        """What the graphs hold, in figures of this run."""
        if not self.has_backward:
            return ()
        told = [
            f"Dynamo captured {count(self.captured, 'operation')} of {self.model}. AOTAutograd made a forward of "
            f"{self.forward} and a backward of {self.backward} out of them, before the first backward ran.",
            f"The forward saves {count(len(self.saved), 'tensor')} for the backward: "
            + _first([f"{item.name} ({item.form})" for item in self.saved])
            + "."
            if self.saved
            else "The forward saves nothing for the backward.",
        ]
        if self.recomputed:
            asked = "; the model asks for such by checkpoint" if self.checkpointed else ""
            told.append(
                f"The backward computes {count(len(self.recomputed), 'operation')} of the forward again: "
                f"{_first(self.recomputed)}{asked}."
            )
        else:
            told.append("The backward computes nothing of the forward again.")
        if self.kernels:
            parts = [
                f"{sum(way == direction for way, _, _ in self.kernels)} in the {direction}"
                for direction in ("forward", "backward")
            ]
            told.append(f"Kernels and library calls that Inductor made of them: {' and '.join(parts)}.")
        told.append(
            "Gradients are not compared with those of eager: the model draws random numbers, and compiled code may draw others."
            if self.gradient_difference is None
            else f"No gradient differs from that of eager by more than {self.gradient_difference:.1g}."
        )
        return tuple(told)


def _first(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are.

    >>> _first(["a", "b"]), _first("abcdefghij")
    ('a, b', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def squashed(x: Any, weight: Any) -> Any:
    """A product, and a chain of cheap operations on it: some of it is worth saving, some not."""
    import torch

    hidden = x @ weight
    return (torch.nn.functional.gelu(hidden) * hidden.cos()).sum()


def run_autograd_graphs(target: Target | None = None, *, guide: Guide | None = None) -> AutogradGraphs:
    """Compile a function with its backward, and look at the graphs of both.

    Without a target it is a product with a gelu and a cosine after it. Where Inductor cannot run, the graphs are those of
    the backend aot_eager.
    """
    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    backend = "inductor" if guide.machine.inductor else "aot_eager"
    if not guide.machine.inductor:
        guide.note(f"{guide.machine.lacking}; the graphs are shown, kernels are not")
    target = target or _own_target(guide.machine.device)
    with silence():
        differentiable = result_of(target, lambda *args, **kwargs: bool(_differentiable(target.function(*args, **kwargs))))
    if not differentiable:
        guide.note(f"no result of {model_name(target)} has a gradient, so there is no backward to show")
        return AutogradGraphs(model_name(target), backend, 0, 0, 0, (), (), has_backward=False)
    guide.guess("What does a forward save for its backward?", _CHOICES)
    torch_private.forget_compiled_code()
    with guide.working(f"compiling forward and backward with {backend}"), silence():
        expected, steady = _gradients(target, target.function), is_steady(target)
        # Kernels that come from a cache have forgotten their nodes.
        with torch_private.without_graph_caches(), record() as recording:
            found = _gradients(target, _compiled(target, backend))
    torch_private.forget_compiled_code()
    graphs = _read(model_name(target), backend, recording.inspection, difference(found, expected) if steady else None)
    _show(graphs, recording.inspection, guide)
    return graphs


def _own_target(device: str) -> Target:
    import torch

    from compile_inspect.target import Target

    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(8, 16, generator=generator), torch.randn(16, 16, generator=generator)
    return Target(squashed, (x.to(device), weight.to(device).requires_grad_()))


def _compiled(target: Target, backend: str) -> Callable[..., Any]:
    import torch

    compiled: Callable[..., Any] = torch.compile(target.function, backend=backend)
    return compiled


def _gradients(target: Target, function: Callable[..., Any]) -> list[Any]:
    """The gradients of the sum of all results, by all that the function holds or is given and that wants one.

    From one seed, on copies of the inputs; nothing is left behind.
    """
    import torch

    from compile_inspect.variants import Task

    task = replace(Task.of(target), gradients=True)

    def slopes(*args: Any, **kwargs: Any) -> list[Any]:
        outputs = _differentiable(function(*args, **kwargs))
        wanted = task.differentiated_tensors(args, kwargs)
        if not wanted or not outputs:
            return []
        ones = [torch.ones_like(output) for output in outputs]
        return list(torch.autograd.grad(outputs, wanted, ones, allow_unused=True))

    slopes_found: list[Any] = result_of(target, slopes)
    return slopes_found


def _differentiable(result: Any) -> list[Any]:
    """The tensors of a result that require a gradient, wherever they are in it."""
    from compile_inspect import torch_private
    from compile_inspect.agreement.run_outcome import named_leaves

    return [leaf for _, leaf in named_leaves(result) if torch_private.is_tensor(leaf) and leaf.requires_grad]


def _read(model: str, backend: str, found: Inspection, gradient_difference: float | None) -> AutogradGraphs:
    captured = sum(graph.call_count for graph in found.graphs_at(Stage.DYNAMO))
    forwards, backwards = found.graphs_at(Stage.FORWARD), found.graphs_at(Stage.BACKWARD)
    pairs = _paired(forwards, backwards)
    kernels = tuple(
        (lowering.direction.value, kernel.name, len(kernel.nodes))
        for lowering, kernel in found.kernels()
        if lowering.direction in (Direction.FORWARD, Direction.BACKWARD)
    )
    return AutogradGraphs(
        model,
        backend,
        captured,
        sum(graph.call_count for graph in forwards),
        sum(graph.call_count for graph in backwards),
        tuple(item for pair in pairs for item in _saved(*pair)),
        tuple(name for pair in pairs for name in _recomputed(*pair)),
        kernels,
        gradient_difference,
        sum(_computed_and_saved(*pair) for pair in pairs),
        bool(backwards),
        any("checkpoint" in str(node.target) for graph in found.graphs_at(Stage.DYNAMO) for node in graph.nodes),
    )


def _paired(forwards: tuple[Graph, ...], backwards: tuple[Graph, ...]) -> list[tuple[Graph, Graph]]:
    """Every forward with the backward of the same compilation, where there is one."""
    by_compilation = {graph.compilation: graph for graph in backwards}
    return [(graph, by_compilation[graph.compilation]) for graph in forwards if graph.compilation in by_compilation]


def _saved(forward: Graph, backward: Graph) -> list[Saved]:
    """The inputs of the backward that the forward returns."""
    returned = {name for node in forward.nodes if node.operation == "output" for name in node.inputs}
    taken = [node for node in backward.nodes if node.operation == "placeholder" and node.name in returned]
    return [Saved(node.name, str(node.value[0]) if node.value else "") for node in taken]


def _computed_and_saved(forward: Graph, backward: Graph) -> int:
    """How many of the saved tensors the forward has computed."""
    computed = {node.name for node in forward.nodes if node.is_call}
    return sum(item.name in computed for item in _saved(forward, backward))


def _recomputed(forward: Graph, backward: Graph) -> list[str]:
    """Operations that both compute: the partitioner copies nodes with their names."""
    computed = {(node.name, node.target) for node in forward.nodes if node.is_call}
    return [node.name for node in backward.nodes if node.is_call and (node.name, node.target) in computed]


def _show(graphs: AutogradGraphs, found: Inspection, guide: Guide) -> None:
    rows = [
        ["captured by Dynamo", str(graphs.captured)],
        ["forward", str(graphs.forward)],
        ["backward", str(graphs.backward)],
    ]
    guide.table(f"Operations in the graphs of {graphs.model}, with {graphs.backend}", ["Graph", ">Operations"], rows)
    for stage in (Stage.FORWARD, Stage.BACKWARD):
        for graph in found.graphs_at(stage)[:1]:
            guide.listing(stage.value, graph.text, language="python")
    if graphs.saved:
        guide.table("Saved for the backward", ["Tensor", "Form"], [[item.name, item.form] for item in graphs.saved])
    if graphs.kernels:
        kernels = [[direction, name, str(nodes)] for direction, name, nodes in graphs.kernels]
        guide.table("Kernels", ["Direction", "Kernel", ">Nodes"], kernels)
    if not graphs.has_backward:
        guide.note(f"results of {graphs.model} have gradients, but nothing of their backward was compiled")
    else:
        guide.settle(graphs.verdict)
