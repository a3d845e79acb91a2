"""More minimax problems of Lukšan and Vlček's collection (TR-798): best approximations and penalty functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .case import Case, largest, unconstrained
from .catalog import catalog
from .hock_schittkowski import WONG1_START, WONG2_START, product_equalities, wong1_terms, wong2_terms
from .hock_schittkowski_inequalities import colville_terms
from .solutions import SOLVED
from .unconstrained import TR798, rosen_suzuki_pieces


def minimax(
    name: str,
    pieces: Callable[[Tensor], Tensor],
    start: tuple[float, ...],
    optimum: float,
    solution: tuple[float, ...] | None = None,
    *,
    start_value: float | None = None,
    convex: bool = False,
) -> Case:
    """A minimax problem without constraints."""
    return Case(
        name=name,
        function=largest(pieces),
        pieces=pieces,
        n=len(start),
        start=start,
        optimum=optimum,
        solution=solution,
        start_value=start_value,
        convex=convex,
        source=f"{TR798}, formula from memory; lifted problem gives the collection's optimum",
    )


def both_signs(residuals: Tensor) -> Tensor:
    """The pieces of the largest absolute value."""
    return torch.cat([residuals, -residuals])


def steps(x: Tensor, first: float, last: float, count: int) -> Tensor:
    """Equally spaced points in the type and on the device of x."""
    return torch.linspace(first, last, count, dtype=torch.float64).to(x)


def wf_pieces(x: Tensor) -> Tensor:
    ratio = 10 * x[0] / (x[0] + 0.1)
    return 0.5 * torch.stack([x[0] + ratio, -x[0] + ratio, x[0] - ratio]) + x[1] ** 2


def spiral_pieces(x: Tensor) -> Tensor:
    radius = torch.linalg.vector_norm(x)
    offsets = torch.stack([x[0] - radius * radius.cos(), x[1] - radius * radius.sin()])
    return offsets**2 + 0.005 * (x**2).sum()


def evd52_pieces(x: Tensor) -> Tensor:
    pieces = [
        (x**2).sum() - 1,
        x[0] ** 2 + x[1] ** 2 + (x[2] - 2) ** 2,
        x[0] + x[1] + x[2] - 1,
        x[0] + x[1] - x[2] + 1,
        2 * x[0] ** 3 + 6 * x[1] ** 2 + 2 * (5 * x[2] - x[0] + 1) ** 2,
        x[0] ** 2 - 9 * x[2],
    ]
    return torch.stack(pieces)


def polak6_pieces(x: Tensor) -> Tensor:
    """The minimax form of Rosen-Suzuki, bent."""
    first = x[0] - (x[3] + 1) ** 4
    return rosen_suzuki_pieces(torch.stack([first, x[1] - first**4, x[2], x[3]]))


def bard_pieces(x: Tensor) -> Tensor:
    heights = x.new_tensor([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])
    rise = steps(x, 1, 15, 15)
    fall = 16 - rise
    return both_signs(heights - x[0] - rise / (x[1] * fall + x[2] * torch.minimum(rise, fall)))


def kowalik_osborne_pieces(x: Tensor) -> Tensor:
    heights = x.new_tensor([0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])
    doses = x.new_tensor([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])
    return both_signs(x[0] * (doses**2 + x[1] * doses) / (doses**2 + x[2] * doses + x[3]) - heights)


def davidon2_pieces(x: Tensor) -> Tensor:
    times = steps(x, 0.2, 4, 20)
    return (x[0] + x[1] * times - times.exp()) ** 2 + (x[2] + x[3] * times.sin() - times.cos()) ** 2


def oet5_pieces(x: Tensor) -> Tensor:
    times = steps(x, 0.25, 1, 21)
    return both_signs(x[3] - (x[0] * times**2 + x[1] * times + x[2]) ** 2 - times.sqrt())


def oet6_pieces(x: Tensor) -> Tensor:
    times = steps(x, -0.5, 0.5, 21)
    return both_signs(x[0] * torch.exp(x[2] * times) + x[1] * torch.exp(x[3] * times) - 1 / (1 + times))


def exponential_pieces(x: Tensor) -> Tensor:
    times = steps(x, -1, 1, 21)
    return both_signs((x[0] + x[1] * times) / (1 + times * (x[2] + times * (x[3] + times * x[4]))) - times.exp())


def pbc1_pieces(x: Tensor) -> Tensor:
    times = steps(x, -1, 1, 30)
    target = ((8 * times - 1) ** 2 + 1).sqrt() * torch.arctan(8 * times) / (8 * times)
    return both_signs((x[0] + x[1] * times + x[2] * times**2) / (1 + x[3] * times + x[4] * times**2) - target)


def damped_residuals(x: Tensor) -> Tensor:
    """The residuals of EVD61 and El-Attar, (51,)."""
    times = steps(x, 0, 5, 51)
    target = 0.5 * torch.exp(-times) - torch.exp(-2 * times) + 0.5 * torch.exp(-3 * times)
    target = target + 1.5 * torch.exp(-1.5 * times) * torch.sin(7 * times) + torch.exp(-2.5 * times) * torch.sin(5 * times)
    return x[0] * torch.exp(-x[1] * times) * torch.cos(x[2] * times + x[3]) + x[4] * torch.exp(-x[5] * times) - target


def evd61_pieces(x: Tensor) -> Tensor:
    return both_signs(damped_residuals(x))


def gill_pieces(x: Tensor) -> Tensor:
    first = ((x - 1) ** 2).sum() + 0.001 * ((x**2).sum() - 0.25) ** 2
    points = steps(x, 1 / 29, 1, 29).unsqueeze(1)
    powers = steps(x, 0, x.numel() - 1, x.numel())
    slopes = (powers[1:] * points ** (powers[1:] - 1)) @ x[1:]
    second = ((slopes - (points**powers @ x) ** 2 - 1) ** 2).sum() + x[0] ** 2 + (x[1] - x[0] ** 2 - 1) ** 2
    third = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[1:]) ** 2).sum()
    return torch.stack([first, second, third])


def wong1_pieces(x: Tensor) -> Tensor:
    value, constraints = wong1_terms(x)
    return torch.cat([value.reshape(1), value + 10 * constraints])


def wong2_pieces(x: Tensor) -> Tensor:
    value, constraints = wong2_terms(x)
    return torch.cat([value.reshape(1), value + 10 * constraints])


def polak2_pieces(x: Tensor) -> Tensor:
    rest = 1e-8 * x[0] ** 2 + x[2] ** 2 + 4 * x[3] ** 2 + (x[4:] ** 2).sum()
    return torch.exp(rest + torch.stack([(x[1] + 2) ** 2, (x[1] - 2) ** 2]))


def polak3_pieces(x: Tensor) -> Tensor:
    row, column = steps(x, 1, 10, 10).unsqueeze(1), steps(x, 0, 10, 11)
    return (torch.exp((x - torch.sin(row - 1 + 2 * column)) ** 2) / (row + column)).sum(1)


def colville1_pieces(x: Tensor) -> Tensor:
    value, constraints = colville_terms(x)
    return torch.cat([value.reshape(1), value + 50 * constraints])


def hs78_penalty(x: Tensor) -> Tensor:
    return x[0] * x[1] * x[2] * x[3] * x[4] + 10 * product_equalities(x).abs().sum()


MINIMAX = catalog(
    minimax("wf", wf_pieces, (3.0, 1.0), 0.0, (0.0, 0.0)),
    minimax("spiral", spiral_pieces, (1.411831, -4.79462), 0.0, (0.0, 0.0)),
    minimax("evd52", evd52_pieces, (1.0, 1.0, 1.0), *SOLVED["evd52"]),
    minimax("polak6", polak6_pieces, (0.0,) * 4, -44.0, (0.0, 1.0, 2.0, -1.0)),
    minimax("bard", bard_pieces, (1.0,) * 3, *SOLVED["bard"]),
    minimax("kowalik_osborne", kowalik_osborne_pieces, (0.25, 0.39, 0.415, 0.39), *SOLVED["kowalik_osborne"]),
    minimax("davidon2", davidon2_pieces, (25.0, 5.0, -5.0, -1.0), *SOLVED["davidon2"], convex=True),
    minimax("oet5", oet5_pieces, (1.0,) * 4, *SOLVED["oet5"]),
    minimax("oet6", oet6_pieces, (1.0, 1.0, -3.0, -1.0), *SOLVED["oet6"]),
    minimax("exponential", exponential_pieces, (0.5, 0.0, 0.0, 0.0, 0.0), *SOLVED["exponential"]),
    minimax("pbc1", pbc1_pieces, (0.0, -1.0, 10.0, 1.0, 10.0), *SOLVED["pbc1"]),
    minimax("evd61", evd61_pieces, (2.0, 2.0, 7.0, 0.0, -2.0, 1.0), *SOLVED["evd61"]),
    minimax("gill", gill_pieces, (-0.1,) * 10, *SOLVED["gill"]),
    minimax("wong1", wong1_pieces, WONG1_START, *SOLVED["wong1"]),
    minimax("wong2", wong2_pieces, WONG2_START, *SOLVED["wong2"], convex=True),
    minimax("polak2", polak2_pieces, (100.0, *(0.1,) * 9), math.exp(4), (0.0,) * 10, convex=True),
    minimax("polak3", polak3_pieces, (1.0,) * 11, *SOLVED["polak3"], convex=True),
    minimax("colville1", colville1_pieces, (0.0, 0.0, 0.0, 0.0, 1.0), *SOLVED["colville1"]),
    Case(
        name="el_attar",
        function=unconstrained(lambda x: damped_residuals(x).abs().sum()),
        n=6,
        start=(2.0, 2.0, 7.0, 0.0, -2.0, 1.0),
        optimum=SOLVED["el_attar"][0],
        solution=SOLVED["el_attar"][1],
        source=f"{TR798}, formula from memory; lifted problem gives the collection's optimum",
    ),
    Case(
        name="hs78_penalty",
        function=unconstrained(hs78_penalty),
        n=5,
        start=(-2.0, 1.5, 2.0, -1.0, -1.0),
        optimum=SOLVED["hs78"][0],
        solution=SOLVED["hs78"][1],
        source=f"{TR798}, formula from memory; local minimum, solution of HS78",
    ),
)
