"""The model's step, found through its dual, against the primal problem solved by another solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from nonsmooth import Options
from nonsmooth.evaluate import Trial
from nonsmooth.hessian import FullMemory
from nonsmooth.kinks.bundle import Bundle, own_cut
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.native import load
from nonsmooth.qp import QPSolver
from nonsmooth.step.model import Model
from nonsmooth.step.steering import steer


@pytest.fixture(autouse=True, params=["native", "python"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both methods must find the same steps."""
    if request.param == "native" and load() is None:
        pytest.skip("the native library is missing or switched off")
    if request.param == "python":
        monkeypatch.setattr("nonsmooth.step.model.fits", lambda solver, total: False)
    return str(request.param)


class Setting:
    """A random point with cuts, constraints and a matrix."""

    def __init__(
        self,
        seed: int,
        *,
        size: int = 3,
        cuts: int = 3,
        equalities: int = 1,
        inequalities: int = 2,
        extra: int = 0,
        spread: float = 0.5,
    ) -> None:
        self.generator = generator = np.random.default_rng(seed)
        self.shape = (equalities, inequalities)
        self.at = self.trial(np.zeros(size), 1.0)
        bundle, kinks = Bundle(size, 100), ConstraintPieces(size, 100)
        for _ in range(cuts - 1):
            bundle.add(self.trial(spread * generator.standard_normal(size), 1.0 + spread * float(generator.standard_normal())))
        for _ in range(extra):
            kinks.add(
                self.trial(spread * generator.standard_normal(size), 1.0), int(generator.integers(equalities, sum(self.shape)))
            )
        self.cuts = bundle.cuts(self.at)
        self.extra = kinks.at(self.at) if extra else None
        root = generator.standard_normal((size, size))
        self.inverse = root @ root.T + 0.5 * np.eye(size)
        self.metric = np.linalg.inv(self.inverse)
        self.model = Model(self.at, self.cuts, self.extra, FullMemory(size, self.inverse), QPSolver())

    def trial(self, x: np.ndarray, f: float) -> Trial:
        equalities, count, draw = self.shape[0], sum(self.shape), self.generator
        rows = draw.standard_normal((count, len(x)))
        return Trial.stored(x, f, draw.standard_normal(count), equalities, draw.standard_normal(len(x)), rows)

    def violation(self, d: np.ndarray) -> float:
        values = self.at.c + self.at.jacobian @ d
        if self.extra is not None:
            for index, value, row in zip(self.extra.index, self.extra.values, self.extra.rows, strict=True):
                values[index] = max(values[index], value + row @ d)
        split = self.at.equalities
        return float(np.abs(values[:split]).sum() + np.maximum(values[split:], 0).sum())

    def extra_violation(self, d: np.ndarray) -> float:
        """As the dual sees it: every linearization of a constraint counts on its own."""
        values = self.at.c + self.at.jacobian @ d
        split = self.at.equalities
        total = float(np.abs(values[:split]).sum() + np.maximum(values[split:], 0).sum())
        if self.extra is not None:
            total += float(np.maximum(self.extra.values + self.extra.rows @ d, 0).sum())
        return total

    def value(self, d: np.ndarray, weight: float) -> float:
        objective = (self.cuts.slopes @ d - self.cuts.errors).max()
        return float(objective + weight * self.extra_violation(d) + 0.5 * d @ self.metric @ d)

    def primal(self, weight: float) -> np.ndarray:
        """The step as a smooth program in d, the height t and the violations v."""
        size, split, count = len(self.at.x), self.at.equalities, len(self.at.c)
        values, rows = self.at.c, self.at.jacobian
        if self.extra is not None:
            values, rows = np.concatenate([values, self.extra.values]), np.concatenate([rows, self.extra.rows])
        total = len(values)
        assert count <= total

        def height(z: np.ndarray) -> float:
            d = z[:size]
            return float(z[size] + weight * z[size + 1 :].sum() + 0.5 * d @ self.metric @ d)

        def slope(z: np.ndarray) -> np.ndarray:
            return np.concatenate([self.metric @ z[:size], [1.0], np.full(total, weight)])

        above = np.zeros((len(self.cuts.errors), size + 1 + total))
        above[:, :size], above[:, size] = -self.cuts.slopes, 1.0
        linear = np.zeros((total, size + 1 + total))
        linear[:, :size] = -rows
        linear[np.arange(total), size + 1 + np.arange(total)] = 1.0
        below = linear[:split].copy()
        below[:, :size] = rows[:split]
        matrix = np.concatenate([above, linear, below])
        offset = np.concatenate([self.cuts.errors, -values, values[:split]])
        start = np.concatenate([np.zeros(size), [1.0], np.abs(values) + 1.0])
        found = scipy_minimize(
            height, start, jac=slope, method="SLSQP", bounds=[(None, None)] * (size + 1) + [(0, None)] * total,
            constraints=[{"type": "ineq", "fun": lambda z: matrix @ z + offset, "jac": lambda z: matrix}],
            options={"ftol": 1e-15, "maxiter": 1000},
        )  # fmt: skip
        return np.asarray(found.x[:size])


SETTINGS: list[dict[str, Any]] = [
    {"equalities": 0, "inequalities": 0},
    {"equalities": 0, "inequalities": 0, "cuts": 6},
    {"equalities": 2, "inequalities": 0, "cuts": 1},
    {"equalities": 1, "inequalities": 3},
    {"equalities": 1, "inequalities": 3, "extra": 3},
    {"size": 1, "equalities": 0, "inequalities": 2, "cuts": 2},
    {"size": 6, "equalities": 2, "inequalities": 4, "cuts": 5},
    {"size": 4, "equalities": 0, "inequalities": 0, "cuts": 40, "spread": 1e-2},
    {"size": 4, "equalities": 1, "inequalities": 3, "cuts": 40, "spread": 1e-1},
    {"size": 3, "equalities": 0, "inequalities": 3, "extra": 6, "cuts": 30},
]


@pytest.mark.parametrize("weight", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("shape", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_step_is_the_primal_one(seed: int, shape: dict[str, Any], weight: float) -> None:
    setting = Setting(seed, **shape)
    step = setting.model.step(weight)
    expected = setting.primal(weight)
    best = setting.value(expected, weight)
    assert step.trusted
    assert setting.value(step.direction, weight) <= best + 1e-6 * (1 + abs(best))
    np.testing.assert_allclose(step.direction, expected, atol=2e-3 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("shape", SETTINGS, ids=str)
def test_what_is_said_about_a_step(shape: dict[str, Any]) -> None:
    setting = Setting(7, **shape)
    step, at = setting.model.step(2.0), setting.at
    assert step.weights.sum() == pytest.approx(1.0) and (step.weights >= 0).all()
    np.testing.assert_allclose(step.direction, -setting.inverse @ step.gradient, atol=1e-10)
    np.testing.assert_allclose(step.objective_gradient, step.weights @ setting.cuts.slopes, atol=1e-12)
    assert step.objective_change == pytest.approx((setting.cuts.slopes @ step.direction - setting.cuts.errors).max())
    assert step.predicted_violation == pytest.approx(setting.violation(step.direction))
    assert step.decrease == pytest.approx(step.objective_change + 2.0 * (step.predicted_violation - at.total_violation))
    if setting.extra is None:  # further rows of a constraint are penalized each by itself, so the step may go too far
        assert step.decrease <= 1e-12
    assert step.error == pytest.approx(step.weights @ setting.cuts.errors)
    assert step.at_kink == ((step.weights > 1e-10).sum() > 1)
    assert (step.multipliers[at.equalities :] >= 0).all()
    if setting.extra is None:
        assert (np.abs(step.multipliers) <= 2.0).all()
        combined = step.objective_gradient + step.multipliers @ at.jacobian
        np.testing.assert_allclose(step.gradient, combined, atol=1e-10)
    assert setting.model.violation(step.direction) == pytest.approx(setting.violation(step.direction))


def test_without_constraints_and_one_cut_it_is_the_quasi_newton_step() -> None:
    setting = Setting(1, equalities=0, inequalities=0, cuts=1)
    step = setting.model.step(1.0)
    np.testing.assert_allclose(step.direction, -setting.inverse @ setting.at.gradient)
    assert step.weights.tolist() == [1.0] and not step.at_kink


def test_a_large_weight_reaches_the_linearized_constraints() -> None:
    setting = Setting(4, size=4, equalities=2, inequalities=1)
    step = setting.model.step(1e4)
    np.testing.assert_allclose(setting.at.c[:2] + setting.at.jacobian[:2] @ step.direction, 0, atol=1e-6)
    assert setting.model.reference(1e4) == pytest.approx(0.0, abs=1e-6)


def kept_down() -> tuple[Model, Trial]:
    """f pulls strongly away from the constraint x ≤ 0, which is violated by 1."""
    at = Trial.stored(np.array([1.0]), 0.0, np.array([1.0]), 0, np.array([-10.0]), np.array([[1.0]]))
    return Model(at, own_cut(at), None, FullMemory(1), QPSolver()), at


def test_steering_raises_the_weight_until_the_violation_falls() -> None:
    model, at = kept_down()
    assert model.step(1.0).predicted_violation > at.total_violation
    options = Options(steering_max_reductions=100)
    step = steer(model, at, 1.0, options)
    assert step.weight > 9.0
    assert at.total_violation - step.predicted_violation >= 0.1 * (at.total_violation - model.reference(1.0)) - 1e-7
    number = round(np.log(step.weight) / np.log(1 / 0.9))
    assert step.weight == pytest.approx(0.9**-number)
    before = model.step(step.weight * 0.9)
    assert at.total_violation - before.predicted_violation < 0.1 * (at.total_violation - model.reference(1.0))


def test_steering_stops_at_its_limit() -> None:
    model, at = kept_down()
    assert steer(model, at, 1.0, Options(steering_max_reductions=3)).weight == pytest.approx(0.9**-3)
    assert steer(model, at, 1.0, Options(steering_max_reductions=0)).weight == 1.0


@pytest.mark.parametrize("kind", ["sum", "max"])
def test_steering_leaves_the_weight_where_enough_is_predicted(kind: str) -> None:
    model, at = kept_down()
    assert steer(model, at, 50.0, Options(steering_model=kind)).weight == 50.0  # type: ignore[arg-type]


def test_points_well_inside_are_not_steered() -> None:
    at = Trial.stored(np.array([-1.0]), 0.0, np.array([-1e-3]), 0, np.array([-10.0]), np.array([[1.0]]))
    model = Model(at, own_cut(at), None, FullMemory(1), QPSolver())
    assert steer(model, at, 1.0, Options()).weight == 1.0
