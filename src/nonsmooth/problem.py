"""The problem to minimize: one function, or an objective with inequalities, equalities and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nonsmooth.errors import ProblemError
from nonsmooth.terms import Declare, Term


@dataclass(frozen=True)
class Problem:
    """A problem: minimize f(x) subject to ci(x) ≤ 0, ce(x) = 0 and lower ≤ x ≤ upper.

    Give either `function`, which returns f or (f, ci, ce), or `objective` with `inequalities` and `equalities` as needed.
    Instead of `objective`, you can give `smooth` and `terms` to declare where f has kinks: f is then `smooth(x)`, if given,
    plus the sum of `terms` (see `nonsmooth.terms`), and neither `smooth` nor the arguments of the terms may have kinks.

    Constraints may be a tensor of any shape, a list or a dict of tensors, or None. `bounds` is a pair (lower, upper) of
    numbers, None, or values in the form of x0; a `scipy.optimize.Bounds`; or a pair (low, high) for every entry of x0.
    No function is evaluated outside the bounds; with `soft_bounds=True` they are treated as ordinary inequalities. With
    `gradients=True` the function returns (f, gradient of f, ci, Jacobian of ci, ce, Jacobian of ce) and automatic
    differentiation is not used; a gradient has the form of x0 and a Jacobian has one row per constraint.

    >>> Problem(objective=lambda x: (x**2).sum(), inequalities=lambda x: 1 - x[0]).values(torch.tensor([3.0, 0.0]))[0]
    tensor(9.)
    >>> from nonsmooth.terms import Abs
    >>> Problem(smooth=lambda x: (x**2).sum(), terms=[Abs(lambda x: x - 1)]).values(torch.tensor([3.0, 0.0]))[0]
    tensor(12.)
    """

    function: Callable[..., Any] | None = None
    objective: Callable[..., Any] | None = field(default=None, kw_only=True)
    smooth: Callable[..., Any] | None = field(default=None, kw_only=True)
    terms: Sequence[Term] = field(default=(), kw_only=True)
    inequalities: Callable[..., Any] | None = field(default=None, kw_only=True)
    equalities: Callable[..., Any] | None = field(default=None, kw_only=True)
    bounds: Any = field(default=None, kw_only=True)
    gradients: bool = field(default=False, kw_only=True)
    soft_bounds: bool = field(default=False, kw_only=True)
    arguments: tuple[Any, ...] = field(default=(), kw_only=True)
    keywords: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        self._check_terms()
        explicit = self.smooth is not None or bool(self.terms)
        if (self.function is None) == (self.objective is None and not explicit):
            raise ProblemError(
                "give either one function that returns (f, ci, ce), or objective=… with inequalities=… and equalities=…; "
                "you can replace objective=… with smooth=… and terms=[…]"
            )
        if explicit and self.objective is not None:
            raise ProblemError(
                f"smooth=… and terms=[…] are the whole objective; give {self.objective!r:.100} as smooth=…, not objective=…"
            )
        if self.function is not None and (self.inequalities is not None or self.equalities is not None):
            raise ProblemError(
                "inequalities=… and equalities=… go with objective=…; a single function returns (f, ci, ce) itself"
            )
        if self.gradients and self.function is None:
            raise ProblemError(
                "gradients=True needs one function that returns (f, f gradient, ci, ci Jacobian, ce, ce Jacobian)"
            )
        for name in ("function", "objective", "smooth", "inequalities", "equalities"):
            part = getattr(self, name)
            if part is not None and not callable(part):
                raise ProblemError(f"{name} must be callable, not {type(part).__name__}")
        bounds = self.bounds
        if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds; as tensors they are never read as pairs
            sides = (torch.as_tensor(bounds.lb, dtype=torch.float64), torch.as_tensor(bounds.ub, dtype=torch.float64))
            object.__setattr__(self, "bounds", sides)
        elif bounds is not None and not isinstance(bounds, tuple | list | np.ndarray | Tensor):
            raise ProblemError(
                f"bounds must be a pair (lower, upper), a pair (low, high) for every number, or a scipy.optimize.Bounds, not "
                f"{bounds!r:.200}; use None for a side without a bound"
            )

    def _check_terms(self) -> None:
        if not isinstance(self.terms, list | tuple):
            raise ProblemError(f"terms must be a list of Abs, Hinge, Max and Norm2, not {self.terms!r:.100}; wrap it in [ ]")
        for term in self.terms:
            if not isinstance(term, Term):
                raise ProblemError(
                    f"each of terms must be an Abs, Hinge, Max or Norm2, not {term!r:.99}; put smooth parts into smooth=…"
                )
        object.__setattr__(self, "terms", tuple(self.terms))

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """All functions that the user provided."""
        arguments = [term.u for term in self.terms]
        parts = (self.function, self.objective, self.smooth, *arguments, self.inequalities, self.equalities)
        return tuple(part for part in parts if part is not None)

    def values(self, x: Any, declare: Declare | None = None) -> tuple[Tensor, Any, Any]:
        """f, ci and ce at x, as the user's functions return them; `declare` is called with the node of every term."""
        if self.function is None:
            if self.objective is None:
                f = sum_of_terms(self.smooth, self.terms, x, self.arguments, self.keywords, declare)
            else:
                f = one_number(self.objective(x, *self.arguments, **self.keywords))
            blocks = [
                None if block is None else block(x, *self.arguments, **self.keywords)
                for block in (self.inequalities, self.equalities)
            ]
            return f, blocks[0], blocks[1]
        answer = self.function(x, *self.arguments, **self.keywords)
        if not isinstance(answer, tuple | list):
            return one_number(answer), None, None
        if not 1 <= len(answer) <= 3:
            raise ProblemError(f"the function must return f or (f, ci, ce), not {len(answer)} values")
        f, inequalities, equalities = answer if len(answer) == 3 else [*answer, None, None][:3]
        return one_number(f), inequalities, equalities

    def values_and_gradients(self, x: Any) -> tuple[Any, ...]:
        """The six values of a function that computes its own gradients."""
        assert self.function is not None
        answer = self.function(x, *self.arguments, **self.keywords)
        if not isinstance(answer, tuple | list) or len(answer) not in (2, 4, 6):
            raise ProblemError(
                "with gradients=True the function must return (f, f gradient), or these and (ci, ci Jacobian), or all six"
            )
        return (*answer, *[None] * (6 - len(answer)))


def one_number(value: Any) -> Tensor:
    """The objective as a tensor with one element. Its shape is not changed, since a reshape would add an autograd node.

    >>> one_number(torch.ones(1, 1))
    tensor([[1.]])
    """
    if type(value) is Tensor and value.numel() == 1 and value.is_floating_point():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return torch.tensor(float(value), dtype=torch.float64)
    if not isinstance(value, Tensor):
        raise ProblemError(f"the objective must be a tensor with one element, not {type(value).__name__}")
    if value.numel() != 1:
        raise ProblemError(f"the objective must have one element, not shape {tuple(value.shape)}; sum or average it")
    if value.is_complex():
        raise ProblemError("the objective is complex; return its real part or its absolute value")
    return value


def sum_of_terms(
    smooth: Callable[..., Any] | None,
    terms: Sequence[Term],
    x: Any,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    declare: Declare | None = None,
) -> Tensor:
    """The objective: the smooth part plus the terms."""
    parts = [] if smooth is None else [one_number(smooth(x, *arguments, **keywords))]
    parts += [term.value(x, arguments, keywords, declare) for term in terms]
    f = parts[0]
    for part in parts[1:]:
        f = f + part
    return f


def scalar(value: Any) -> Tensor:
    """The objective as a tensor without dimensions.

    >>> scalar(torch.ones(1, 1))
    tensor(1.)
    """
    return one_number(value).reshape(())


@dataclass(frozen=True)
class Form:
    """The form of one block of constraints, so that multipliers can be returned in the same form."""

    kind: type | None
    keys: tuple[Any, ...]
    shapes: tuple[torch.Size, ...]

    @cached_property
    def size(self) -> int:
        """Number of constraints."""
        return sum(shape.numel() for shape in self.shapes)

    def restore(self, flat: Tensor) -> Any:
        """A flat tensor in the form of the constraints.

        >>> flatten({"a": torch.zeros(2), "b": torch.zeros(1)}, "ci")[1].restore(torch.arange(3.0))["a"]
        tensor([0., 1.])
        """
        if self.kind is None:
            return None
        pieces = [
            piece.reshape(shape)
            for piece, shape in zip(torch.split(flat, [s.numel() for s in self.shapes]), self.shapes, strict=True)
        ]
        if self.kind is Tensor:
            return pieces[0]
        return dict(zip(self.keys, pieces, strict=True)) if self.kind is dict else pieces


def flatten(value: Any, name: str) -> tuple[Tensor | None, Form]:
    """One block of constraints as a flat tensor, and its form.

    >>> flatten([torch.ones(2, 2), 3.0], "ci")[0]
    tensor([1., 1., 1., 1., 3.], dtype=torch.float64)
    """
    if value is None:
        return None, Form(None, (), ())
    if isinstance(value, Tensor):
        return _real(value, name).reshape(-1), Form(Tensor, (), (value.shape,))
    if isinstance(value, int | float):
        return flatten(torch.tensor(float(value), dtype=torch.float64), name)
    if isinstance(value, Mapping):
        keys, parts, kind = tuple(value), list(value.values()), dict
    elif isinstance(value, Sequence) and not isinstance(value, str):
        keys, parts, kind = tuple(range(len(value))), list(value), list  # type: ignore[assignment]
    else:
        raise ProblemError(f"{name} must be a tensor, a list or dict of tensors, or None, not {type(value).__name__}")
    tensors = []
    for key, part in zip(keys, parts, strict=True):
        tensor = torch.tensor(float(part), dtype=torch.float64) if isinstance(part, int | float) else part
        if not isinstance(tensor, Tensor):
            raise ProblemError(f"{name}[{key!r}] must be a tensor, not {type(part).__name__}")
        tensors.append(_real(tensor, name))
    form = Form(kind, keys, tuple(tensor.shape for tensor in tensors))
    if not tensors:
        return None, Form(None, (), ())
    home = next((tensor for tensor in tensors if tensor.dim() or tensor.requires_grad), tensors[0])
    widest = torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else home.dtype
    return torch.cat([tensor.reshape(-1).to(home.device, widest) for tensor in tensors]), form


def _real(tensor: Tensor, name: str) -> Tensor:
    if tensor.is_complex():
        raise ProblemError(f"{name} is complex; constrain its real and imaginary parts or its absolute value")
    if not tensor.is_floating_point():
        return tensor.double()
    return tensor
