"""What the independent check says about points whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch import Tensor

from nonsmooth import Options, Problem, Status, minimize
from nonsmooth.certify.certificate import Check, check, check_violation
from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.options import Tolerances
from nonsmooth.variables import Variables
from problems import ALL, Case
from problems.published import trace
from problems.random_problems import draw

TOLERANCES = Tolerances.of(Options(), single=False)
Point = list[float]


def checked(
    function: Callable[[Tensor], Any], point: Any, tolerances: Tolerances = TOLERANCES, **more: Any
) -> tuple[Check, Evaluator]:
    x = torch.as_tensor(point, dtype=torch.float64)
    evaluator = Evaluator(Problem(function, **more), Variables(x))
    return check(evaluator, evaluator(x.numpy()), tolerances, box=evaluator.box), evaluator


def relu_difference(x: Tensor) -> Tensor:
    """Equal to x; at exactly 0 torch says its slope is 0."""
    return (torch.relu(x) - torch.relu(-x)).sum()


def pointed(x: Tensor) -> Tensor:
    """Max of three linear functions with 0 inside the hull of their slopes."""
    return torch.stack([x[0] + x[1], -2 * x[0] + x[1], -x[1]]).max()


STATIONARY: dict[str, tuple[Callable[[Tensor], Any], Point]] = {
    "smooth": (lambda x: ((x - 1) ** 2).sum(), [1.0, 1.0]),
    "constant": (lambda x: 0 * x.sum() + 3, [1.0, 2.0]),
    "absolute value": (lambda x: x.abs().sum(), [0.0]),
    "absolute values": (lambda x: x.abs().sum(), [0.0, 0.0, 0.0]),
    "beside an absolute value": (lambda x: x.abs().sum(), [1e-8, -1e-9]),
    "maximum": (pointed, [0.0, 0.0]),
    "beside a maximum": (pointed, [1e-9, -1e-9]),
    "norm": (lambda x: torch.sqrt((x**2).sum() + 1e-300), [0.0, 0.0]),
    "curved kink": (lambda x: 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2, [1.0, 1.0]),
    "active constraint": (lambda x: ((x**2).sum(), 1 - x[0], None), [1.0, 0.0]),
    "inactive constraint": (lambda x: ((x**2).sum(), x[0] - 1, None), [0.0, 0.0]),
    "equality": (lambda x: (x.sum(), None, (x**2).sum() - 2), [-1.0, -1.0]),
    "maximizer on a circle": (lambda x: (x.sum(), None, (x**2).sum() - 2), [1.0, 1.0]),
    "corner of constraints": (lambda x: (-x.sum(), torch.stack([x[0] - 1, x[1] - 1, x.sum() - 2]), None), [1.0, 1.0]),
    "constraint with a kink": (lambda x: (-x[1], x[0].abs() + x[1], None), [0.0, 0.0]),
    "kink and constraint": (
        lambda x: (8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None),
        [0.5**0.5, 0.5],
    ),
    "equality with a kink": (lambda x: (x[1], None, x[1] - x[0].abs()), [0.0, 0.0]),
    "duplicated equality": (lambda x: (x[0] ** 2, None, torch.stack([x[1] - 1, 2 * x[1] - 2])), [0.0, 1.0]),
    "more equalities than variables": (
        lambda x: (x[0] ** 2, None, torch.stack([x[1] - 1, 2 * x[1] - 2, x[0] + x[1] - 1])),
        [0.0, 1.0],
    ),
    "kinks along equalities": (lambda x: (x.abs().sum(), None, torch.stack([x[0] + x[1], x[2] - x[3]])), [0.0, 0.0, 0.0, 0.0]),
    "concave kink, in the sense of Clarke": (lambda x: -x.abs().sum(), [0.0]),
    "saddle": (lambda x: x[0] ** 2 - x[1] ** 2, [0.0, 0.0]),
    "strongly curved": (lambda x: 1e6 * ((x - 1) ** 2).sum(), [1.0, 1.0]),
    "strongly curved constraint": (lambda x: (x.sum(), None, 1e4 * ((x**2).sum() - 2)), [-1.0, -1.0]),
}


@pytest.mark.parametrize(("function", "point"), STATIONARY.values(), ids=STATIONARY)
def test_stationary_points(function: Callable[[Tensor], Any], point: Point) -> None:
    certificate = checked(function, point)[0].certificate
    assert certificate.stationary, certificate
    assert certificate.residual <= 1e-6 and certificate.feasible and not certificate.descent
    assert "stationary" in str(certificate)


NOT_STATIONARY: dict[str, tuple[Callable[[Tensor], Any], Point]] = {
    "a slope that torch denies, beside a long one": (lambda x: (relu_difference(x[:1]) + 2e3 * x[1], -x[1], None), [0.0, 0.0]),
    "the same in a constraint": (
        lambda x: (1e-3 * (x**2).sum() - x[1], 2e3 * x[1] + relu_difference(x[:1]), None),
        [0.0, 0.0],
    ),
    "a slope beyond all measure that torch denies": (lambda x: 1e160 * relu_difference(x) + (x**2).sum(), [0.0, 0.0]),
    "at a corner of where it is defined": (lambda x: (x**2 - torch.relu(x)).sum() / (x >= 0).all(), [0.0] * 6),
    "smooth": (lambda x: ((x - 1) ** 2).sum(), [1.0, 1.01]),
    "on a kink that does not hold": (lambda x: x[0].abs() + x[1], [0.0, 0.0]),
    "far from the kink": (lambda x: x.abs().sum(), [1e-3, 0.0]),
    "near a kink": (lambda x: x.abs().sum(), [5e-6, 0.0]),
    "along a curved kink": (lambda x: 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2, [0.5, 0.25]),
    "just beside a curved kink": (lambda x: 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2, [0.5, 0.25 + 1e-8]),
    "zero gradient at a kink, rising": (relu_difference, [0.0]),
    "zero gradients at kinks": (relu_difference, [0.0, 0.0, 0.0]),
    "constraint that does not hold it": (lambda x: (x.sum(), x[0] - 1, None), [1.0, 0.0]),
    "along a constraint with a kink": (lambda x: (x[0], x[0].abs() + x[1], None), [0.0, 0.0]),
    "multiplier of the wrong sign": (lambda x: ((x**2).sum(), x[0] - 1, None), [1.0, 0.0]),
}


@pytest.mark.parametrize(("function", "point"), NOT_STATIONARY.values(), ids=NOT_STATIONARY)
def test_points_that_are_not_stationary(function: Callable[[Tensor], Any], point: Point) -> None:
    found, _ = checked(function, point)
    assert not found.certificate.stationary, found.certificate


UNDECIDED = (
    "near a kink",
    "a slope that torch denies, beside a long one",
    "a slope beyond all measure that torch denies",
    "at a corner of where it is defined",
)
WITNESSED = [name for name in NOT_STATIONARY if name not in UNDECIDED]


@pytest.mark.parametrize("name", WITNESSED)
def test_the_witness_is_really_better(name: str) -> None:
    function, point = NOT_STATIONARY[name]
    found, evaluator = checked(function, point)
    assert found.better is not None and found.certificate.descent
    assert np.linalg.norm(found.better.x - np.array(point)) <= found.certificate.radius * (1 + 1e-9)
    here, there = evaluator(np.array(point)), evaluator(found.better.x)
    weight = 2.0 * float(np.abs(found.multipliers).max(initial=0.0)) + 1e-8
    assert there.penalty(weight) < here.penalty(weight)
    if len(here.c) == 0:
        assert there.f < here.f


def test_descent_is_found_where_there_is_some() -> None:
    """At least the smooth and the simply kinked points are decided, not left open."""
    for name in (
        "smooth",
        "on a kink that does not hold",
        "far from the kink",
        "along a curved kink",
        "zero gradient at a kink, rising",
    ):
        assert checked(*NOT_STATIONARY[name])[0].certificate.descent, name


def test_an_infeasible_point_is_not_stationary() -> None:
    certificate = checked(lambda x: ((x**2).sum(), 1 - x[0], None), [1.0 - 1e-4, 0.0])[0].certificate
    assert not certificate.stationary and not certificate.feasible
    assert certificate.inequality_violation == pytest.approx(1e-4)
    certificate = checked(lambda x: ((x**2).sum(), None, x[0] - 1), [1.0 + 1e-4, 0.0])[0].certificate
    assert not certificate.stationary and certificate.equality_violation == pytest.approx(1e-4)


def test_a_violation_within_the_tolerance_is_allowed() -> None:
    assert checked(lambda x: ((x**2).sum(), 1 - x[0], None), [1.0 - 5e-7, 0.0])[0].certificate.stationary


def test_multipliers_are_those_of_the_textbook() -> None:
    found, _ = checked(lambda x: ((x**2).sum(), torch.stack([1 - x[0], x[1] - 5]), x[1] - 2), [1.0, 2.0])
    assert found.certificate.stationary
    np.testing.assert_allclose(found.multipliers, [-4.0, 2.0, 0.0], atol=1e-9)


def test_degenerate_multipliers_are_not_believed() -> None:
    """HS13: no multipliers exist at the solution, but near it they do, and are huge."""

    def hs13(x: Tensor) -> Any:
        return (x[0] - 2) ** 2 + x[1] ** 2, torch.stack([x[1] - (1 - x[0]) ** 3, -x[1]]), None

    assert not checked(hs13, [1.0, 0.0])[0].certificate.stationary
    certificate = checked(hs13, [1.0 - 1e-5, 0.0])[0].certificate
    assert not certificate.stationary
    assert certificate.degenerate == (certificate.residual <= 1e-6)


def test_a_slack_constraint_does_not_prove_much() -> None:
    """The constraint is 1e-3 away: a multiplier for it would cost that much."""
    assert not checked(lambda x: (-x[0], x[0] - 1, None), [1.0 - 1e-3])[0].certificate.stationary


def test_curvature_is_not_mistaken_for_a_kink() -> None:
    """Within the radius the gradient changes its sign, but no function of this steepness is flat."""
    steep = 1e9
    found, _ = checked(lambda x: 0.5 * steep * (x[0] - 3e-7) ** 2, [0.0])
    assert not found.certificate.stationary


def test_points_where_the_function_is_not_defined_are_left_out() -> None:
    """f is NaN on one side of the point; the other decides."""
    found, _ = checked(lambda x: torch.sqrt(x[0]) + x[1] ** 2, [1e-4, 0.0])
    assert not found.certificate.stationary


def test_units_of_f_do_not_matter_much() -> None:
    for scale in (1e-3, 1.0, 1e3, 1e6):
        assert checked(lambda x, s=scale: s * pointed(x), [0.0, 0.0])[0].certificate.stationary
        assert not checked(lambda x, s=scale: s * x[0].abs() + s * x[1], [0.0, 0.0])[0].certificate.stationary


def test_bounds_are_constraints() -> None:
    assert checked(lambda x: x.sum(), [1.0, 2.0], bounds=(torch.tensor([1.0, 2.0]), None))[0].certificate.stationary
    assert not checked(lambda x: x.sum(), [1.0, 2.5], bounds=(torch.tensor([1.0, 2.0]), None))[0].certificate.stationary


SOLVED = {
    name: case for name, case in ALL.items() if case.solution is not None and case.n <= 60 and name not in ("hs78_penalty",)
}


@pytest.mark.parametrize("case", SOLVED.values(), ids=SOLVED)
def test_away_from_known_solutions_nothing_is_proven(case: Case) -> None:
    """A step of 1e-2 away from the solution: a certificate there would have to be true, so none of a convex case is."""
    generator = torch.Generator().manual_seed(1)
    x = case.answer() + 1e-2 * torch.randn(case.n, dtype=torch.float64, generator=generator)
    found, _ = checked(case.function, x)
    if case.convex and case.optimum is not None and float(case.objective(x)) > case.optimum + 1e-4:
        assert not found.certificate.stationary
    assert found.certificate.samples >= 1


def test_infeasibility_is_proven_where_the_violation_is_stationary() -> None:
    def evaluator_of(function: Callable[[Tensor], Any]) -> Evaluator:
        return Evaluator(Problem(function), Variables(torch.zeros(2).double()))

    apart = evaluator_of(lambda x: (x.sum(), torch.stack([1 - x[0], x[0]]), None))
    assert check_violation(apart, apart(np.array([0.5, 3.0])), TOLERANCES).certificate.stationary
    assert not check_violation(apart, apart(np.array([2.0, 0.0])), TOLERANCES).certificate.stationary
    pointed = evaluator_of(lambda x: (x.sum(), x.abs().sum() + 1, None))
    assert check_violation(pointed, pointed(np.zeros(2)), TOLERANCES).certificate.stationary
    assert not check_violation(pointed, pointed(np.array([0.1, 0.0])), TOLERANCES).certificate.stationary


def test_the_check_gives_the_same_answer_twice() -> None:
    for function, point in (*STATIONARY.values(), *NOT_STATIONARY.values()):
        assert checked(function, point)[0].certificate == checked(function, point)[0].certificate


def test_more_gradients_are_not_asked_for_where_they_do_not_help() -> None:
    """On a smooth problem, nearly at the solution, no number of gradients proves more than one does."""
    problem = trace(50, 10)
    start = torch.randn(problem.start.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    point = problem.unflatten(start / torch.linalg.vector_norm(start))
    result = minimize(problem.function, point, stationarity_tolerance=1e-8, compile="never")
    assert problem.optimum is not None
    assert result.f == pytest.approx(problem.optimum, abs=1e-3) and result.violation <= 1e-6
    assert result.evaluations < 1000  # 1,598 before


def test_the_points_that_carry_a_claim_are_enough_to_make_it_again() -> None:
    """At 0 the slopes of five absolute values have to be found; knowing where, each is evaluated once."""
    found, evaluator = checked(lambda x: (x * torch.arange(1.0, 6.0)).abs().sum(), [1e-9] * 5)
    assert found.certificate.stationary and found.certificate.radius > 0
    assert 1 < len(found.support) <= found.certificate.samples
    searched = evaluator.costs.values
    again = check(evaluator, evaluator(np.full(5, 1e-9)), TOLERANCES, hints=found.support)
    assert again.certificate.stationary
    assert again.certificate.residual == pytest.approx(found.certificate.residual, abs=1e-9)
    assert evaluator.costs.values - searched <= 1 + 3 + len(found.support)


def test_gradients_beside_a_point_are_used() -> None:
    """Of three points beside it only the last is on the same side as x; with the other two it is proven."""
    found, evaluator = checked(lambda x: (x[0] - 1) ** 2 + (2 * x[1]).abs(), [1.0, 1e-9])
    assert found.certificate.stationary and found.certificate.samples == 4
    assert evaluator.costs.values == 4 + 7  # longer steps are tried where f is 0, which it is only nearly


def test_hints_prove_nothing_by_themselves() -> None:
    """Beside a point that is not stationary there is no combination, wherever one looks first."""
    evaluator = Evaluator(Problem(lambda x: x.abs().sum()), Variables(torch.ones(2, dtype=torch.float64)))
    hints = (np.array([1.0 + 1e-7, 1.0]), np.array([1.0, 1.0 - 1e-7]), np.array([-1.0, -1.0]))
    found = check(evaluator, evaluator(np.ones(2)), TOLERANCES, hints=hints)
    assert not found.certificate.stationary and found.certificate.descent


def test_a_point_that_only_slack_keeps_from_a_proof_is_not_called_stationary() -> None:
    """f = x under x² <= 0: the multiplier grows without bound, and what is left of the slack times it does not vanish."""
    import torch

    from nonsmooth import minimize

    result = minimize(lambda x: (x[0], x**2, None), torch.tensor([1.0], dtype=torch.float64))
    certificate = result.certificate
    assert certificate is not None and not certificate.stationary and not result.success
    assert certificate.complementarity > 1e-5 and "complementarity" in certificate.reason


@pytest.mark.parametrize("scale", [1.0, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", ["equalities", "inequalities", "both"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_that_are_the_same_make_no_further_direction(dtype: torch.dtype, kind: str, scale: float) -> None:
    """Rounding turns the second by 1e-7 or 1e-16. A multiplier that is large enough would make anything of the difference."""
    tolerances = Tolerances.of(Options(), single=dtype == torch.float32)
    for seed in range(25):
        torch.manual_seed(seed)
        size = 2 + seed % 3
        row, gradient = torch.randn(size, dtype=dtype), torch.randn(size, dtype=dtype)
        other, row = scale * (row * 3.3333333), scale * row
        gradient -= (gradient @ row) / (row @ row) * row  # f falls along it, with the constraints at 0
        gradient *= 0.1 / gradient.norm()

        def function(x: Tensor, row: Tensor = row, other: Tensor = other, gradient: Tensor = gradient) -> Any:
            f, one, two = (gradient * x).sum(), (row * x).sum(), (other * x).sum()
            if kind == "equalities":
                return f, None, torch.stack([one, two])
            return (
                (f, torch.stack([one, -two, -one, two]), None) if kind == "inequalities" else (f, torch.stack([one, -two]), one)
            )

        evaluator = Evaluator(Problem(function), Variables(torch.zeros(size, dtype=dtype)))
        found = check(evaluator, evaluator(np.zeros(size)), tolerances)
        assert not found.certificate.stationary, (seed, str(found.certificate))


@pytest.mark.parametrize("kinked", [False, True])
def test_inequalities_that_equalities_imply_do_not_hide_a_solution(kinked: bool) -> None:
    """At an answer that is not exact to the last bit, what rounding leaves of their gradients must not be put to use."""
    for seed in range(4):
        generator = np.random.default_rng(seed)
        rows = torch.tensor(generator.standard_normal((4, 10)))
        implied = torch.tensor(generator.standard_normal((3, 4))) @ rows
        solution, weights = torch.tensor(generator.standard_normal(10)), torch.tensor(generator.random(10))
        aim = solution + torch.tensor(generator.standard_normal(4)) @ rows

        def function(
            x: Tensor, rows: Tensor = rows, implied: Tensor = implied, solution: Tensor = solution,
            aim: Tensor = aim, weights: Tensor = weights,
        ) -> Any:  # fmt: skip
            away = x - aim
            f = 0.5 * (away**2).sum() + (weights * away.abs()).sum() * kinked
            return f, implied @ (x - solution), rows @ (x - solution)

        result = minimize(function, torch.zeros(10, dtype=torch.float64), max_iterations=400)
        assert result.certificate.stationary and result.evaluations < 200, (seed, str(result.certificate))


def test_an_equality_has_one_sign_on_both_sides_of_its_kink() -> None:
    """Used with opposite signs, the gradients on the two sides make up a direction that the equality does not forbid."""
    wrong = 0
    for seed in range(120):
        generator = np.random.default_rng(seed)
        size, count = int(generator.integers(2, 5)), int(generator.integers(1, 3))
        inner, outer = generator.integers(-2, 3, (2, count, size)).astype(float)
        slope = generator.integers(-2, 3, size).astype(float)

        def evaluate(x: Any, inner: Any = inner, outer: Any = outer, slope: Any = slope) -> Trial:
            bent = inner @ x
            rows = outer - np.sign(bent)[:, None] * inner
            return Trial.stored(x, float(slope @ x), outer @ x - np.abs(bent), len(rows), slope.copy(), rows)

        found = check(evaluate, evaluate(1e-9 * generator.standard_normal(size)), TOLERANCES)
        sides = [np.array([outer[i] - inner[i], outer[i] + inner[i]]) for i in range(count)]
        possible = any(
            nnls(np.vstack([sign * side for sign, side in zip(signs, sides, strict=True)]).T, -slope)[1] < 1e-9
            for signs in product((1, -1), repeat=count)
        )
        wrong += found.certificate.stationary and not possible
    assert wrong == 0


def test_a_gradient_that_is_not_a_number_is_not_taken_away() -> None:
    def evaluate(x: Any) -> Trial:
        return Trial.stored(x, 0.0, np.zeros(1), 1, np.array([np.nan, 1.0]), np.array([[1.0, 0.0]]))

    assert not check(evaluate, evaluate(np.zeros(2)), TOLERANCES).certificate.stationary


def test_more_constraints_than_fit_anywhere() -> None:
    """Ten thousand planes, all of them active, of which two carry the point."""
    planes = torch.nn.functional.normalize(
        torch.randn(10_050, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    found, _ = checked(lambda x: (x[1] + 0.1 * x[0], -torch.relu(planes) @ x, None), [0.0, 0.0])
    assert found.certificate.stationary
    assert len(found.multipliers) == 10_050 and (found.multipliers >= 0).all()


@pytest.mark.parametrize("own", range(0, 12, 3))
def test_a_piece_of_a_constraint_that_no_neighbor_shows_is_used(own: int) -> None:
    """Where the gradient at x is distrusted, because it is that of one of many pieces, another point may show the same one."""
    weights = torch.linspace(0.5, 2.0, 12, dtype=torch.float64)
    point = [1.0 - 1e-13 * (i != own) for i in range(12)]
    found = checked(lambda x: (-(weights * x).sum(), x.max() - 1.0, None), point)[0]
    assert found.certificate.stationary, found.certificate
    np.testing.assert_allclose(found.multipliers, [float(weights.sum())], rtol=1e-6)


@pytest.mark.parametrize("size", [4, 9])
def test_gradients_of_an_equality_with_many_pieces_get_one_sign(size: int) -> None:
    """When the first are gathered, it is not known which sign its multiplier has."""
    proven = 0
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        slopes = 1.8 * torch.rand(size, dtype=torch.float64, generator=generator) - 0.9
        slopes[0] = -1.0
        point = 1e-15 * torch.randn(size, dtype=torch.float64, generator=generator)
        point[0] = 0.3 - point[1:].abs().sum()

        def function(x: Tensor, slopes: Tensor = slopes) -> tuple[Tensor, None, Tensor]:
            return slopes @ x, None, x.abs().sum() - 0.3

        found = checked(function, point.tolist())[0]
        proven += found.certificate.stationary  # that vertex is the solution
        if found.certificate.stationary:
            np.testing.assert_allclose(found.multipliers, [1.0], rtol=1e-6)
        slopes[0], slopes[1] = -0.4, 0.9  # now another vertex is
        assert not checked(function, point.tolist())[0].certificate.stationary
    assert proven >= 19  # of 80 such, 45 were before


@pytest.mark.parametrize(("seed", "decades"), [(416, 4.0), (416, 2.0), (409, 4.0)])
def test_large_multipliers_of_gradients_that_turn_prove_nothing(seed: int, decades: float) -> None:
    """A norm that vanishes has gradients of all directions; with large multipliers their differences cancel any slope."""
    problem = draw("folded equalities", size=5, seed=seed).rescaled(decades)
    result = minimize(problem.function, problem.start, compile="never", max_evaluations=3000)
    left = float(problem.in_natural_units(result.x)[0]) - problem.optimum
    assert result.status is not Status.STATIONARY or left <= 1e-4 * (1.0 + abs(problem.optimum))
