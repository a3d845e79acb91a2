"""A task as a function of tensors alone: what it holds and what it is given in, results and gradients out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.variants.base import Refused, Step
from compile_inspect.variants.task import Task, gradients, replaced


@dataclass
class Functional:
    """The task as `outputs = function(tensors)`, with all that is needed to go back and forth.

    `tensors` are those held, then those given. Inputs that are no tensors stay as they were when it was made.
    """

    task: Task
    structure: Any = None
    """Of the result, known after the first call."""
    outputs: list[int | None] = field(default_factory=list)
    """For every leaf of the result its place among the output tensors, None for one that is no tensor."""
    leaves: list[Any] = field(default_factory=list)

    def tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """What to call the function with for these inputs."""
        given = [leaf for leaf in torch_private.flatten((args, dict(kwargs)))[0] if torch_private.is_tensor(leaf)]
        return [item.now() for item in self.task.held] + given

    def function(self, *tensors: Any) -> list[Any]:
        """Results and gradients, as a flat list of tensors. It leaves tensors and modules as they were."""
        import torch

        task = self.task
        count = len(task.held)
        leaves, structure = torch_private.flatten((task.args, dict(task.kwargs)))
        given = iter(tensors[count:])
        wants = [leaf.requires_grad if torch_private.is_tensor(leaf) else False for leaf in leaves]
        replaced_leaves = [next(given) if torch_private.is_tensor(leaf) else leaf for leaf in leaves]
        held = list(tensors[:count])
        wanted = []
        if task.gradients:
            for index, item in enumerate(task.held):
                if item.differentiable and item.now().requires_grad:
                    held[index] = held[index].detach().requires_grad_()
                    wanted.append(held[index])
            for index, wants_one in enumerate(wants):
                if wants_one:
                    replaced_leaves[index] = replaced_leaves[index].detach().requires_grad_()
                    wanted.append(replaced_leaves[index])
        args, kwargs = torch_private.unflatten(replaced_leaves, structure)
        with torch.set_grad_enabled(task.gradients), replaced(task.held, held):
            result = task.function(*args, **kwargs)
            found = gradients(result, wanted) if task.gradients else ()
        results, structure = torch_private.flatten(result)
        return [*self.describe(results, structure), *found]

    def describe(self, results: list[Any], structure: Any) -> list[Any]:
        """Remember what a result looks like; gives its tensors."""
        self.structure = structure
        flat: list[Any] = []
        self.outputs = []
        for leaf in results:
            self.outputs.append(len(flat) if torch_private.is_tensor(leaf) else None)
            if torch_private.is_tensor(leaf):
                flat.append(leaf.detach())
        self.leaves = [None if torch_private.is_tensor(leaf) else leaf for leaf in results]
        return flat

    def step(self, outputs: list[Any]) -> Step:
        """The result in its own form, and the gradients."""
        count = sum(place is not None for place in self.outputs)
        leaves = [
            constant if place is None else outputs[place] for place, constant in zip(self.outputs, self.leaves, strict=True)
        ]
        return Step(torch_private.unflatten(leaves, self.structure), tuple(outputs[count:]))

    @property
    def single(self) -> bool:
        """Whether the result is one tensor and nothing else."""
        return self.outputs == [0] and not self.task.gradients and _is_leaf(self.structure)


def _is_leaf(structure: Any) -> bool:
    return bool(structure.is_leaf())


def traced(task: Task) -> tuple[Functional, Any, list[Any]]:
    """The task as a graph; refuses what a graph cannot say.

    Operations are recorded while the function runs. Where its own Python looks at values, torch.export may still get
    through, for it runs the function with tensors that have none; it cannot differentiate, though.
    """
    functional = Functional(task)
    inputs = [tensor.detach() for tensor in functional.tensors(task.args, task.kwargs)]
    if any(tensor.is_sparse for tensor in inputs):
        raise Refused("sparse tensors cannot be traced")
    versions = [tensor._version for tensor in inputs]
    try:
        graph = torch_private.trace(functional.function, inputs)
    except Exception as error:
        if task.gradients:
            raise
        graph = _exported(functional, inputs, error)
    if any(tensor._version != version for tensor, version in zip(inputs, versions, strict=True)):
        raise Refused("it changes its inputs, parameters or buffers in place")
    refuse_frozen(graph)
    if random_operations(graph):
        raise Refused("it draws random numbers, and a compiled graph draws others than eager")
    return functional, graph, inputs


def _exported(functional: Functional, inputs: list[Any], first: Exception) -> Any:
    """The graph by torch.export, taking the same list of tensors; raises the first error where that fails too."""
    task = functional.task
    try:
        graph, sources, structure = torch_private.export(task.function, task.modules, task.args, dict(task.kwargs))
    except Exception:
        raise first from None
    places = {id(item.now()): number for number, item in enumerate(task.held)}
    order: list[int | Any] = []
    given = iter(range(len(task.held), len(inputs)))
    for source in sources:
        if source is None:
            order.append(next(given))
        elif id(source) in places:
            order.append(places[id(source)])
        else:
            raise Refused(f"it reads a tensor of shape {tuple(source.shape)} that is neither input, parameter nor buffer")
    leaves: list[Any] = []

    def function(*tensors: Any) -> list[Any]:
        nonlocal leaves
        leaves = list(graph(*[tensors[place] for place in order]))
        return [leaf for leaf in leaves if torch_private.is_tensor(leaf)]

    traced_again = torch_private.trace(function, inputs)
    functional.describe(leaves, structure)
    return traced_again


def refuse_frozen(graph: Any) -> None:
    """Refuse a graph that holds a tensor of the user's as a constant: it would not notice when that changes."""
    for node in graph.graph.nodes:
        if node.op != "get_attr":
            continue
        if all("lift_fresh" in str(user.target) for user in node.users):
            continue  # made by the function itself, from numbers
        value: Any = getattr(graph, node.target, None)
        if torch_private.is_tensor(value):
            raise Refused(
                f"it reads a tensor of shape {tuple(value.shape)} that is neither input, parameter, buffer nor in its closure"
            )


def random_operations(graph: Any) -> list[str]:
    """The operations of a graph that draw random numbers."""
    import torch

    found = []
    for node in graph.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and not _drops_nothing(node):
            found.append(str(node.target))
    return found


def _drops_nothing(node: Any) -> bool:
    """Whether an operation would draw numbers for a dropout, but with probability 0."""
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.name in ("dropout_p", "p"):
            value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            return bool(value == 0)
    return False


Flat = Callable[[list[Any]], list[Any]]
