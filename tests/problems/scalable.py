"""More nonsmooth families without constraints, for any n."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Case, Constant, largest, unconstrained
from .catalog import catalog
from .chained import LIMITED
from .solutions import SOLVED
from .unconstrained import TR798


def named(family: str, n: int, usual: int) -> str:
    """The family's name, with n where it is not the usual one."""
    return family if n == usual else f"{family}_{n}"


def alternating(odd: float, even: float, n: int) -> tuple[float, ...]:
    """odd, even, odd, ... (positions counted from 1)."""
    return tuple(odd if i % 2 == 0 else even for i in range(n))


def goffin(n: int = 50) -> Case:
    """n times the largest entry less the sum: a polyhedral function, constant along (1, ..., 1)."""

    def pieces(x: Tensor) -> Tensor:
        return n * x - x.sum()

    return Case(
        name=named("goffin", n, 50),
        function=largest(pieces),
        pieces=pieces,
        n=n,
        start=tuple(i - (n - 1) / 2 for i in range(n)),
        start_value=n * (n - 1) / 2,
        optimum=0.0,
        solution=(0.0,) * n,
        convex=True,
        source=f"{TR798}; exact: the largest entry is no less than the mean",
    )


def maxl(n: int = 20) -> Case:
    """The largest absolute value."""

    def pieces(x: Tensor) -> Tensor:
        return torch.cat([x, -x])

    return Case(
        name=named("maxl", n, 20),
        function=largest(pieces),
        pieces=pieces,
        n=n,
        start=tuple(float(i) if i <= n // 2 else -float(i) for i in range(1, n + 1)),
        start_value=float(n),
        optimum=0.0,
        solution=(0.0,) * n,
        convex=True,
        source=f"{TR798}; exact",
    )


def hilbert(n: int) -> Constant:
    """The Hilbert matrix."""
    index = torch.arange(n, dtype=torch.float64)
    return Constant(1 / (index.unsqueeze(1) + index + 1))


def max_hilbert(n: int = 50) -> Case:
    """Known as MXHILB: the largest absolute entry of H x; as badly conditioned as the Hilbert matrix."""
    matrix = hilbert(n)

    def pieces(x: Tensor) -> Tensor:
        product = matrix(x) @ x
        return torch.cat([product, -product])

    return Case(
        name=named("max_hilbert", n, 50),
        function=largest(pieces),
        pieces=pieces,
        n=n,
        start=(1.0,) * n,
        start_value=math.fsum(1 / i for i in range(1, n + 1)),
        optimum=0.0,
        solution=(0.0,) * n,
        convex=True,
        source=f"{TR798}, {LIMITED}; exact",
    )


def sum_hilbert(n: int = 50) -> Case:
    """Known as L1HILB: the sum of the absolute entries of H x."""
    matrix = hilbert(n)
    return Case(
        name=named("sum_hilbert", n, 50),
        function=unconstrained(lambda x: (matrix(x) @ x).abs().sum()),
        n=n,
        start=(1.0,) * n,
        start_value=math.fsum(1 / (i + j + 1) for i in range(n) for j in range(n)),
        optimum=0.0,
        solution=(0.0,) * n,
        convex=True,
        source=f"{TR798}; exact",
    )


def active_faces(n: int = 20) -> Case:
    """The largest of log(1 + |x_i|) and log(1 + |sum of x|); nonconvex, with very many active pieces."""

    def objective(x: Tensor) -> Tensor:
        return torch.log1p(torch.cat([x, -x.sum().reshape(1)]).abs()).max()

    return Case(
        name=named("active_faces", n, 20),
        function=unconstrained(objective),
        n=n,
        start=(1.0,) * n,
        start_value=math.log(n + 1),
        optimum=0.0,
        solution=(0.0,) * n,
        source=f"{LIMITED}; exact",
    )


def brown2(n: int = 20) -> Case:
    """Nonsmooth generalization of Brown's second function: |x_i| to powers of at least 1; nonconvex."""

    def objective(x: Tensor) -> Tensor:
        left, right = x[:-1], x[1:]
        return (left.abs() ** (right**2 + 1) + right.abs() ** (left**2 + 1)).sum()

    return Case(
        name=named("brown2", n, 20),
        function=unconstrained(objective),
        n=n,
        start=alternating(-1.0, 1.0, n),
        start_value=2.0 * (n - 1),
        optimum=0.0,
        solution=(0.0,) * n,
        source=f"{LIMITED}; exact",
    )


def chained_mifflin2(n: int = 20) -> Case:
    """Sum of Mifflin 2 over neighbors; nonconvex."""

    def objective(x: Tensor) -> Tensor:
        circle = x[:-1] ** 2 + x[1:] ** 2 - 1
        return (-x[:-1] + 2 * circle + 1.75 * circle.abs()).sum()

    optimum, solution = SOLVED.get(f"chained_mifflin2_{n}", (None, None))
    return Case(
        name=named("chained_mifflin2", n, 20),
        function=unconstrained(objective),
        n=n,
        start=(-1.0,) * n,
        start_value=4.75 * (n - 1),
        optimum=optimum,
        solution=solution,
        source=f"{LIMITED}; lifted problem (for n = 50 the published -34.795)",
    )


def crescent_terms(x: Tensor) -> Tensor:
    """The two pieces of crescent for each pair of neighbors, (2, n-1)."""
    circle = x[:-1] ** 2 + (x[1:] - 1) ** 2
    return torch.stack([circle + x[1:] - 1, -circle + x[1:] + 1])


def chained_crescent_1(n: int = 20) -> Case:
    """The larger of two sums over neighbors; nonconvex."""

    def pieces(x: Tensor) -> Tensor:
        return crescent_terms(x).sum(1)

    return Case(
        name=named("chained_crescent_1", n, 20),
        function=largest(pieces),
        pieces=pieces,
        n=n,
        start=alternating(-1.5, 2.0, n),
        optimum=0.0,
        solution=(0.0,) * n,
        source=f"{LIMITED}; exact: f >= 0 by the inequality of means",
    )


def chained_crescent_2(n: int = 20) -> Case:
    """Sum of crescent over neighbors; nonconvex."""
    return Case(
        name=named("chained_crescent_2", n, 20),
        function=unconstrained(lambda x: crescent_terms(x).amax(0).sum()),
        n=n,
        start=alternating(-1.5, 2.0, n),
        optimum=0.0,
        solution=(0.0,) * n,
        source=f"{LIMITED}; exact: every term is >= 0",
    )


def lovasz_theta(n: int = 5) -> Case:
    """The theta number of a cycle of odd length n: the smallest largest eigenvalue of a matrix with free edges.

    The largest eigenvalue is multiple at the solution.
    """

    def objective(x: Tensor) -> Tensor:
        position = torch.arange(n, device=x.device)
        edges = torch.zeros(n, n, dtype=x.dtype, device=x.device).index_put((position, (position + 1) % n), x)
        return torch.linalg.eigvalsh(1 + edges + edges.T)[-1]

    theta = n * math.cos(math.pi / n) / (1 + math.cos(math.pi / n))
    return Case(
        name=named("lovasz_theta", n, 5),
        function=unconstrained(objective),
        n=n,
        start=(0.0,) * n,
        start_value=float(n),
        optimum=theta,
        solution=((theta - n) / 2,) * n,
        convex=True,
        source="Lovász 1979; exact: n cos(pi/n) / (1 + cos(pi/n))",
    )


SCALABLE = catalog(
    goffin(),
    maxl(),
    max_hilbert(),
    sum_hilbert(),
    active_faces(),
    brown2(),
    chained_mifflin2(),
    chained_crescent_1(),
    chained_crescent_2(),
    lovasz_theta(),
)
