"""The weak-Wolfe line search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nonsmooth import Options
from nonsmooth.evaluate import Trial
from nonsmooth.step.line_search import Ending, SearchResult, search

Function = Callable[[float], tuple[float, float]]


def trial_of(function: Function) -> Callable[[np.ndarray], Trial]:
    def evaluate(x: np.ndarray) -> Trial:
        value, slope = function(float(x[0]))
        return Trial.stored(x, value, np.zeros(0), 0, np.array([slope]), np.zeros((0, 1)))

    return evaluate


def along(
    function: Function, options: Options | None = None, *, start: float = 0.0, direction: float = 1.0, **more: int
) -> SearchResult:
    evaluate = trial_of(function)
    at = evaluate(np.array([start]))
    slope = float(at.gradient[0] * direction)
    assert slope < 0
    return search(evaluate, at, np.array([direction]), slope, 1.0, options or Options(), step_tolerance=1e-12, **more)


def valley(minimizer: float) -> Function:
    return lambda t: (abs(t - minimizer), 1.0 if t >= minimizer else -1.0)


def parabola(minimizer: float) -> Function:
    return lambda t: ((t - minimizer) ** 2, 2 * (t - minimizer))


@pytest.mark.parametrize("function", [valley, parabola], ids=["kink", "curve"])
@pytest.mark.parametrize("minimizer", [1e-6, 0.01, 0.3, 1.0, 1.7, 37.0, 1e4])
def test_accepted_points_satisfy_both_conditions(function: Callable[[float], Function], minimizer: float) -> None:
    options = Options()
    chosen = function(minimizer)
    found = along(chosen, options)
    assert found.ending is Ending.ACCEPTED and found.trial is not None
    value, slope = chosen(0.0)
    assert found.trial.x[0] == pytest.approx(found.step)
    assert found.trial.f < value + options.sufficient_decrease * found.step * slope
    assert found.trial.gradient[0] > options.curvature * slope


def test_the_first_point_is_not_evaluated_again() -> None:
    evaluate = trial_of(parabola(1.0))
    at, first = evaluate(np.zeros(1)), evaluate(np.ones(1))

    def forbidden(x: np.ndarray) -> Trial:
        raise AssertionError("no more points are needed")

    found = search(forbidden, at, np.ones(1), -2.0, 1.0, Options(), step_tolerance=1e-12, first=first)
    assert found.ending is Ending.ACCEPTED and found.trial is first and found.evaluations == 1 and found.step == 1.0


def test_a_function_that_falls_for_ever_is_never_bracketed() -> None:
    found = along(lambda t: (-t, -1.0))
    assert found.ending is Ending.NEVER_BRACKETED
    assert found.trial is not None and found.trial.x[0] > 1e4


def test_a_direction_that_does_not_descend_is_bracketed_to_nothing() -> None:
    evaluate = trial_of(lambda t: (abs(t), 1.0 if t > 0 else -1.0))  # at 0 the slope is taken from the left
    found = search(evaluate, evaluate(np.zeros(1)), np.ones(1), -1.0, 1.0, Options(), step_tolerance=1e-12)
    assert found.ending is Ending.BRACKETED
    assert found.trial is not None and 0 < found.trial.x[0] < 1e-9


def test_no_direction_at_all() -> None:
    evaluate = trial_of(parabola(1.0))
    for direction in (0.0, np.nan, np.inf):
        found = search(evaluate, evaluate(np.zeros(1)), np.array([direction]), -1.0, 1.0, Options(), step_tolerance=1e-12)
        assert found.ending is Ending.BRACKETED and found.trial is None and found.evaluations == 0


@pytest.mark.parametrize("limit", [1, 5])
def test_evaluations_are_limited(limit: int) -> None:
    found = along(valley(1e-9), limit=limit)
    assert found.evaluations == limit and found.ending is Ending.BRACKETED
    assert along(valley(1e-9), Options(max_search_evaluations=limit)).evaluations == limit


def test_points_outside_the_domain_are_too_far() -> None:
    found = along(lambda t: (-t, -1.0) if t < 0.2 else ((t - 0.25) ** 2 - 0.2, 0.1) if t < 0.3 else (np.nan, np.nan))
    assert found.ending is Ending.ACCEPTED and found.trial is not None and 0.0 < found.trial.x[0] < 0.3


def test_points_without_a_gradient_are_too_far() -> None:
    found = along(lambda t: ((t - 3) ** 2, 2 * (t - 3)) if t != 1.0 else (4.0, np.nan))
    assert found.ending is Ending.ACCEPTED and found.trial is not None
    assert np.isfinite(found.trial.gradient).all()


def test_progress_without_the_change_of_slope_is_still_progress() -> None:
    """The function falls at a constant rate up to a cliff: no point satisfies the second condition."""
    found = along(lambda t: (-t, -1.0) if t < 0.3 else (10.0, 1.0))
    assert found.ending is Ending.ACCEPTED and found.trial is not None
    assert found.trial.x[0] == pytest.approx(0.3, abs=1e-6) and found.trial.f < -0.29


def test_backtracking_takes_the_first_point_that_is_low_enough() -> None:
    found = along(parabola(100.0), Options(backtracking_only=True))
    assert found.step == 1.0 and found.evaluations == 1
    assert along(parabola(100.0)).step > 1.0


def test_the_initial_step_is_where_the_search_begins() -> None:
    seen: list[float] = []

    def function(t: float) -> tuple[float, float]:
        seen.append(t)
        return parabola(1.0)(t)

    along(function, Options(initial_step=0.25))
    assert seen[1] == 0.25


def test_the_weight_multiplies_the_violation() -> None:
    def evaluate(x: np.ndarray) -> Trial:
        return Trial.stored(x, -x[0], np.array([x[0] - 0.5]), 0, np.array([-1.0]), np.array([[1.0]]))

    for weight, upper in ((10.0, 0.6), (0.1, np.inf)):
        found = search(evaluate, evaluate(np.zeros(1)), np.ones(1), -1.0, weight, Options(), step_tolerance=1e-12)
        assert (found.ending is Ending.ACCEPTED) == (weight == 10.0)
        assert found.trial is not None and found.trial.x[0] <= upper
