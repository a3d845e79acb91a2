"""Random problems of every kind: whatever is claimed about them is confirmed by a check written for this test alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from torch import Tensor

from nonsmooth import Result, Status, minimize
from nonsmooth.evaluate.scaling import Scales

Term = Callable[[Tensor], Tensor]
RADIUS = 1e-5
TOLERANCE = 1e-3
NEVER = {Status.SOLVER_ERROR, Status.FUNCTION_ERROR, Status.QP_FAILURE, Status.USER_STOP, Status.TARGET_REACHED}


def vector(draw: np.random.Generator, n: int) -> Tensor:
    return torch.from_numpy(draw.standard_normal(n))


def matrix(draw: np.random.Generator, rows: int, n: int) -> Tensor:
    return torch.from_numpy(draw.standard_normal((rows, n)))


def largest_quadratic(draw: np.random.Generator, n: int) -> Term:
    count = int(draw.integers(2, 5))
    roots, slopes, levels = [matrix(draw, n, n) for _ in range(count)], matrix(draw, count, n), vector(draw, count)
    return lambda x: torch.stack(
        [0.5 * ((r @ x) ** 2).sum() + s @ x + c for r, s, c in zip(roots, slopes, levels, strict=True)]
    ).max()


def absolute_values(draw: np.random.Generator, n: int) -> Term:
    rows, levels = matrix(draw, int(draw.integers(1, n + 2)), n), float(draw.uniform(0.2, 3))
    shift = vector(draw, len(rows))
    return lambda x: levels * (rows @ x - shift).abs().sum()


def euclidean_norm(draw: np.random.Generator, n: int) -> Term:
    rows, shift = matrix(draw, n, n), vector(draw, n)
    return lambda x: torch.linalg.vector_norm(rows @ x - shift)


def largest_linear(draw: np.random.Generator, n: int) -> Term:
    rows, shift = matrix(draw, int(draw.integers(1, 2 * n + 2)), n), float(draw.standard_normal())
    return lambda x: (rows @ x).max() + shift


def largest_eigenvalue(draw: np.random.Generator, n: int) -> Term:
    parts = torch.stack([(m + m.T) / 2 for m in (matrix(draw, 3, 3) for _ in range(n + 1))])
    return lambda x: torch.linalg.eigvalsh(parts[0] + torch.einsum("i,ijk->jk", x, parts[1:])).max()


def waves(draw: np.random.Generator, n: int) -> Term:
    direction, shift = vector(draw, n), float(draw.uniform(0, 6))
    return lambda x: torch.sin(direction @ x + shift) + 0.05 * (x**2).sum()


def saddle(draw: np.random.Generator, n: int) -> Term:
    root = matrix(draw, n, n)
    return lambda x: 0.5 * x @ (root + root.T) @ x


def curved_valley(draw: np.random.Generator, n: int) -> Term:
    steep = float(draw.uniform(1, 8))
    return lambda x: steep * (x[-1] - x[0] ** 2).abs() + ((1 - x) ** 2).sum()


TERMS = {
    term.__name__: term
    for term in (
        largest_quadratic,
        absolute_values,
        euclidean_norm,
        largest_linear,
        largest_eigenvalue,
        waves,
        saddle,
        curved_valley,
    )
}
CONVEX = ("largest_quadratic", "absolute_values", "euclidean_norm", "largest_linear", "largest_eigenvalue")


@dataclass(frozen=True)
class Plan:
    """What a random problem is made of."""

    n: int
    seed: int
    objective: tuple[str, ...]
    inequalities: tuple[str, ...]
    equalities: tuple[str, ...]
    at_origin: bool
    """Start at the origin, which may be a kink, instead of somewhere."""

    @property
    def convex(self) -> bool:
        return all(name in CONVEX for name in (*self.objective, *self.inequalities)) and not self.equalities

    def build(self) -> tuple[Callable[[Tensor], tuple[Tensor, list[Tensor] | None, list[Tensor] | None]], Tensor]:
        draw = np.random.default_rng(self.seed)
        objective = [TERMS[name](draw, self.n) for name in self.objective]
        limits = [(TERMS[name](draw, self.n), float(draw.uniform(-0.5, 6))) for name in self.inequalities]
        levels = [(TERMS[name](draw, self.n), float(draw.uniform(0, 3))) for name in self.equalities]
        start = torch.zeros(self.n).double() if self.at_origin else 2 * vector(draw, self.n)

        def function(x: Tensor) -> tuple[Tensor, list[Tensor] | None, list[Tensor] | None]:
            return (
                torch.stack([term(x) for term in objective]).sum(),
                [term(x) - level for term, level in limits] or None,
                [term(x) - level for term, level in levels] or None,
            )

        return function, start


def some(names: tuple[str, ...], low: int, high: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(sorted(names)), min_size=low, max_size=high).map(tuple)


plans = st.builds(
    Plan,
    n=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    objective=some(tuple(TERMS), 1, 3),
    inequalities=some(tuple(TERMS), 0, 2),
    equalities=some(tuple(TERMS), 0, 1),
    at_origin=st.booleans(),
)


def values(plan_function: Callable[[Tensor], tuple[Tensor, list[Tensor] | None, list[Tensor] | None]], x: np.ndarray) -> tuple:
    """f, ci, ce and all their gradients at x, by automatic differentiation one by one."""
    point = torch.tensor(x, requires_grad=True)
    f, inequalities, equalities = plan_function(point)
    blocks = []
    for part in ([f], inequalities or [], equalities or []):
        rows = [torch.autograd.grad(value, point, retain_graph=True)[0].numpy() for value in part]
        blocks.append((np.array([float(value.detach()) for value in part]), np.array(rows).reshape(-1, len(x))))
    return tuple(blocks)


def nearest_combination(function: Callable[..., tuple], x: np.ndarray) -> float:
    """As below; a thin piece of a kink can be missed by few samples, so more are taken before a claim is denied."""
    residual = np.inf
    for samples in (60, 300, 1500):
        residual = combination_of(function, x, samples)
        if residual <= TOLERANCE:
            break
    return residual


def combination_of(function: Callable[..., tuple], x: np.ndarray, samples: int) -> float:
    """Length of the shortest combination of gradients sampled around x, relative to 1 + the longest gradient of f."""
    draw = np.random.default_rng(1)
    radius = RADIUS * max(1.0, 1e-3 * float(np.abs(x).max()))
    (_, (limits, _), _) = values(function, x)
    objective, multiplied = [], []
    for number in range(samples):
        direction = draw.standard_normal(len(x))
        away = radius * draw.uniform() / np.linalg.norm(direction) * direction
        (_, slope), (_, rows), (_, normals) = values(function, x + (away if number else 0 * away))
        objective.append(slope[0])
        near = limits >= -10 * radius * (1 + np.linalg.norm(rows, axis=1)) if len(limits) else np.zeros(0, dtype=bool)
        multiplied.extend([*rows[near], *normals, *-normals])
    longest = max(float(np.linalg.norm(row)) for row in objective)
    columns = np.array([*objective, *multiplied])
    finite = np.isfinite(columns).all(axis=1)
    kinds = np.arange(len(columns)) < len(objective)
    columns, kinds = columns[finite], kinds[finite]
    lengths = np.where(kinds, max(longest, 1e-300), np.maximum(np.linalg.norm(columns, axis=1), 1e-300))
    scaled = columns / lengths[:, None]
    weights, _ = nnls(np.vstack([scaled.T, kinds.astype(float)]), np.append(np.zeros(len(x)), 1.0), maxiter=100 * len(columns))
    total = weights[kinds].sum()
    return float(np.linalg.norm(weights @ scaled) * longest / total / (1 + longest)) if total > 0 else np.inf


def steepest_feasibility(function: Callable[..., tuple], x: np.ndarray, scales: Scales | None) -> float:
    """The largest rate at which the sum of violations, in the units of the run, falls on the way to random points nearby."""

    def violation(y: np.ndarray) -> float:
        _, (limits, _), (levels, _) = values(function, y)
        violations = np.concatenate([np.abs(levels), np.maximum(limits, 0)])
        return float(violations.sum() if scales is None else violations @ scales.constraints)

    draw, here, rates = np.random.default_rng(2), violation(x), []
    for _ in range(50):
        direction = draw.standard_normal(len(x))
        away = 1e-4 * direction / np.linalg.norm(direction)
        rates.append((here - violation(x + away)) / 1e-4)
    return max(rates)


def confirm(plan: Plan, result: Result) -> None:
    function, start = plan.build()
    x = result.point.flat
    assert np.isfinite(x).all() and x.shape == (plan.n,)
    assert torch.equal(result.x, torch.from_numpy(x))
    (f, _), (limits, _), (levels, _) = values(function, x)
    violation = max(float(np.maximum(limits, 0).max(initial=0)), float(np.abs(levels).max(initial=0)))
    scale = 1e-9 * (1 + abs(f[0]))
    assert abs(result.f - f[0]) <= scale and result.point.f == result.f
    assert abs(result.violation - violation) <= 1e-12 * (1 + np.abs(np.concatenate([limits, levels])).max(initial=0))
    assert result.point.feasible == (result.violation <= 1e-6)
    assert result.status not in NEVER
    assert result.success == (result.status is Status.STATIONARY)
    assert len(result.history) == result.iterations + 1 and np.isfinite(result.history.f).all()
    assert result.history.f[0] == pytest.approx(float(function(start)[0]))
    if result.best is not None:
        assert result.best.feasible and result.best.f <= result.f + scale
    assert result.most_feasible.violation <= result.violation + 1e-15
    if result.success:
        assert result.point.feasible and violation <= 1e-6
        assert result.certificate.stationary and result.check().stationary
        assert nearest_combination(function, x) <= TOLERANCE
    if result.status is Status.INFEASIBLE:
        assert violation > 1e-6 and result.best is None
        assert steepest_feasibility(function, x, result.scales) <= 1e-2
    if result.status is Status.UNBOUNDED:
        assert result.point.feasible and f[0] < -1e3


def solved_and_confirmed(plan: Plan, *, iterations: int = 300, evaluations: int = 2000) -> Result:
    function, start = plan.build()
    result = minimize(function, start, max_iterations=iterations, max_evaluations=evaluations)
    confirm(plan, result)
    return result


SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@pytest.mark.slow
@settings(SETTINGS, max_examples=40)
@given(plans)
def test_forty_random_problems(plan: Plan) -> None:
    solved_and_confirmed(plan, evaluations=400)


@pytest.mark.exhaustive
@settings(SETTINGS, max_examples=200)
@given(plans)
@example(Plan(1, 0, ("absolute_values",), (), (), True))
def test_two_hundred_random_problems(plan: Plan) -> None:
    solved_and_confirmed(plan)


convex_plans = st.builds(
    Plan,
    n=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    objective=some(CONVEX, 1, 2).map(lambda names: ("largest_quadratic", *names)),
    inequalities=some(CONVEX, 0, 2),
    equalities=st.just(()),
    at_origin=st.booleans(),
)


@pytest.mark.slow
@settings(SETTINGS, max_examples=10)
@given(convex_plans)
def test_convex_problems_are_solved_or_infeasible(plan: Plan) -> None:
    """From two starts: the same verdict, and the same value."""
    other = dataclasses.replace(plan, at_origin=not plan.at_origin)
    first, second = (solved_and_confirmed(each, iterations=1000, evaluations=10_000) for each in (plan, other))
    assert {first.status, second.status} <= {Status.STATIONARY, Status.INFEASIBLE}
    assert first.status is second.status
    if first.success:
        assert first.f == pytest.approx(second.f, rel=1e-5, abs=1e-5)
