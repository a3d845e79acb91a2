"""Small nonsmooth problems without constraints, most of them of Lukšan and Vlček's collection (TR-798)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Case, Constant, largest, unconstrained
from .catalog import catalog
from .solutions import SOLVED

TR798 = "Lukšan-Vlček TR-798 / Mäkelä-Neittaanmäki 1992"


def crescent_pieces(x: Tensor) -> Tensor:
    circle = x[0] ** 2 + (x[1] - 1) ** 2
    return torch.stack([circle + x[1] - 1, -circle + x[1] + 1])


def cb2_pieces(x: Tensor) -> Tensor:
    return torch.stack([x[0] ** 2 + x[1] ** 4, (2 - x[0]) ** 2 + (2 - x[1]) ** 2, 2 * torch.exp(x[1] - x[0])])


def cb3_pieces(x: Tensor) -> Tensor:
    return torch.stack([x[0] ** 4 + x[1] ** 2, (2 - x[0]) ** 2 + (2 - x[1]) ** 2, 2 * torch.exp(x[1] - x[0])])


def dem_pieces(x: Tensor) -> Tensor:
    return torch.stack([5 * x[0] + x[1], -5 * x[0] + x[1], x[0] ** 2 + x[1] ** 2 + 4 * x[1]])


def ql_pieces(x: Tensor) -> Tensor:
    quadratic = x[0] ** 2 + x[1] ** 2
    return torch.stack([quadratic, quadratic + 10 * (-4 * x[0] - x[1] + 4), quadratic + 10 * (-x[0] - 2 * x[1] + 6)])


def lq_pieces(x: Tensor) -> Tensor:
    linear = -x[0] - x[1]
    return torch.stack([linear, linear + x[0] ** 2 + x[1] ** 2 - 1])


def mifflin1_pieces(x: Tensor) -> Tensor:
    return torch.stack([-x[0], -x[0] + 20 * (x[0] ** 2 + x[1] ** 2 - 1)])


def mifflin2_pieces(x: Tensor) -> Tensor:
    circle = x[0] ** 2 + x[1] ** 2 - 1
    return torch.stack([-x[0] + 3.75 * circle, -x[0] + 0.25 * circle])


def wolfe(x: Tensor) -> Tensor:
    """Three pieces by region; steepest descent with exact line searches stalls at 0, which is not stationary."""
    squares = 9 * x[0] ** 2 + 16 * x[1] ** 2
    root = torch.where(squares > 0, torch.where(squares > 0, squares, torch.ones_like(squares)).sqrt(), squares)
    left = 9 * x[0] + 16 * x[1].abs()
    return torch.where(x[0] >= x[1].abs(), 5 * root, torch.where(x[0] > 0, left, left - x[0] ** 9))


ROSEN_SUZUKI_SQUARES = Constant(((1, 1, 2, 1), (1, 1, 1, 1), (1, 2, 1, 2), (2, 1, 1, 0)))
ROSEN_SUZUKI_LINEAR = Constant(((-5, -5, -21, 7), (1, -1, 1, -1), (-1, 0, 0, -1), (2, -1, 0, -1)))
ROSEN_SUZUKI_LEVELS = Constant((8, 10, 5))


def rosen_suzuki_terms(x: Tensor) -> tuple[Tensor, Tensor]:
    """Objective (a scalar) and the three constraints (<= 0) of HS43."""
    values = ROSEN_SUZUKI_SQUARES(x) @ x**2 + ROSEN_SUZUKI_LINEAR(x) @ x
    return values[0], values[1:] - ROSEN_SUZUKI_LEVELS(x)


def rosen_suzuki_pieces(x: Tensor) -> Tensor:
    objective, constraints = rosen_suzuki_terms(x)
    return torch.cat([objective.reshape(1), objective + 10 * constraints])


SHOR_CENTRES = Constant(
    (
        *((0.0, 0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 1.0, 1.0, 3.0), (1.0, 2.0, 1.0, 1.0, 2.0), (1.0, 4.0, 1.0, 2.0, 2.0)),
        *((3.0, 2.0, 1.0, 0.0, 1.0), (0.0, 2.0, 1.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 2.0, 1.0)),
        *((0.0, 0.0, 2.0, 1.0, 0.0), (1.0, 1.0, 2.0, 0.0, 0.0)),
    )
)
SHOR_WEIGHTS = Constant((1.0, 5.0, 10.0, 2.0, 4.0, 3.0, 1.7, 2.5, 6.0, 3.5))


def shor_pieces(x: Tensor) -> Tensor:
    return SHOR_WEIGHTS(x) * ((x - SHOR_CENTRES(x)) ** 2).sum(1)


def maxquad_data() -> tuple[Tensor, Tensor]:
    """The five matrices, (5, 10, 10), and vectors, (5, 10), of Maxquad in float64."""
    index = torch.arange(1, 11, dtype=torch.float64)
    number = torch.arange(1, 6, dtype=torch.float64).reshape(5, 1)
    row, column = index.reshape(10, 1), index.reshape(1, 10)
    upper = torch.triu(torch.exp(row / column) * torch.cos(row * column), diagonal=1)
    matrices = (upper + upper.T) * number.sin().unsqueeze(2)
    diagonal = index / 10 * number.sin().abs() + matrices.abs().sum(2)
    return matrices + torch.diag_embed(diagonal), torch.exp(index / number) * torch.sin(index * number)


MAXQUAD_MATRICES, MAXQUAD_VECTORS = (Constant(data) for data in maxquad_data())


def maxquad_pieces(x: Tensor) -> Tensor:
    return (MAXQUAD_MATRICES(x) @ x) @ x - MAXQUAD_VECTORS(x) @ x


def maxq(n: int = 20) -> Case:
    """The largest square; starts with all signs and sizes different."""
    start = tuple(float(i) if i <= n // 2 else -float(i) for i in range(1, n + 1))
    return Case(
        name="maxq" if n == 20 else f"maxq_{n}",
        function=unconstrained(lambda x: (x**2).max()),
        pieces=lambda x: x**2,
        n=n,
        start=start,
        optimum=0.0,
        solution=(0.0,) * n,
        start_value=float(n * n),
        convex=True,
        source=f"{TR798}; exact",
    )


UNCONSTRAINED = catalog(
    Case(
        name="crescent",
        function=largest(crescent_pieces),
        pieces=crescent_pieces,
        n=2,
        start=(-1.5, 2.0),
        start_value=4.25,
        optimum=0.0,
        solution=(0.0, 0.0),
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="cb2",
        function=largest(cb2_pieces),
        pieces=cb2_pieces,
        n=2,
        start=(1.0, -0.1),
        start_value=5.41,
        optimum=SOLVED["cb2"][0],
        solution=SOLVED["cb2"][1],
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="cb3",
        function=largest(cb3_pieces),
        pieces=cb3_pieces,
        n=2,
        start=(2.0, 2.0),
        start_value=20.0,
        optimum=2.0,
        solution=(1.0, 1.0),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="dem",
        function=largest(dem_pieces),
        pieces=dem_pieces,
        n=2,
        start=(1.0, 1.0),
        start_value=6.0,
        optimum=-3.0,
        solution=(0.0, -3.0),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="ql",
        function=largest(ql_pieces),
        pieces=ql_pieces,
        n=2,
        start=(-1.0, 5.0),
        start_value=56.0,
        optimum=7.2,
        solution=(1.2, 2.4),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="lq",
        function=largest(lq_pieces),
        pieces=lq_pieces,
        n=2,
        start=(-0.5, -0.5),
        start_value=1.0,
        optimum=-math.sqrt(2),
        solution=(math.sqrt(0.5), math.sqrt(0.5)),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="mifflin1",
        function=largest(mifflin1_pieces),
        pieces=mifflin1_pieces,
        n=2,
        start=(0.8, 0.6),
        start_value=-0.8,
        optimum=-1.0,
        solution=(1.0, 0.0),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="mifflin2",
        function=largest(mifflin2_pieces),
        pieces=mifflin2_pieces,
        n=2,
        start=(-1.0, -1.0),
        start_value=4.75,
        optimum=-1.0,
        solution=(1.0, 0.0),
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="wolfe",
        function=unconstrained(wolfe),
        n=2,
        start=(3.0, 2.0),
        start_value=60.207972893961475,
        optimum=-8.0,
        solution=(-1.0, 0.0),
        convex=True,
        source=f"{TR798}; start value and solution checked",
    ),
    Case(
        name="rosen_suzuki_minimax",
        function=largest(rosen_suzuki_pieces),
        pieces=rosen_suzuki_pieces,
        n=4,
        start=(0.0, 0.0, 0.0, 0.0),
        start_value=0.0,
        optimum=-44.0,
        solution=(0.0, 1.0, 2.0, -1.0),
        convex=True,
        source=f"{TR798}; start value, solution and lifted problem checked",
    ),
    Case(
        name="shor",
        function=largest(shor_pieces),
        pieces=shor_pieces,
        n=5,
        start=(0.0, 0.0, 0.0, 0.0, 1.0),
        start_value=80.0,
        optimum=SOLVED["shor"][0],
        solution=SOLVED["shor"][1],
        convex=True,
        source=f"{TR798}, tables from memory; start value and lifted problem checked",
    ),
    Case(
        name="maxquad",
        function=largest(maxquad_pieces),
        pieces=maxquad_pieces,
        n=10,
        start=(1.0,) * 10,
        start_value=5337.066429311362,
        optimum=SOLVED["maxquad"][0],
        solution=SOLVED["maxquad"][1],
        convex=True,
        source=f"{TR798}, formula from memory; start value and lifted problem checked",
    ),
    maxq(),
)
