"""Chained families: small problems strung together along the variables, for any n."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Case, unconstrained
from .catalog import catalog

LIMITED = "Karmitsa 2007 on Haarala-Miettinen-Mäkelä 2004, NonOpt"


def lq_terms(x: Tensor) -> Tensor:
    """The two pieces of LQ for each pair of neighbors, (2, n-1)."""
    left, right = x[:-1], x[1:]
    return torch.stack([-left - right, -left - right + left**2 + right**2 - 1])


def cb3_terms(x: Tensor) -> Tensor:
    """The three pieces of CB3 for each pair of neighbors, (3, n-1)."""
    left, right = x[:-1], x[1:]
    return torch.stack([left**4 + right**2, (2 - left) ** 2 + (2 - right) ** 2, 2 * torch.exp(right - left)])


def chained_lq(n: int = 20) -> Case:
    """Sum of LQ over neighbors; convex."""
    return Case(
        name="chained_lq" if n == 20 else f"chained_lq_{n}",
        function=unconstrained(lambda x: lq_terms(x).amax(0).sum()),
        n=n,
        start=(-0.5,) * n,
        start_value=float(n - 1),
        optimum=-(n - 1) * math.sqrt(2),
        solution=(math.sqrt(0.5),) * n,
        convex=True,
        source=f"{LIMITED}; solution and lifted problem checked",
    )


def chained_cb3_1(n: int = 20) -> Case:
    """Sum of CB3 over neighbors; convex."""
    return Case(
        name="chained_cb3_1" if n == 20 else f"chained_cb3_1_{n}",
        function=unconstrained(lambda x: cb3_terms(x).amax(0).sum()),
        n=n,
        start=(2.0,) * n,
        start_value=20.0 * (n - 1),
        optimum=2.0 * (n - 1),
        solution=(1.0,) * n,
        convex=True,
        source=f"{LIMITED}; solution and lifted problem checked",
    )


def chained_cb3_2(n: int = 20) -> Case:
    """The largest of three sums over neighbors; convex."""
    return Case(
        name="chained_cb3_2" if n == 20 else f"chained_cb3_2_{n}",
        function=unconstrained(lambda x: cb3_terms(x).sum(1).max()),
        pieces=lambda x: cb3_terms(x).sum(1),
        n=n,
        start=(2.0,) * n,
        start_value=20.0 * (n - 1),
        optimum=2.0 * (n - 1),
        solution=(1.0,) * n,
        convex=True,
        source=f"{LIMITED}; solution and lifted problem checked",
    )


def nesterov_chebyshev_rosenbrock(n: int = 5) -> Case:
    """Nesterov's function with absolute values: a winding valley whose bottom is a kink; hard already for n = 5.

    The start lies on the valley's bottom, at a kink of every term.
    """
    return Case(
        name="nesterov_chebyshev_rosenbrock" if n == 5 else f"nesterov_chebyshev_rosenbrock_{n}",
        function=unconstrained(lambda x: 0.25 * (x[0] - 1) ** 2 + (x[1:] - 2 * x[:-1] ** 2 + 1).abs().sum()),
        n=n,
        start=(-1.0,) + (1.0,) * (n - 1),
        start_value=1.0,
        optimum=0.0,
        solution=(1.0,) * n,
        source="Gürbüzbalaban-Overton 2012, definition from memory; solution checked (f >= 0)",
    )


CHAINED = catalog(chained_lq(), chained_cb3_1(), chained_cb3_2(), nesterov_chebyshev_rosenbrock())
