"""Terms with kinks that you declare, for use where the solver cannot read the kinks from the program of the objective.

    from nonsmooth import Problem
    from nonsmooth.terms import Abs, Hinge

    problem = Problem(smooth=loss, terms=[Abs(lambda x: x, weight=0.1), Hinge(lambda x: 1 - x[0])])

The objective is `smooth(x)` plus the sum of the terms. The solver follows only the kinks of the terms; by using them you
declare that `smooth` and the arguments u have no kinks.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from nonsmooth.errors import ProblemError

__all__ = ["Abs", "Hinge", "Max", "Norm2"]

Declare = Callable[[Node, Tensor, str], None]
"""Takes the autograd node of a term, its argument, and the source line of the argument."""


@dataclass(frozen=True, eq=False)
class Term(ABC):
    """The base class of `Abs`, `Hinge`, `Max` and `Norm2`."""

    u: Callable[..., Any]
    """The argument: a smooth function of x that returns one tensor."""
    weight: float | Tensor = 1.0
    """The factor of the term. A negative weight makes its kinks concave."""

    def __post_init__(self) -> None:
        """Check the argument and the weight."""
        name = type(self).__name__
        if not callable(self.u):
            raise ProblemError(
                f"the argument of {name} must be a function of x, not {self.u!r:.100}; write for instance {name}(lambda x: x)"
            )
        object.__setattr__(self, "weight", self._checked_weight(self.weight))

    def _checked_weight(self, weight: Any) -> float | Tensor:
        return _checked_number(weight, type(self).__name__, "a number")

    @property
    def line(self) -> str:
        """The source location of the argument, as `file:line`; empty if it is not a plain function."""
        code = getattr(inspect.unwrap(self.u), "__code__", None)
        return "" if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"

    def value(
        self, x: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], declare: Declare | None = None
    ) -> Tensor:  # fmt: skip
        """The term at x; `declare` is called with the operation that has its kinks, unless it is constant."""
        u = self.u(x, *arguments, **keywords)
        if not isinstance(u, Tensor) or u.is_complex():
            kind = u.dtype if isinstance(u, Tensor) else type(u).__name__
            raise ProblemError(f"the argument of {type(self).__name__} must return one real tensor, not {kind}")
        kinked = self._operation(u if u.is_floating_point() else u.double())
        if declare is not None and kinked.grad_fn is not None:
            declare(kinked.grad_fn, u, self.line)
        return self._weighted(kinked)

    @abstractmethod
    def _operation(self, u: Tensor) -> Tensor:
        """The operation that has the kinks and that the solver reads from the graph."""

    def _weighted(self, kinked: Tensor) -> Tensor:
        return self.weight * kinked


@dataclass(frozen=True, eq=False)
class _Sum(Term):
    """A weighted sum over all numbers of the argument."""

    def _checked_weight(self, weight: Any) -> float | Tensor:
        name = type(self).__name__
        if not isinstance(weight, Tensor):
            return _checked_number(weight, name, "a number or a tensor")
        if weight.requires_grad:
            raise ProblemError(f"the weight of {name} requires a gradient, but must be constant; pass weight.detach()")
        if weight.is_complex() or not bool(torch.isfinite(weight).all()):
            raise ProblemError(f"the weight of {name} must consist of finite real numbers, not {weight!r:.200}")
        return weight

    def _weighted(self, kinked: Tensor) -> Tensor:
        weight = self.weight
        if not isinstance(weight, Tensor):
            return weight * kinked.sum()
        shape, target = tuple(weight.shape), tuple(kinked.shape)
        fits = len(shape) <= len(target) and all(
            one in (1, other) for one, other in zip(reversed(shape), reversed(target), strict=False)
        )
        if not fits:
            raise ProblemError(
                f"the weight of {type(self).__name__} has shape {shape} and its argument {target}; give one number, or one for "
                "each number of the argument"
            )
        return (weight.to(kinked.device, kinked.dtype) * kinked).sum()


class Abs(_Sum):
    """weight · Σ |u(x)|; the weight may be a tensor with one number for each number of u.

    >>> Abs(lambda x: x - 1, weight=2.0).value(torch.tensor([3.0, -1.0]), (), {})
    tensor(8.)
    """

    def _operation(self, u: Tensor) -> Tensor:
        return u.abs()


class Hinge(_Sum):
    """weight · Σ max(u(x), 0); the weight may be a tensor with one number for each number of u.

    >>> Hinge(lambda x: x, weight=torch.tensor([1.0, 10.0, 100.0])).value(torch.tensor([-3.0, 0.0, 2.0]), (), {})
    tensor(200.)
    """

    def _operation(self, u: Tensor) -> Tensor:
        return torch.relu(u)


class Max(Term):
    """weight · the largest number of u(x).

    >>> Max(lambda x: x, weight=-1.0).value(torch.tensor([3.0, -1.0]), (), {})
    tensor(-3.)
    """

    def _operation(self, u: Tensor) -> Tensor:
        if not u.numel():
            raise ProblemError("the argument of Max has no numbers; leave the term out")
        return u.max()


class Norm2(Term):
    """weight · ‖u(x)‖₂, the Euclidean norm of all numbers of u. If u has more than 20 numbers, its kink is not read but
    discovered by stepping over it.

    >>> Norm2(lambda x: x, weight=2.0).value(torch.tensor([3.0, 4.0]), (), {})
    tensor(10.)
    """

    def _operation(self, u: Tensor) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(u)
        return norm


def _checked_number(weight: Any, name: str, what: str) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        description = f"a tensor of shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else f"{weight!r:.100}"
        raise ProblemError(f"the weight of {name} must be {what}, not {description}")
    if not math.isfinite(weight):
        raise ProblemError(f"the weight of {name} must be finite, not {weight}")
    return float(weight)
