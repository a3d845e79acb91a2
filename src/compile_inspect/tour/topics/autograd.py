"""A topic of the tour: the forward and backward graphs that AOTAutograd builds from one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compile_inspect.records import Direction, Graph, Inspection, Stage
from compile_inspect.tour.calls import difference, is_deterministic, model_name, result_of
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_MAX_NAMES = 8
_CHOICES = ("the results of all its operations", "only some tensors", "nothing")


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that the forward saves for the backward."""

    name: str
    tensor_type: str


@dataclass(frozen=True)
class AutogradGraphs:
    """The results of `run_autograd_graphs`: sizes of the graphs and the tensors that go from one to the other."""

    model: str
    backend: str
    captured: int
    """Operations in the graph that Dynamo captured."""
    forward: int
    backward: int
    saved: tuple[SavedTensor, ...]
    recomputed: tuple[str, ...]
    """Nodes of the backward that the forward computes too."""
    kernels: tuple[tuple[str, str, int], ...] = ()
    """Direction, name and number of nodes of each kernel."""
    gradient_difference: float | None = 0.0
    """From eager; None for a model that draws random numbers, which may differ in compiled code."""
    saved_results: int = 0
    """Saved tensors that the forward computed; the others are its inputs."""
    has_backward: bool = True
    """Whether a backward was compiled; it may have no operations, as for `x + 1`."""
    checkpointed: bool = False
    """Whether the captured graph uses activation checkpointing."""

    @property
    def correct_choice(self) -> int:
        """The quiz choice that the run shows to be correct."""
        return 2 if not self.saved else 0 if self.saved_results >= self.forward else 1

    def answer(self) -> tuple[str, ...]:
        """What the graphs contain, with the numbers of this run."""
        if not self.has_backward:
            return ()
        sentences = [
            f"Dynamo captured {count(self.captured, 'operation')} of {self.model}. AOTAutograd turned them into a forward of "
            f"{self.forward} and a backward of {self.backward} operations, before the first backward ran.",
            f"The forward saves {count(len(self.saved), 'tensor')} for the backward: "
            + _list_names([f"{item.name} ({item.tensor_type})" for item in self.saved])
            + "."
            if self.saved
            else "The forward saves nothing for the backward.",
        ]
        if self.recomputed:
            reason = "; the model requests this with checkpoint" if self.checkpointed else ""
            sentences.append(
                f"The backward recomputes {count(len(self.recomputed), 'operation')} of the forward: "
                f"{_list_names(self.recomputed)}{reason}."
            )
        else:
            sentences.append("The backward recomputes nothing of the forward.")
        if self.kernels:
            parts = [
                f"{sum(way == direction for way, _, _ in self.kernels)} in the {direction}"
                for direction in ("forward", "backward")
            ]
            sentences.append(f"Inductor turned them into kernels and library calls: {' and '.join(parts)}.")
        sentences.append(
            "Gradients were not compared with eager: the model draws random numbers, which may differ in compiled code."
            if self.gradient_difference is None
            else f"No gradient differs from eager by more than {self.gradient_difference:.1g}."
        )
        return tuple(sentences)


def _list_names(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are.

    >>> _list_names(["a", "b"]), _list_names("abcdefghij")
    ('a, b', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def squash(x: Any, weight: Any) -> Any:
    """A matrix product, then a chain of cheap operations: some results are worth saving, some are not."""
    import torch

    hidden = x @ weight
    return (torch.nn.functional.gelu(hidden) * hidden.cos()).sum()


def run_autograd_graphs(target: Target | None = None, *, guide: Guide | None = None) -> AutogradGraphs:
    """Compile a function with its backward and show the graphs of both.

    The default function is a matrix product followed by a gelu and a cosine. Where Inductor cannot run, the graphs are those of
    the backend aot_eager.
    """
    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    backend = "inductor" if guide.machine.inductor else "aot_eager"
    if not guide.machine.inductor:
        guide.note(f"{guide.machine.missing_requirement}. The graphs are shown without kernels")
    target = target or _default_target(guide.machine.device)
    with silence():
        differentiable = result_of(target, lambda *args, **kwargs: bool(_differentiable(target.function(*args, **kwargs))))
    if not differentiable:
        guide.note(f"no result of {model_name(target)} requires a gradient, so there is no backward to show")
        return AutogradGraphs(model_name(target), backend, 0, 0, 0, (), (), has_backward=False)
    guide.ask("What does a forward save for its backward?", _CHOICES)
    torch_private.forget_compiled_code()
    with guide.working(f"compiling forward and backward with {backend}"), silence():
        expected, deterministic = _gradients(target, target.function), is_deterministic(target)
        # Kernels from a cache do not know their nodes.
        with torch_private.without_graph_caches(), record() as recording:
            gradients = _gradients(target, _compile(target, backend))
    torch_private.forget_compiled_code()
    graphs = _read(
        model_name(target), backend, recording.inspection, difference(gradients, expected) if deterministic else None
    )
    _show(graphs, recording.inspection, guide)
    return graphs


def _default_target(device: str) -> Target:
    import torch

    from compile_inspect.target import Target

    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(8, 16, generator=generator), torch.randn(16, 16, generator=generator)
    return Target(squash, (x.to(device), weight.to(device).requires_grad_()))


def _compile(target: Target, backend: str) -> Callable[..., Any]:
    import torch

    compiled: Callable[..., Any] = torch.compile(target.function, backend=backend)
    return compiled


def _gradients(target: Target, function: Callable[..., Any]) -> list[Any]:
    """The gradients of the sum of all results with respect to every parameter and input that requires one.

    The call uses a fixed seed and copies of the inputs, and leaves no trace.
    """
    import torch

    from compile_inspect.variants import Task

    task = replace(Task.of(target), gradients=True)

    def call_and_differentiate(*args: Any, **kwargs: Any) -> list[Any]:
        outputs = _differentiable(function(*args, **kwargs))
        variables = task.differentiated_tensors(args, kwargs)
        if not variables or not outputs:
            return []
        ones = [torch.ones_like(output) for output in outputs]
        return list(torch.autograd.grad(outputs, variables, ones, allow_unused=True))

    gradients: list[Any] = result_of(target, call_and_differentiate)
    return gradients


def _differentiable(result: Any) -> list[Any]:
    """The tensors in a result that require a gradient, at any depth."""
    from compile_inspect import torch_private
    from compile_inspect.agreement.run_outcome import named_leaves

    return [leaf for _, leaf in named_leaves(result) if torch_private.is_tensor(leaf) and leaf.requires_grad]


def _read(model: str, backend: str, inspection: Inspection, gradient_difference: float | None) -> AutogradGraphs:
    captured = sum(graph.call_count for graph in inspection.graphs_at(Stage.DYNAMO))
    forwards, backwards = inspection.graphs_at(Stage.FORWARD), inspection.graphs_at(Stage.BACKWARD)
    pairs = _pairs(forwards, backwards)
    kernels = tuple(
        (lowering.direction.value, kernel.name, len(kernel.nodes))
        for lowering, kernel in inspection.kernels()
        if lowering.direction in (Direction.FORWARD, Direction.BACKWARD)
    )
    return AutogradGraphs(
        model,
        backend,
        captured,
        sum(graph.call_count for graph in forwards),
        sum(graph.call_count for graph in backwards),
        tuple(item for pair in pairs for item in _saved_tensors(*pair)),
        tuple(name for pair in pairs for name in _recomputed_operations(*pair)),
        kernels,
        gradient_difference,
        sum(_count_computed_and_saved(*pair) for pair in pairs),
        bool(backwards),
        any("checkpoint" in str(node.target) for graph in inspection.graphs_at(Stage.DYNAMO) for node in graph.nodes),
    )


def _pairs(forwards: tuple[Graph, ...], backwards: tuple[Graph, ...]) -> list[tuple[Graph, Graph]]:
    """Every forward with the backward of the same compilation, if it has one."""
    by_compilation = {graph.compilation: graph for graph in backwards}
    return [(graph, by_compilation[graph.compilation]) for graph in forwards if graph.compilation in by_compilation]


def _saved_tensors(forward: Graph, backward: Graph) -> list[SavedTensor]:
    """The inputs of the backward that the forward returns."""
    returned = {name for node in forward.nodes if node.operation == "output" for name in node.inputs}
    inputs = [node for node in backward.nodes if node.operation == "placeholder" and node.name in returned]
    return [SavedTensor(node.name, str(node.value[0]) if node.value else "") for node in inputs]


def _count_computed_and_saved(forward: Graph, backward: Graph) -> int:
    """How many of the saved tensors the forward computed, rather than received."""
    computed = {node.name for node in forward.nodes if node.is_call}
    return sum(item.name in computed for item in _saved_tensors(forward, backward))


def _recomputed_operations(forward: Graph, backward: Graph) -> list[str]:
    """Operations that both compute: the partitioner copies nodes with their names."""
    computed = {(node.name, node.target) for node in forward.nodes if node.is_call}
    return [node.name for node in backward.nodes if node.is_call and (node.name, node.target) in computed]


def _show(graphs: AutogradGraphs, inspection: Inspection, guide: Guide) -> None:
    rows = [
        ["captured by Dynamo", str(graphs.captured)],
        ["forward", str(graphs.forward)],
        ["backward", str(graphs.backward)],
    ]
    guide.table(f"Operations in the graphs of {graphs.model}, with {graphs.backend}", ["Graph", ">Operations"], rows)
    for stage in (Stage.FORWARD, Stage.BACKWARD):
        for graph in inspection.graphs_at(stage)[:1]:
            guide.listing(stage.value, graph.text, language="python")
    if graphs.saved:
        guide.table(
            "Tensors saved for the backward", ["Tensor", "Type"], [[item.name, item.tensor_type] for item in graphs.saved]
        )
    if graphs.kernels:
        kernels = [[direction, name, str(nodes)] for direction, name, nodes in graphs.kernels]
        guide.table("Kernels", ["Direction", "Kernel", ">Nodes"], kernels)
    if not graphs.has_backward:
        guide.note(f"results of {graphs.model} require gradients, but no backward was compiled")
    else:
        guide.reveal(graphs.correct_choice)
