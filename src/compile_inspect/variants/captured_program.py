"""A task as one graph of tensors: what Dynamo captured of it, ready to be traced, compiled and recorded.

Everything frozen comes from this one capture, so the capture's guard covers all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compile_inspect import torch_private
from compile_inspect.variants.base import RefusalError, Step

if TYPE_CHECKING:
    from compile_inspect.torch_private.fullgraph import Fullgraph
    from compile_inspect.variants.guard import Guard
    from compile_inspect.variants.task import Task

FlatFunction = Callable[[list[Any]], list[Any]]
"""A function from the graph's inputs to its outputs and, where gradients are required, the gradients."""


@dataclass(frozen=True)
class ResultTensor:
    """The origin of a tensor in the result: an output of the graph, or an input that is returned."""

    position: int
    is_output: bool


class CapturedProgram:
    """A task as `outputs = function(*tensors)`, with the maps from inputs to `tensors` and from `outputs` to the result."""

    def __init__(self, task: Task) -> None:
        """Capture a task; raises `RefusalError` where Dynamo cannot capture it as one graph."""
        self.task = task
        self.fullgraph = capture(task, grad_mode=task.gradients)
        for tensor in self.fullgraph.inputs:
            _refuse_unusual(tensor)
        self.gradient_positions = [
            position for position, tensor in enumerate(self.inputs) if task.gradients and tensor.requires_grad
        ]
        """Positions of the graph's inputs whose gradients a run computes."""

    @cached_property
    def guard(self) -> Guard:
        """The check of whether this program is valid for a call."""
        from compile_inspect.variants.guard import Guard

        return Guard(self)

    @property
    def inputs(self) -> list[Any]:
        """The tensors that the graph takes at the example."""
        return list(self.fullgraph.inputs)

    @cached_property
    def leaves(self) -> list[ResultTensor]:
        """The origin of every tensor in the result."""
        outputs = self.placeholders()
        result = self.fullgraph.bind(lambda *_: outputs)(*self.task.args, **self.task.kwargs)
        origins = {id(tensor): ResultTensor(position, is_output=False) for position, tensor in enumerate(self.fullgraph.inputs)}
        origins |= {id(tensor): ResultTensor(position, is_output=True) for position, tensor in enumerate(outputs)}
        leaves = []
        for leaf in torch_private.flatten(result)[0]:
            if torch_private.is_tensor(leaf):
                if id(leaf) not in origins:
                    raise RefusalError("its result has a tensor that is neither an output of its graph nor an input")
                leaves.append(origins[id(leaf)])
        return leaves

    def function(self, *tensors: Any) -> list[Any]:
        """Outputs of the graph, then gradients of the sum of all results; no tensor is changed."""
        import torch

        from compile_inspect.variants.task import gradients

        graph_inputs = list(tensors)
        for position in self.gradient_positions:
            graph_inputs[position] = graph_inputs[position].detach().requires_grad_()
        with torch.set_grad_enabled(self.task.gradients):
            outputs = list(self.fullgraph.graph(*graph_inputs))
            gradient_values: tuple[Any, ...] = ()
            if self.task.gradients:
                results = [outputs[leaf.position] if leaf.is_output else graph_inputs[leaf.position] for leaf in self.leaves]
                gradient_values = gradients(results, [graph_inputs[position] for position in self.gradient_positions])
        return [*(output.detach() for output in outputs), *gradient_values]

    def results(self, inputs: list[Any]) -> list[Any]:
        """The tensors in the result for these inputs of the graph, in order."""
        outputs = list(self.fullgraph.graph(*inputs))
        return [outputs[leaf.position] if leaf.is_output else inputs[leaf.position] for leaf in self.leaves]

    def run(self, flat: FlatFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """One run with other inputs, for result and gradients, whether or not the guard holds."""
        import torch

        graph_inputs: list[Any] = []
        outputs: list[Any] = []

        def compiled(*inputs: Any) -> Any:
            graph_inputs.extend(inputs)
            with torch.no_grad():
                outputs.extend(flat([tensor.detach() for tensor in inputs]))
            return outputs[: self.output_count]

        result = self.fullgraph.bind(compiled)(*args, **kwargs)
        if not self.task.gradients:
            return Step(result)
        gradients_by_id = {
            id(graph_inputs[position]): outputs[self.output_count + number]
            for number, position in enumerate(self.gradient_positions)
        }
        tensors_to_differentiate = self.task.differentiated_tensors(args, kwargs)
        return Step(
            result,
            tuple(
                gradients_by_id[id(item)] if id(item) in gradients_by_id else torch.zeros_like(item)
                for item in tensors_to_differentiate
            ),
        )

    def tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The inputs that the graph would be called with."""
        graph_inputs: list[Any] = []

        def note(*inputs: Any) -> Any:
            graph_inputs.extend(inputs)
            return self.placeholders()

        self.fullgraph.bind(note)(*args, **kwargs)
        return graph_inputs

    def unguarded_call(self, flat: FlatFunction) -> Callable[..., Any]:
        """A function of the task's inputs, for inference, without any check."""
        return self.fullgraph.bind(lambda *inputs: flat(list(inputs)))

    @cached_property
    def output_count(self) -> int:
        """The number of the graph's outputs; refuses a graph that returns anything but tensors."""
        (outputs,) = next(node for node in self.fullgraph.graph.graph.nodes if node.op == "output").args
        if not all(torch_private.is_tensor(node.meta.get("example_value")) for node in outputs):
            raise RefusalError("its graph returns something that is not a tensor")
        return len(outputs)

    def placeholders(self) -> list[Any]:
        """Tensors in place of the graph's outputs, to see how the result is built without computing it."""
        import torch

        return [torch.empty(()) for _ in range(self.output_count)]

    @cached_property
    def held_positions(self) -> tuple[int, ...]:
        """Positions of inputs that are not among the task's arguments."""
        sources = self.fullgraph.sources
        return tuple(position for position, source in enumerate(sources) if not source.startswith(("args", "kwargs")))


def capture(task: Task, *, grad_mode: bool) -> Fullgraph:
    """Capture a task with Dynamo in a grad mode; raises `RefusalError` where that does not give one graph."""
    from compile_inspect.torch_private.fullgraph import NotOneGraphError, capture_fullgraph

    try:
        return capture_fullgraph(task.function, task.args, dict(task.kwargs), grad_mode=grad_mode)
    except NotOneGraphError as reason:
        raise RefusalError(str(reason)) from None


DerivedFunction = tuple[Callable[..., list[Any]], list[Any]]
"""A function derived from a program, and example inputs for it."""


def trace_task(
    task: Task, derive: Callable[[CapturedProgram], DerivedFunction] | None = None
) -> tuple[CapturedProgram, Any, list[Any]]:
    """The task's program, its operations and those of the backward as one graph, and the graph's example inputs.

    With `derive`, the operations are those of a function derived from the program.
    """
    program = task.program
    function, inputs = (program.function, program.inputs) if derive is None else derive(program)
    inputs = [tensor.detach() for tensor in inputs]
    versions = [tensor._version for tensor in inputs]
    try:
        graph = torch_private.trace(function, inputs)
    except RuntimeError as error:
        if "tracing tensor" not in str(error):
            raise
        raise RefusalError("it reads the value of a tensor, which a graph cannot do") from error
    if any(tensor._version != version for tensor, version in zip(inputs, versions, strict=True)):
        raise RefusalError("it changes its inputs, parameters or buffers in place")
    refuse_writes(graph, inputs)
    refuse_constant_tensors(graph)
    if random_operations(graph):
        raise RefusalError("it draws random numbers, and a compiled graph draws different ones than eager")
    return program, graph, inputs


def _refuse_unusual(tensor: Any) -> None:
    import torch

    if not torch_private.is_tensor(tensor):
        raise RefusalError(f"its graph takes a {type(tensor).__name__}, which is not a tensor")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise RefusalError(f"it reads a {type(tensor).__name__}, a subclass of Tensor")
    if tensor.layout is not torch.strided:
        raise RefusalError("sparse tensors cannot be traced")


def refuse_writes(graph: Any, inputs: list[Any]) -> None:
    """Refuse a graph that writes to the memory of an input, even in ways that no version counter records."""
    import torch

    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    if not any(_is_mutable(node.target) for node in nodes):
        return
    memory = {tensor.untyped_storage()._cdata for tensor in inputs}
    writes: list[str] = []

    class Watching(torch.fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if _is_mutable(target):
                for argument, value in zip(target._schema.arguments, args, strict=False):
                    is_written = argument.alias_info is not None and argument.alias_info.is_write
                    leaves = torch_private.flatten(value)[0] if is_written else []
                    if any(torch_private.is_tensor(leaf) and leaf.untyped_storage()._cdata in memory for leaf in leaves):
                        writes.append(str(target))
                        return target(*(item.clone() if item is value else item for item in args), **kwargs)
            return super().call_function(target, args, kwargs)

    with torch.no_grad():
        Watching(graph).run(*inputs)
    if writes:
        raise RefusalError("it changes its inputs, parameters or buffers in place")


def _is_mutable(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def refuse_constant_tensors(graph: Any) -> None:
    """Refuse a graph that contains a user's tensor as a constant: it would not notice when that changes."""
    for node in graph.graph.nodes:
        if node.op != "get_attr":
            continue
        if all("lift_fresh" in str(user.target) for user in node.users):
            continue  # created by the function itself, from numbers
        value: Any = getattr(graph, node.target, None)
        if torch_private.is_tensor(value):
            raise RefusalError(f"it reads a tensor of shape {tuple(value.shape)} that is not an input of its graph")


def random_operations(graph: Any) -> list[str]:
    """The operations of a graph that draw random numbers."""
    import torch

    operations = []
    for node in graph.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and not _drops_nothing(node):
            operations.append(str(node.target))
    return operations


def _drops_nothing(node: Any) -> bool:
    """Whether an operation would draw numbers for a dropout, but with probability 0."""
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.name in ("dropout_p", "p"):
            value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            return bool(value == 0)
    return False
