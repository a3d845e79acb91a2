"""A task whose runs also compute second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.variants import Step, Task
from compile_inspect.variants.task import cotangent


@dataclass(frozen=True)
class TwiceDifferentiated(Task):
    """A task with gradients whose runs differentiate them once more.

    The second derivatives are those of the sum of all gradients, each weighted with its own cosine: the plain sum would
    not show what cancels in it.
    """

    @classmethod
    def from_task(cls, task: Task) -> TwiceDifferentiated:
        """The same function at the same inputs."""
        return cls(task.function, task.args, task.kwargs, True, task.further, task.label)

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """Run a function, then differentiate twice."""
        import torch

        result = function(*args, **kwargs)
        inputs = self.differentiated_tensors(args, kwargs)
        leaves, _ = torch_private.flatten(result)
        outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if not outputs:
            raise TargetError("gradients were requested, but no result depends on a tensor that requires a gradient")
        weights = [cotangent(output) for output in outputs]
        first = torch.autograd.grad(outputs, inputs, weights, create_graph=True, allow_unused=True)
        differentiable = [item for item in first if item is not None and item.requires_grad]
        second: tuple[Any, ...] = (None,) * len(inputs)
        if differentiable:
            cosines = [item.detach().cos() for item in differentiable]
            second = torch.autograd.grad(differentiable, inputs, cosines, allow_unused=True)
        return Step(result, (*_fill_missing(first, inputs), *_fill_missing(second, inputs)))


def _fill_missing(gradients: tuple[Any, ...], inputs: list[Any]) -> tuple[Any, ...]:
    """Replace missing gradients by zeros."""
    import torch

    return tuple(torch.zeros_like(of) if item is None else item.detach() for item, of in zip(gradients, inputs, strict=True))
