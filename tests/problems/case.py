"""One test problem: its function, where to start, and what is known about its solution.

Convention everywhere: minimize f(x) subject to ci(x) <= 0 and ce(x) = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Values = tuple[Tensor, Tensor | None, Tensor | None]
Function = Callable[[Tensor], Values]


@dataclass(frozen=True)
class Case:
    """A problem in one flat variable of shape (n,), in any floating type and on any device."""

    name: str
    function: Function
    """x of shape (n,) -> (f, a scalar; ci, 1-D or None; ce, 1-D or None)"""
    n: int
    start: tuple[float, ...] | Callable[[], Tensor]
    """The usual starting point, or a function that makes it anew, (n,) in float64."""
    optimum: float | None = None
    """The optimal value; None where it is not known."""
    solution: tuple[float, ...] | None = None
    start_value: float | None = None
    """f at the start, as the source has it."""
    smooth: bool = False
    """True only if f, ci and ce are all smooth."""
    convex: bool = False
    """True only if the problem is convex, so that every local minimizer is global."""
    inequalities: int = 0
    equalities: int = 0
    source: str = ""
    """Where the problem is from, and how its values were checked."""
    pieces: Callable[[Tensor], Tensor] | None = None
    """For a minimax problem: the smooth functions whose largest value is f, so that a smooth solver can solve it too."""

    def initial(self, dtype: torch.dtype = torch.float64, device: torch.device | str = "cpu") -> Tensor:
        """A new tensor with the starting point."""
        values = self.start() if callable(self.start) else torch.tensor(self.start, dtype=torch.float64)
        return values.detach().clone().to(device=device, dtype=dtype)

    def answer(self, dtype: torch.dtype = torch.float64, device: torch.device | str = "cpu") -> Tensor:
        """A new tensor with the known solution."""
        if self.solution is None:
            raise ValueError(f"no solution of {self.name!r} is known")
        return torch.tensor(self.solution, dtype=torch.float64).to(device=device, dtype=dtype)

    def objective(self, x: Tensor) -> Tensor:
        """f alone."""
        return self.function(x)[0]

    def violation(self, x: Tensor) -> float:
        """The largest violation of a constraint at x; 0 where x is feasible."""
        _, inequality, equality = self.function(x)
        worst = [0.0]
        if inequality is not None:
            worst.append(float(inequality.detach().max()))
        if equality is not None:
            worst.append(float(equality.detach().abs().max()))
        return max(worst)


class Constant:
    """Data of a problem, kept once for each type and device it is used with."""

    def __init__(self, values: Any) -> None:
        whole = isinstance(values, Tensor) and not values.is_floating_point()
        self.values = values if whole else torch.as_tensor(values, dtype=torch.float64)
        self.copies: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def __call__(self, x: Tensor) -> Tensor:
        """The data on the device of x and, unless they are a tensor of whole numbers, in its type."""
        key = (x.dtype, x.device)
        if key not in self.copies:
            self.copies[key] = self.values.to(x.device, x.dtype if self.values.is_floating_point() else self.values.dtype)
        return self.copies[key]


def unconstrained(objective: Callable[[Tensor], Tensor]) -> Function:
    """The function of a problem without constraints."""

    def function(x: Tensor) -> Values:
        return objective(x), None, None

    return function


def largest(
    pieces: Callable[[Tensor], Tensor],
    inequality: Callable[[Tensor], Tensor] | None = None,
    equality: Callable[[Tensor], Tensor] | None = None,
) -> Function:
    """The function of a minimax problem: f is the largest of the pieces."""

    def function(x: Tensor) -> Values:
        return pieces(x).max(), inequality(x) if inequality else None, equality(x) if equality else None

    return function


def lifted(case: Case) -> Case:
    """The smooth form of a minimax problem: one more variable t, to be minimized above all pieces."""
    pieces = case.pieces
    if pieces is None:
        raise ValueError(f"{case.name!r} is not a minimax problem")

    def function(x: Tensor) -> Values:
        _, inequality, equality = case.function(x[:-1])
        above = pieces(x[:-1]) - x[-1]
        return x[-1], above if inequality is None else torch.cat([above, inequality]), equality

    def start() -> Tensor:
        x = case.initial()
        return torch.cat([x, case.objective(x).reshape(1)])

    return Case(
        name=f"{case.name}_lifted",
        function=function,
        n=case.n + 1,
        start=start,
        optimum=case.optimum,
        solution=None if case.solution is None or case.optimum is None else (*case.solution, case.optimum),
        smooth=True,
        convex=case.convex,
        inequalities=case.inequalities + pieces(case.initial()).numel(),
        equalities=case.equalities,
        source=case.source,
    )
