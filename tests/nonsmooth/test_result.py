"""What a result says, in the user's own forms and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Certificate, Result, Status, minimize


def projection(x: Tensor) -> tuple[Tensor, dict[str, Tensor], list[Tensor]]:
    """The point of a polyhedron nearest to (3, 3, 3): x0 ≤ 1, x1 + x2 = 2, all in different forms."""
    return ((x - 3) ** 2).sum(), {"first": (x[0] - 1).reshape(1, 1), "far": x[:2] - 50}, [x[1] + x[2] - 2]


START = torch.tensor([5.0, -4.0, 0.5], dtype=torch.float64)


@pytest.fixture(scope="module")
def result() -> Result:
    return minimize(projection, START)


def test_the_answer(result: Result) -> None:
    assert result.success and result.status is Status.STATIONARY
    torch.testing.assert_close(result.x, torch.ones(3).double(), atol=1e-6, rtol=0)
    assert result.f == float(projection(result.x)[0]) == result.point.f
    np.testing.assert_array_equal(result.point.flat, result.x.numpy())
    assert result.message == Status.STATIONARY.value
    assert result.violation == result.point.violation <= 1e-6
    assert result.exception is None


def test_constraints_are_handed_back_in_their_form(result: Result) -> None:
    _, inequalities, equalities = projection(result.x)
    assert sorted(result.point.inequalities) == ["far", "first"]
    for name, value in inequalities.items():
        assert result.point.inequalities[name].shape == value.shape
        torch.testing.assert_close(result.point.inequalities[name], value, atol=1e-12, rtol=0)
    torch.testing.assert_close(result.point.equalities[0].reshape(()), equalities[0], atol=1e-12, rtol=0)


def test_multipliers_are_handed_back_in_the_form_of_the_constraints(result: Result) -> None:
    multipliers = result.multipliers
    assert multipliers.inequalities["first"].shape == (1, 1)
    assert float(multipliers.inequalities["first"]) == pytest.approx(4.0, abs=1e-4)
    assert multipliers.inequalities["far"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert isinstance(multipliers.equalities, list)
    assert float(multipliers.equalities[0]) == pytest.approx(4.0, abs=1e-4)
    assert multipliers.lower is None and multipliers.upper is None


def lagrangian_gradient(function: Any, result: Result) -> Tensor:
    """∇f + Σ multiplier·∇constraint, for a function whose constraints are tensors."""
    x = result.x.clone().requires_grad_()
    f, inequalities, equalities = function(x)
    for values, multipliers in ((inequalities, result.multipliers.inequalities), (equalities, result.multipliers.equalities)):
        if values is not None:
            f = f + (values * multipliers).sum()
    return torch.autograd.grad(f, x)[0]


def test_multipliers_satisfy_their_equation() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (x**4).sum() + x[0] * x[1], torch.stack([1 - x[0], x[1] ** 2 - 4]), (x**2).sum().reshape(1) - 3

    found = minimize(function, START / 4)
    assert found.success
    assert (found.multipliers.inequalities >= 0).all()
    assert lagrangian_gradient(function, found).abs().max() < 1e-5 * (1 + found.f)


def test_multipliers_are_in_the_units_of_the_user() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return 1e3 * ((x - 3) ** 2).sum(), 50 * (x[:1] - 1), 0.1 * (x[1] + x[2] - 2).reshape(1)

    plain = minimize(function, START, scaling="none")
    assert plain.scales is None and plain.success
    for scaled in (minimize(function, START), minimize(function, START, scaling="none", prescaling_threshold=10.0)):
        assert scaled.scales is not None and scaled.success
        assert scaled.f == pytest.approx(12e3, rel=1e-6)
        assert float(scaled.multipliers.inequalities[0]) == pytest.approx(80.0, rel=1e-3)
        assert float(scaled.multipliers.equalities[0]) == pytest.approx(4e4, rel=1e-3)
        torch.testing.assert_close(plain.multipliers.equalities, scaled.multipliers.equalities, rtol=1e-3, atol=0)
        np.testing.assert_allclose(scaled.history.f[0], plain.history.f[0])


def test_multipliers_of_bounds() -> None:
    lower = torch.tensor([1.0, -np.inf, 2.0], dtype=torch.float64)
    upper = torch.tensor([9.0, -1.0, 2.0], dtype=torch.float64)
    found = minimize(lambda x: 0.5 * (x**2).sum() + 3 * x[1], START, bounds=(lower, upper))
    # x0 ≥ 1 pushes up by 1, x1 = −3 is free below −1, x2 is fixed at 2
    assert found.success
    assert found.x.tolist() == pytest.approx([1.0, -3.0, 2.0], abs=1e-5)
    assert found.multipliers.lower.tolist() == pytest.approx([1.0, 0.0, 2.0], abs=1e-4)
    assert found.multipliers.upper.tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)
    assert found.multipliers.inequalities is None


def test_multipliers_of_bounds_by_name() -> None:
    start = {"a": torch.zeros(2).double(), "b": torch.zeros(1, 1).double()}
    found = minimize(lambda v: ((v["a"] - 2) ** 2).sum() + (v["b"] ** 2).sum(), start, bounds=(None, {"a": 1.0, "b": 1.0}))
    assert found.success
    assert found.multipliers.upper["a"].tolist() == pytest.approx([2.0, 2.0], abs=1e-4)
    assert found.multipliers.upper["b"].shape == (1, 1)
    assert found.multipliers.lower["a"].tolist() == [0.0, 0.0]


def test_the_history_has_one_entry_per_iterate(result: Result) -> None:
    history = result.history
    assert len(history) == result.iterations + 1
    for name in (
        "f",
        "violation",
        "penalty_parameter",
        "stationarity",
        "step",
        "evaluations",
        "seconds",
        "fallback",
        "null_steps",
    ):
        assert getattr(history, name).shape == (result.iterations + 1,)
        assert np.isfinite(getattr(history, name)).all(), name
    assert history.f[0] == float(projection(START)[0]) and history.f[-1] == result.final.f
    assert history.step[0] == 0.0 and (history.step[1:] > 0).all()
    assert (np.diff(history.evaluations) > 0).all() and history.evaluations[-1] <= result.evaluations
    assert (np.diff(history.seconds) >= 0).all()


def test_a_summary_is_printed(result: Result) -> None:
    text = str(result)
    assert text.splitlines()[0] == f"STATIONARY: {Status.STATIONARY.value}"
    for word in ("objective", "violation", "certificate", "iterations", "penalty", "programs", "time"):
        assert word in text
    assert f"{result.iterations}, {result.evaluations} evaluations" in text
    assert "not feasible" not in text and "exception" not in text
    assert len(repr(result)) < 20_000


def test_the_summary_tells_what_went_wrong() -> None:
    def failing(x: Tensor) -> tuple[Tensor, Tensor, None]:
        if not torch.equal(x.detach(), START):
            raise RuntimeError("out of paper")
        return (x**2).sum(), 1 + x[0] ** 2, None

    text = str(minimize(failing, START))
    assert text.startswith("FUNCTION_ERROR") and "RuntimeError: out of paper" in text and "(not feasible)" in text


def test_time_is_accounted_for(result: Result) -> None:
    assert all(seconds >= 0 for seconds in result.time.values())
    assert {"values", "gradients", "Jacobians", "QP", "directions", "search", "Hessian", "stationarity"} <= set(result.time)
    assert sum(result.time.values()) == result.time.total < 60


def test_costs_are_counted(result: Result) -> None:
    assert result.costs.values >= result.iterations
    assert result.programs.solved >= result.iterations
    assert result.updates.updated <= result.iterations + 1
    assert result.evaluations >= result.iterations


def test_the_check_is_made_from_x_alone(result: Result) -> None:
    calls = result.costs.values
    again = result.check()
    assert isinstance(again, Certificate) and again.stationary
    assert result.costs.values == calls
    assert again == result.check()


def test_best_and_final_points() -> None:
    stopped = minimize(lambda x: ((x**2).sum(), 1 - x[0], None), torch.tensor([-3.0, 2.0]).double(), max_iterations=1)
    assert stopped.status is Status.ITERATION_LIMIT
    if stopped.best is not None:
        assert stopped.best.feasible and stopped.f == stopped.best.f
    assert stopped.most_feasible.violation <= stopped.final.violation
    assert not minimize(lambda x: ((x**2).sum(), 1 + x[0] ** 2, None), torch.ones(1).double()).most_feasible.feasible


def test_an_infeasible_problem_has_no_best_point() -> None:
    found = minimize(lambda x: (x.sum(), torch.stack([1 - x[0], x[0]]), None), torch.tensor([3.0]).double(), bounds=(None, 9))
    assert found.status is Status.INFEASIBLE and found.best is None and not found.success
    assert found.violation >= 0.5 - 1e-6 and not found.point.feasible


def test_a_result_can_be_printed_at_every_ending() -> None:
    for options in ({"max_iterations": 0}, {"max_evaluations": 3}, {"target_value": 1e9}, {"max_iterations": 2}):
        found = minimize(projection, START, **options)
        assert found.status.name in str(found)
        assert found.multipliers.inequalities["first"].shape == (1, 1)
