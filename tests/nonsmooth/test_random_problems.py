"""The random problems are what they say, and the independent check tells their solutions from other points."""

from __future__ import annotations

import pytest
import torch

from problems.independent_check import residual, violation
from problems.random_problems import FAMILIES, RandomProblem, draw


@pytest.fixture(params=FAMILIES)
def problem(request: pytest.FixtureRequest) -> RandomProblem:
    return draw(request.param, size=6, seed=1)


def test_the_solution_is_a_feasible_local_minimum(problem: RandomProblem) -> None:
    assert violation(problem.function, problem.solution) < 1e-9
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        step = 1e-3 * torch.randn(len(problem.solution), generator=generator, dtype=torch.float64)
        f, ci, ce = problem.function(problem.solution + step)
        broken = [part for part in (None if ci is None else ci.clamp(min=0), ce) if part is not None]
        assert float(f) + 10 * sum(float(part.abs().sum()) for part in broken) >= problem.optimum - 1e-12


def test_the_check_accepts_the_solution_and_denies_a_point_beside_it(problem: RandomProblem) -> None:
    assert residual(problem.function, problem.solution) < 1e-4
    generator = torch.Generator().manual_seed(2)
    step = torch.randn(len(problem.solution), generator=generator, dtype=torch.float64)
    assert residual(problem.function, problem.solution + 0.05 * step / step.norm()) > 0.03


def test_other_units_are_the_same_problem(problem: RandomProblem) -> None:
    other = problem.rescaled(6.0)
    assert other.optimum == pytest.approx(problem.optimum, abs=1e-9)
    assert torch.allclose(other.to_natural_units(other.start), problem.start)
    ratio = other.units.max() / other.units.min()  # type: ignore[union-attr]
    assert ratio > 100
    f, ci, _ = other.function(other.solution)
    assert (ci is None) is (problem.function(problem.solution)[1] is None)
    assert float(f) != pytest.approx(problem.optimum, rel=1e-3) or abs(problem.optimum) < 1e-9


def test_a_problem_is_the_same_whenever_it_is_drawn(problem: RandomProblem) -> None:
    again = draw(problem.family, size=6, seed=problem.seed)
    assert torch.equal(again.start, problem.start)
    assert float(again.function(again.start)[0]) == float(problem.function(problem.start)[0])
    assert not torch.equal(draw(problem.family, size=6, seed=2).start, problem.start)
