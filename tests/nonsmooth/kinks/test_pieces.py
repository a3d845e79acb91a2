"""Constraints with kinks: maxima, norms and sums of absolute values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import State, Status, minimize
from nonsmooth.evaluate import Trial
from nonsmooth.hessian import FullMemory
from nonsmooth.kinks.bundle import own_cut
from nonsmooth.kinks.jumps import gradient_jumped, sign_changes, store_gradients
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.qp import QPSolver
from nonsmooth.step.model import Model
from nonsmooth.thresholds import THRESHOLDS
from problems import ALL


def point(x: list[float], c: list[float], jacobian: list[list[float]], *, equalities: int = 0) -> Trial:
    here = np.array(x)
    return Trial.stored(here, 0.0, np.array(c), equalities, np.zeros(len(here)), np.array(jacobian))


def sphere(x: list[float]) -> Trial:
    return point(x, [x[0] ** 2 + x[1] ** 2 - 1], [[2 * x[0], 2 * x[1]]])


def corner(x: list[float]) -> Trial:
    """max(x₁ + x₂, x₁ − x₂) = x₁ + |x₂|"""
    return point(x, [x[0] + abs(x[1])], [[1.0, 1.0 if x[1] > 0 else -1.0]])


def test_values_that_change_sides() -> None:
    found = sign_changes(np.array([1.0, 1.0, -1.0, 1e-9, 0.0]), np.array([2.0, -2.0, 1.0, -1.0, 1.0]))
    assert found.tolist() == [False, True, True, False, False]


def test_a_smooth_constraint_that_turns_is_no_kink() -> None:
    cuts = ConstraintPieces(2, 10)
    assert store_gradients(cuts, sphere([1.0, 0.0]), sphere([1.0, 0.8]), [0], least_change=THRESHOLDS.jump)
    assert len(cuts) == 1 and not len(cuts.kinked_constraints)
    assert not cuts.carry(np.ones(1))
    assert not gradient_jumped(cuts, np.ones(1), sphere([1.0, 0.0]), sphere([1.0, 0.8]))


@pytest.mark.parametrize("there", [[0.0, -1.0], [0.3, -0.2], [0.0, -0.25]])
def test_a_corner_is_a_kink(there: list[float]) -> None:
    cuts, here = ConstraintPieces(2, 10), corner([0.0, 0.05])
    assert store_gradients(cuts, here, corner([2.0 * part for part in there]), [0], least_change=THRESHOLDS.jump)
    assert cuts.kinked_constraints.tolist() == [0]
    assert cuts.carry(np.ones(1)) and not cuts.carry(np.zeros(1))
    assert gradient_jumped(cuts, np.ones(1), here, corner(there))
    assert not gradient_jumped(cuts, np.zeros(1), here, corner(there))  # it does not matter
    assert not gradient_jumped(cuts, np.ones(1), here, corner([-1.0, 2.0]))  # the same piece


def test_what_is_known_as_a_kink_stays_one() -> None:
    cuts = ConstraintPieces(2, 2)
    assert store_gradients(cuts, corner([0.0, 0.1]), corner([0.0, -1.0]), [0], least_change=THRESHOLDS.jump)
    turned = point([0.5, 0.5], [0.9], [[1.0, 0.85]])
    assert store_gradients(cuts, corner([0.0, 0.1]), turned, [0], least_change=THRESHOLDS.jump)  # by less than a jump
    assert len(cuts) == 2 and cuts.kinked_constraints.tolist() == [0]
    assert store_gradients(cuts, corner([0.0, 0.1]), turned, [0])  # the oldest goes
    assert len(cuts) == 2 and cuts.kinked_constraints.tolist() == [0]
    cuts.clear()
    assert not len(cuts.kinked_constraints)


def test_an_equality_next_to_0_has_no_side() -> None:
    """With rounding on the other side, gradients beyond the kink are those that are missing."""
    cuts = ConstraintPieces(2, 10)
    here = point([0.0, 1e-17], [-1e-17], [[1.0, 1.0]], equalities=1)
    assert store_gradients(cuts, here, point([0.0, -0.1], [0.1], [[1.0, -1.0]], equalities=1), [0])
    far = point([0.0, 0.1], [-0.1], [[1.0, 1.0]], equalities=1)
    assert not store_gradients(cuts, far, point([0.0, -0.1], [0.1], [[1.0, -1.0]], equalities=1), [0])


def test_an_equality_that_is_never_negative_may_be_a_norm() -> None:
    """Its gradients jump where it vanishes, but to more others than can be kept."""
    cuts = ConstraintPieces(2, 10)
    here = point([1e-3, 0.0], [1e-3], [[1.0, 0.0]], equalities=1)
    assert store_gradients(cuts, here, point([0.0, 0.5], [0.5], [[0.0, 1.0]], equalities=1), [0])
    assert len(cuts) == 1 and not len(cuts.kinked_constraints) and cuts.never_negative.tolist() == [0]
    cuts.notice(point([0.0, 0.0], [-1e-17], [[1.0, 1.0]], equalities=1))
    assert store_gradients(cuts, here, point([0.0, 0.5], [0.5], [[0.0, 1.0]], equalities=1), [0])
    assert cuts.kinked_constraints.tolist() == [0] and not len(cuts.never_negative)


@pytest.mark.parametrize("number", range(4))
def test_a_norm_that_must_vanish(number: int) -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    start = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator))[0] * 1.1
    start[0, 0] += 1e-12 * number

    def function(x: Tensor) -> tuple[Tensor, None, Tensor]:
        return (x * target).sum(), None, torch.linalg.norm(x.T @ x - torch.eye(4, dtype=torch.float64))

    result = minimize(function, start, max_iterations=60, compile="never")
    assert result.violation <= 1e-6
    values = torch.linalg.svdvals(target)  # rotations and reflections have a minimum each
    assert min(abs(result.f + float(values.sum()) - part) for part in (0.0, 2 * float(values[-1]))) <= 1e-3


def quadratics(size: int, count: int, seed: int) -> tuple[Any, Any, Tensor]:
    """A linear objective, convex quadratics, and a start: which pieces of their maximum meet must be found out."""
    generator = torch.Generator().manual_seed(seed)
    roots = torch.randn(count, size, size, dtype=torch.float64, generator=generator) / size**0.5
    slopes = torch.randn(count, size, dtype=torch.float64, generator=generator)
    along = 3 * torch.randn(size, dtype=torch.float64, generator=generator)
    start = 0.1 * torch.randn(size, dtype=torch.float64, generator=generator)
    return lambda x: along @ x, lambda x: 0.5 * (roots.mT @ x).square().sum(-1) + slopes @ x - 1.0, start


@pytest.mark.parametrize("size, count, seed", [(4, 3, 0), (8, 5, 1), (10, 8, 2), (15, 6, 3), (20, 5, 4)])
def test_the_maximum_of_constraints_costs_little_more_than_all_of_them(size: int, count: int, seed: int) -> None:
    f, constraints, start = quadratics(size, count, seed)
    apart = minimize(lambda x: (f(x), constraints(x), None), start, compile="never")
    together = minimize(lambda x: (f(x), constraints(x).max(), None), start, compile="never")
    assert apart.status is together.status is Status.STATIONARY
    assert together.f == pytest.approx(apart.f, abs=1e-6)
    assert together.evaluations <= max(8 * apart.evaluations, 300)


@pytest.mark.parametrize("name", ["hs22", "hs34", "hs43", "hs66", "hs76", "hs86", "hs100", "hs113", "pentagon"])
def test_known_problems_with_one_constraint_for_all(name: str) -> None:
    case = ALL[name]

    def merged(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        f, inequalities, equalities = case.function(x)
        assert inequalities is not None
        return f, inequalities.max(), equalities

    result = minimize(merged, case.initial(), compile="never", max_evaluations=600)
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(case.optimum, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("norm", [1, torch.inf])
def test_on_the_surface_of_a_body_with_edges(norm: float) -> None:
    """The equality is the inequality that is active in the solution, but both sides of it are closed."""
    proven = 0
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        matrix = torch.randn(8, 8, dtype=torch.float64, generator=generator)
        target = 3 * torch.randn(8, dtype=torch.float64, generator=generator)
        start = 0.3 * torch.randn(8, dtype=torch.float64, generator=generator)

        def body(x: Tensor) -> Tensor:
            return torch.linalg.vector_norm(x, norm) - 0.3

        def f(x: Tensor, matrix: Tensor = matrix, target: Tensor = target) -> Tensor:
            return (matrix @ x - target).square().sum()

        solid = minimize(lambda x, f=f: (f(x), body(x), None), start, compile="never")
        surface = minimize(lambda x, f=f: (f(x), None, body(x)), start, compile="never", max_evaluations=1000)
        assert solid.multipliers.inequalities.item() > 0
        assert surface.f == pytest.approx(solid.f, rel=1e-5)
        assert max(solid.violation, surface.violation) <= 1e-6
        proven += (solid.status is Status.STATIONARY) + (surface.status is Status.STATIONARY)
    assert proven >= 15


def test_rows_of_one_constraint_together_need_a_larger_weight() -> None:
    """Each of them is bounded by the weight for itself; what they do together, the penalty has to pay for."""
    f, constraints, start = quadratics(10, 8, 5)
    weights: list[float] = []
    result = minimize(
        lambda x: (f(x), constraints(x).max(), None), start, compile="never",
        callback=lambda state: weights.append(state.weight), scaling="none",
    )  # fmt: skip
    assert result.status is Status.STATIONARY
    assert weights[-1] >= result.multipliers.inequalities.item() > 1.0


def test_nothing_is_learnt_where_a_gradient_jumps() -> None:
    """What the matrix would learn there is the jump, divided by a step that may be as short as can be."""
    f, constraints, start = quadratics(10, 8, 2)
    result = minimize(lambda x: (f(x), constraints(x).max(), None), start, compile="never", structure="off")
    assert result.state.updates.updated < result.iterations


def test_a_resumed_run_takes_the_same_steps_among_kinks(tmp_path: Path) -> None:
    f, constraints, start = quadratics(8, 5, 1)
    path = tmp_path / "run.state"

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        return f(x), constraints(x).max(), None

    def save(state: State) -> None:
        if state.iteration == 14:
            assert len(state.pieces.kinked_constraints)
            state.save(path)

    whole = minimize(function, start, compile="never", structure="off", callback=save)
    resumed = minimize(function, start, compile="never", structure="off", state=State.load(path))
    np.testing.assert_array_equal(resumed.history.f, whole.history.f)
    assert resumed.evaluations == whole.evaluations


def test_an_objective_that_falls_faster_than_any_penalty_grows() -> None:
    """−x₁x₂x₃ beyond the constraints: from a far point, which the penalty prefers, nothing leads back."""
    case = ALL["hs37"]
    result = minimize(lambda x: (case.function(x)[0], case.function(x)[1].max(), None), case.initial(), compile="never")
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(-3456.0, rel=1e-6)


def test_the_model_knows_all_pieces() -> None:
    """At a corner the step of the model goes along both pieces, not through one of them."""
    here = point([0.0, 1e-9], [1e-9], [[1.0, 1.0]])
    at = Trial.stored(here.x, 0.0, here.c, 0, np.array([-1.0, -0.5]), here.jacobian)
    cuts = ConstraintPieces(2, 10)
    store_gradients(cuts, at, corner([0.0, -0.5]), [0])
    step = Model(at, own_cut(at), cuts.at(at), FullMemory(2), QPSolver()).step(10.0)
    np.testing.assert_allclose(step.direction, 0.0, atol=1e-3)  # what is known from afar is trusted a little less
    np.testing.assert_allclose(step.row_multipliers, [0.75, 0.25], atol=1e-3)
    assert step.multipliers.tolist() == pytest.approx([1.0], abs=1e-3)


def test_units_of_constraints_do_not_matter() -> None:
    """The first step, whose length is not known yet, may violate them by many times their size."""
    target = torch.arange(5, dtype=torch.float64)
    start = torch.full((5,), 0.05, dtype=torch.float64)
    for scale in (1.0, 1e6, 1e8):

        def function(x: Tensor, scale: float = scale) -> tuple[Tensor, Tensor, None]:
            return scale * (x - target).square().sum(), scale * (x.abs().sum() - 1), None

        result = minimize(function, start, compile="never", max_evaluations=1500)
        assert result.f / scale == pytest.approx(23.0, rel=1e-6)


def test_coming_back_changes_nothing_where_it_fails() -> None:
    """The best feasible point has no gradient: the run goes on from where it is."""

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        t = x[0]
        u = (0.95 - t) / 0.95
        root = 2 * torch.sqrt(torch.clamp(t - 1, min=0))
        f = root - torch.where(u > 0, 1e10 * (3 * u**2 - 2 * u**3), 0 * u) + x[1:].square().sum()
        return f, (2e7 * torch.relu(0.9 - t) ** 2 - 1).reshape(1), None

    def look(state: State) -> None:
        assert np.isfinite(state.current.gradient).all()
        assert np.isfinite(state.bundle.arrays()["slopes"]).all()

    start = torch.tensor([2.0, 0.0], dtype=torch.float64)
    result = minimize(function, start, compile="never", max_iterations=6, callback=look)
    assert result.programs.failed == 0


def test_the_matrix_learns_where_objective_and_constraints_have_kinks() -> None:
    for seed in (0, 3):
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randn(*shape, dtype=torch.float64, generator=generator)

        first, target, maps, start = draw(20, 20) / 20**0.5, draw(20), draw(4, 20, 20), draw(20)

        def function(x: Tensor, a: Tensor = first, b: Tensor = target, maps: Tensor = maps) -> tuple[Tensor, Tensor, None]:
            return (a @ (x - 2 * b)).abs().sum() + 0.1 * x @ x, (maps @ x).amax(1) - 1, None

        result = minimize(function, start, compile="never", scaling="none")
        assert result.status is Status.STATIONARY
        assert result.evaluations <= 200  # 285 and 317 where it learnt next to nothing
