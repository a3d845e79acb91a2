"""Random programs with kinks, nested ones too, at a point where many of the kinks are met exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[[Tensor], Tensor]

ELEMENTWISE: dict[str, Function] = {
    "abs": torch.abs,
    "relu": torch.relu,
    "relu module": torch.nn.ReLU(),
    "relu6": functional.relu6,
    "leaky_relu": lambda u: functional.leaky_relu(u, 0.1),
    "elu": lambda u: functional.elu(u, 2.0),
    "celu": lambda u: functional.celu(u, 1.5),
    "clamp": lambda u: u.clamp(-1.0, 0.0),
    "clamp_min": lambda u: torch.clamp_min(u, 0.0),
    "clamp_max": lambda u: u.clamp(max=0.0),
    "hardtanh": lambda u: functional.hardtanh(u, 0.0, 2.0),
    "hardsigmoid": lambda u: functional.hardsigmoid(u - 3.0),
    "softshrink": lambda u: functional.softshrink(u + 0.5),
    "sin": torch.sin,
    "tanh": torch.tanh,
    "square": torch.square,
    "softplus": functional.softplus,
    "sort": lambda u: u.sort().values,
    "where": lambda u: torch.where(u > 0, u, 0.5 * u),
    "sign": lambda u: u * u.sign(),
    "in place": lambda u: (1.0 * u).abs_(),
}
PAIRS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "maximum": torch.maximum,
    "fmax": torch.fmax,
    "minimum": torch.minimum,
    "fmin": torch.fmin,
    "sum": torch.add,
    "product": torch.mul,
}
REDUCTIONS: dict[str, Function] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": torch.max,
    "min": torch.min,
    "amax": lambda u: u.reshape(2, -1).amax(0).sum(),
    "amin": lambda u: u.reshape(-1, 2).amin(1).sum(),
    "max over a dimension": lambda u: u.reshape(2, -1).max(1).values.sum(),
    "min over a dimension": lambda u: u.reshape(2, -1).min(0)[0].sum(),
    "norm 1": lambda u: torch.linalg.vector_norm(u, 1),
    "norm 2": lambda u: torch.linalg.vector_norm(u + 3.0),
    "norm inf": lambda u: torch.linalg.vector_norm(u + 1.0, torch.inf),
    "l1_loss": lambda u: functional.l1_loss(u, torch.zeros_like(u)),
    "hinge": lambda u: functional.relu(1.0 - (u + 1.0)).sum(),
}
ENTRIES = 4


class Program:
    """A random function of `size` variables, and a point at which about half of the arguments of its first kinks are 0."""

    def __init__(self, seed: int, size: int = 3, *, growth: float = 0.0) -> None:
        self._random = np.random.default_rng(seed)
        self.size, self._growth = size, growth
        self.point = torch.from_numpy(self._random.standard_normal(size))
        self._parts = [self._scalar() for _ in range(int(self._random.integers(1, 4)))]

    def __call__(self, x: Tensor) -> Tensor:
        """The value at x."""
        total = self._growth * ((x - 0.3) ** 2).sum()
        for weight, part in self._parts:
            total = total + weight * part(x)
        return total

    def _scalar(self) -> tuple[float, Function]:
        reduction, inner = REDUCTIONS[self._choice(REDUCTIONS)], self._vector(int(self._random.integers(0, 3)))
        return float(self._random.standard_normal()), lambda x: reduction(inner(x))

    def _choice(self, table: dict[str, object]) -> str:
        return str(self._random.choice(list(table)))

    def _vector(self, depth: int) -> Function:
        if depth == 0:
            rows = torch.from_numpy(self._random.standard_normal((ENTRIES, self.size)))
            shift = torch.from_numpy(np.where(self._random.random(ENTRIES) < 0.5, 0.0, self._random.standard_normal(ENTRIES)))
            offset = rows @ self.point
            return lambda x: rows @ x - offset + shift
        first = self._vector(depth - 1)
        if self._random.random() < 0.3:
            second, pair = self._vector(depth - 1), PAIRS[self._choice(PAIRS)]  # type: ignore[arg-type]
            return lambda x: pair(first(x), second(x))
        name = self._choice(ELEMENTWISE)  # type: ignore[arg-type]
        return lambda x: ELEMENTWISE[name](first(x))
