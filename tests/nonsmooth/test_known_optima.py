"""Every problem with a known optimum is solved, and every hopeless one is called so."""

from __future__ import annotations

import math

import pytest
import torch

from nonsmooth import Result, Status, minimize
from problems import ALL, NEGATIVE, Case, NegativeCase
from problems.published import trace

UNBOUNDED = {"hs78_penalty": "the penalty of 10 is too small: the objective is unbounded below"}
BADLY_SCALED = {"hs106": "badly scaled: variables from 1e1 to 1e4, multipliers from 1e-4 to 1e4"}
LONG = {
    "nesterov_chebyshev_rosenbrock": {"max_iterations": 60_000, "stationarity_tolerance": 1e-7},
    "oet5": {"max_iterations": 10_000},
}
"""Cases that need more than 1000 iterations. The first is so flat near the optimum that a slope of 1e-6 is met 3e-6 above it;
in both the way leads along a curved kink."""
SLOW = {"generalized_lasso", "chained_mifflin2", "chained_crescent_2", "gill", "hs46"}
"""More than a second."""

SADDLES = {"chained_crescent_2"}
"""By its kinks a run reaches the top of a circle, which is stationary; stepping over them leads past it."""

KNOWN = {name: case for name, case in ALL.items() if case.optimum is not None}
AT_SADDLES = [KNOWN[name] for name in SADDLES]
SOLVED = {name: case for name, case in KNOWN.items() if name not in {**UNBOUNDED, **BADLY_SCALED, **LONG}}


def assert_solved(case: Case, result: Result) -> None:
    assert case.optimum is not None
    assert result.success and result.status is Status.STATIONARY
    assert result.violation <= 1e-6 and case.violation(result.x) <= 1e-6
    assert result.f == pytest.approx(case.optimum, abs=1e-6 * max(1.0, abs(case.optimum)))
    assert float(case.objective(result.x)) == pytest.approx(result.f, rel=1e-12, abs=1e-12)
    certificate = result.check()
    assert certificate.stationary, certificate


def marked(cases: dict[str, Case]) -> list[object]:
    return [pytest.param(case, id=name, marks=pytest.mark.exhaustive if name in SLOW else ()) for name, case in cases.items()]


@pytest.mark.parametrize("case", marked(SOLVED))
def test_known_optimum(case: Case) -> None:
    assert_solved(case, minimize(case.function, case.initial(), structure="off" if case in AT_SADDLES else "auto"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LONG)
def test_known_optimum_after_many_iterations(name: str) -> None:
    assert_solved(ALL[name], minimize(ALL[name].function, ALL[name].initial(), **LONG[name]))


@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded_after_all(name: str) -> None:
    """There is a local minimum too; which of the two a run finds hangs on its start."""
    case, generator, unbounded = ALL[name], torch.Generator().manual_seed(0), 0
    for _ in range(8):
        start = case.initial()
        start *= 1 + 0.1 * torch.randn(start.shape, generator=generator, dtype=start.dtype)
        result = minimize(case.function, start, scaling="none", structure="off")
        if result.success:
            assert_solved(case, result)
            continue
        assert result.status is Status.UNBOUNDED
        assert result.f < -1e10
        unbounded += 1
    assert unbounded


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", BADLY_SCALED)
def test_badly_scaled(name: str) -> None:
    """No answer within the limit is fine, a wrong one is not."""
    case = ALL[name]
    result = minimize(case.function, case.initial())
    assert result.violation <= 1e-6
    if result.success:
        assert_solved(case, result)


def test_exceptions_are_cases() -> None:
    assert {*UNBOUNDED, *BADLY_SCALED, *LONG, *SLOW} <= KNOWN.keys()
    assert len(SOLVED) >= 100


@pytest.mark.parametrize("case", NEGATIVE.values(), ids=NEGATIVE)
def test_hopeless_cases_get_their_status(case: NegativeCase) -> None:
    result = minimize(case.function, case.initial())
    if case.expected is not None:
        assert result.status.name == case.expected
    assert result.success == (result.status is Status.STATIONARY)
    if result.success:
        assert case.optimum is not None
        assert result.check().stationary
        assert case.violation(result.x) <= 1e-6
        assert result.f == pytest.approx(case.optimum, abs=1e-6 * max(1.0, abs(case.optimum)))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in KNOWN.items() if case.convex and name not in SLOW]
)
def test_convex_cases_never_end_early_with_success(case: Case) -> None:
    """Few iterations, and loose options: whatever is called a success is one."""
    assert case.optimum is not None
    for options in ({"max_iterations": 5}, {"memory": 2, "max_iterations": 60}, {"max_null_steps": 0, "max_iterations": 60}):
        result = minimize(case.function, case.initial(), **options)  # type: ignore[arg-type]
        if result.success:
            assert result.f <= case.optimum + 1e-5 * max(1.0, abs(case.optimum)), options


def test_orthonormal_columns_from_fifty_starts() -> None:
    """B3: the largest trace over orthonormal columns, with every entry of VᵀV = I as an equality, half of them twice."""
    problem = trace()
    symmetric = _matrix()
    optimum = -3.932280709
    assert problem.optimum == pytest.approx(optimum, abs=1e-8)
    reached = 0
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        start = {"V": torch.randn(5, 2, dtype=torch.float64, generator=generator)}
        result = minimize(problem.function, start)
        if not result.success:
            continue
        basis = result.x["V"]
        assert (basis.T @ basis - torch.eye(2).double()).abs().max() <= 1e-6
        gradient = -2 * symmetric @ basis
        # On the manifold of orthonormal columns: the part of the gradient that no multiplier can balance.
        product = basis.T @ gradient
        riemannian = gradient - basis @ (product + product.T) / 2
        assert riemannian.norm() <= 1e-4 * (1 + gradient.norm()), seed
        reached += abs(result.f - optimum) <= 1e-6 * abs(optimum)
    assert reached >= 48


def _matrix() -> torch.Tensor:
    from problems.data import trace_data

    return trace_data(5, 2)[0]


def test_optima_are_finite() -> None:
    assert all(case.optimum is not None and math.isfinite(case.optimum) for case in KNOWN.values())
