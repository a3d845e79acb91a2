"""The input of every variant: a function, its arguments, the tensors it holds, and whether gradients matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compile_inspect import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.target import Inputs, Target
from compile_inspect.variants.base import Step
from compile_inspect.variants.reachable_state import Constant, ReachableTensor, constants_of, modules_of, tensors_of

if TYPE_CHECKING:
    from compile_inspect.variants.captured_program import CapturedProgram


@dataclass(frozen=True)
class Task:
    """A function at example inputs, with or without gradients.

    With gradients, a run is one forward and one backward of a weighted sum of its floating-point results, with respect to
    every parameter and every input that requires a gradient.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    gradients: bool = False
    further: tuple[Inputs, ...] = ()
    label: str = ""
    """Distinguishes the cached packages of several tasks with the same function."""

    @classmethod
    def of(cls, target: Target) -> Task:
        """The task that a target describes; if it leaves gradients open, they matter if an input requires them."""
        gradients_required = target.gradients
        if gradients_required is None:
            leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
            gradients_required = any(torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in leaves)
        return cls(target.function, target.args, target.kwargs, gradients_required, target.further)

    @property
    def name(self) -> str:
        """The qualified name of the function."""
        function = self.function
        return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")

    @cached_property
    def modules(self) -> tuple[Any, ...]:
        """The modules that the function is, is a method of, or finds in its closure and globals."""
        return tuple(modules_of(self.function))

    @cached_property
    def held_tensors(self) -> tuple[ReachableTensor, ...]:
        """Tensors that the function reaches by itself: parameters, buffers, tensors of its closure and globals."""
        return tuple(tensors_of(self.function, self.modules))

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Python values that the function reaches by itself, and that may change between calls."""
        return tuple(constants_of(self.function, self.modules))

    @cached_property
    def program(self) -> CapturedProgram:
        """What Dynamo captures of the function at the example; raises `RefusalError` where that is not one graph."""
        from compile_inspect.variants.captured_program import CapturedProgram

        return CapturedProgram(self)

    @cached_property
    def device(self) -> str:
        """The device type of the first tensor; `cpu` if there is none."""
        leaves, _ = torch_private.flatten((self.args, dict(self.kwargs)))
        tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] or [item.now() for item in self.held_tensors]
        return str(tensors[0].device.type) if tensors else "cpu"

    def differentiated_tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors whose gradients a run computes: held tensors first, then inputs."""
        if not self.gradients:
            return []
        leaves, _ = torch_private.flatten((args, dict(kwargs)))
        held = [item.now() for item in self.held_tensors if item.differentiable]
        inputs = [leaf for leaf in leaves if torch_private.is_tensor(leaf) and leaf.requires_grad]
        return [tensor for tensor in held if tensor.requires_grad] + inputs

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """Run a function with the signature of the task's own: forward and, if required, backward."""
        import torch

        if not self.gradients:
            with torch.no_grad():
                return Step(function(*args, **kwargs))
        result = function(*args, **kwargs)
        return Step(result, gradients(result, self.differentiated_tensors(args, kwargs)))

    def inputs(self) -> tuple[Inputs, ...]:
        """The example inputs, then the further ones."""
        return ((self.args, self.kwargs), *self.further)


def gradients(result: Any, inputs: list[Any]) -> tuple[Any, ...]:
    """Gradients of a weighted sum of all floating-point tensors in a result; zeros where there is no dependence."""
    import torch

    leaves, _ = torch_private.flatten(result)
    outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not outputs:
        raise TargetError("gradients were requested, but no result depends on a tensor that requires a gradient")
    values = torch.autograd.grad(outputs, inputs, [cotangent(output) for output in outputs], allow_unused=True)
    return tuple(torch.zeros_like(of) if item is None else item for item, of in zip(values, inputs, strict=True))


def cotangent(output: Any) -> Any:
    """The weights with which a backward starts: 1 for a single number, otherwise different for neighboring elements.

    With ones everywhere, the backward of anything normalized, such as a softmax, would give zeros whether right or wrong.
    The weights are odd multiples of 1/8 up to 11/8, which are exact in every dtype.
    """
    import torch

    if output.numel() < 2 or output.layout is not torch.strided or output.is_nested:
        return torch.ones_like(output)
    places = torch.arange(output.numel(), device=output.device)
    weights = ((places * 7) % 11 * 2 - 9).to(output.dtype) / 8
    return weights.reshape(output.shape)
