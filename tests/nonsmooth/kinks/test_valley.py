"""Following valleys whose floor is a curved kink."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from nonsmooth import State, Status, minimize
from nonsmooth.evaluate import Trial
from nonsmooth.qp import QPSolver
from nonsmooth.step.valley import FIRST, LONGEST_PAUSE, WINDOW, Follower, Valley
from problems import Case
from problems.chained import nesterov_chebyshev_rosenbrock


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_valley_is_followed_to_its_end(n: int) -> None:
    case = nesterov_chebyshev_rosenbrock(n)
    result = minimize(case.function, case.initial(), max_evaluations=10_000)
    assert result.status is Status.STATIONARY and result.check().stationary
    assert 0 <= result.f <= 1e-6


def starts(case: Case, count: int) -> list[torch.Tensor]:
    """Starts that differ in the ninth digit."""
    start, generator = case.initial(), torch.Generator().manual_seed(0)
    return [start * (1 + 1e-9 * torch.randn(start.shape, generator=generator, dtype=torch.float64)) for _ in range(count)]


def test_following_comes_to_the_end_sooner_than_ordinary_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """About 500 evaluations against 1370, whatever the last digits of the start."""
    case = nesterov_chebyshev_rosenbrock(2)

    def taken() -> list[int]:
        results = [minimize(case.function, start) for start in starts(case, 3)]
        assert all(result.success and 0 <= result.f <= 1e-6 for result in results)
        return [result.evaluations for result in results]

    followed = taken()
    monkeypatch.setattr(Follower, "wanted", lambda self, state, evaluations: False)
    assert max(followed) < 0.6 * min(taken())


@pytest.mark.slow
def test_following_leads_farther_than_ordinary_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """How far one run gets hangs on the last digits: nine starts that differ in the ninth reached 5e-5 to 0.36."""
    case = nesterov_chebyshev_rosenbrock(4)

    def reached() -> float:
        return float(np.median([minimize(case.function, start, max_evaluations=2500).f for start in starts(case, 9)]))

    followed = reached()
    monkeypatch.setattr(Follower, "wanted", lambda self, state, evaluations: False)
    assert followed < 0.3 * reached()


def test_every_move_in_a_valley_goes_down() -> None:
    case, followed, values = nesterov_chebyshev_rosenbrock(3), 0, []

    def callback(state: State) -> None:
        nonlocal followed
        followed += state.valley.following
        values.append(state.f)

    minimize(case.function, case.initial(), callback=callback, max_iterations=300)
    assert followed > 50
    assert (np.diff(values) < 0).all()


def test_a_run_saved_in_a_valley_goes_on_the_same_way(tmp_path: Path) -> None:
    case, path = nesterov_chebyshev_rosenbrock(3), tmp_path / "state"

    def callback(state: State) -> None:
        if state.valley.following and len(state.valley.path) >= 3 and not path.exists():
            state.save(path)

    whole = minimize(case.function, case.initial(), callback=callback, max_iterations=200)
    resumed = minimize(case.function, case.initial(), state=State.load(path), max_iterations=200)
    np.testing.assert_array_equal(whole.point.flat, resumed.point.flat)
    np.testing.assert_array_equal(whole.history.f, resumed.history.f)


def follower() -> Follower:
    return Follower(lambda x: Trial(x, 0.0, np.zeros(0), 0, None), QPSolver("auto"))


def test_a_parabola_goes_through_its_points() -> None:
    def point(t: float) -> np.ndarray:
        return np.array([t, 0.5 * t * t])

    valley = Valley(reach=1e-3, path=[point(-2e-3), point(-1e-3), point(0.0)])
    curve = follower()._parabola(valley)
    assert curve is not None
    first, second = curve
    ahead = valley.path[-1] + 1e-3 * first + 1e-6 * second
    np.testing.assert_allclose(ahead, point(1e-3), atol=2e-9)


def test_a_parabola_needs_three_different_points() -> None:
    here, there = np.zeros(2), np.ones(2)
    assert follower()._parabola(Valley(reach=1.0, path=[here, there])) is None
    assert follower()._parabola(Valley(reach=1.0, path=[here, there, there])) is None


def test_points_too_near_for_the_guess_are_passed_over() -> None:
    path = [np.array([float(t), 0.0]) for t in (0.0, 1.0, 2.0, 2.01, 2.02)]
    curve = follower()._parabola(Valley(reach=2.0, path=path))
    assert curve is not None
    np.testing.assert_allclose(curve[0], [1.0, 0.0], atol=1e-12)


class Stood:
    """As much of a state as the follower looks at when it decides."""

    def __init__(self, iteration: int, x: float, value: float, valley: Valley) -> None:
        self.iteration, self.kinked, self.weight, self.valley = iteration, True, 1.0, valley
        self.current = Trial(np.array([x]), value, np.zeros(0), 0, None)


def test_when_a_valley_is_looked_for() -> None:
    valley, decides = Valley(), follower()
    assert not decides.wanted(Stood(FIRST - WINDOW, 0.0, 1.0, valley), 100)  # type: ignore[arg-type]
    assert valley.anchor_value == 1.0
    assert not decides.wanted(Stood(FIRST - 1, 0.5, 0.95, valley), 170)  # type: ignore[arg-type]
    assert decides.wanted(Stood(FIRST, 1.0, 0.9, valley), 180)  # type: ignore[arg-type]
    assert valley.following and valley.slope == pytest.approx(0.1) and valley.pace == pytest.approx(0.1 / 80)


@pytest.mark.parametrize(("value", "pause"), [(0.5, WINDOW), (0.9, 2 * WINDOW)])
def test_pauses_grow_where_following_does_not_pay(value: float, pause: int) -> None:
    valley = Valley(following=True, pace=1e-3, anchor_value=1.0, anchor_evaluations=0, anchor=np.zeros(1))
    follower().leave(Stood(200, 1.0, value, valley), 400)  # type: ignore[arg-type]
    assert (valley.following, valley.pause, valley.due) == (False, pause, 200 + pause)


def test_pauses_do_not_grow_for_ever() -> None:
    valley = Valley(following=True, pause=LONGEST_PAUSE, pace=math.inf, anchor_value=1.0, anchor=np.zeros(1))
    follower().leave(Stood(200, 1.0, 0.9, valley), 400)  # type: ignore[arg-type]
    assert valley.pause == LONGEST_PAUSE


@pytest.mark.parametrize(
    ("x", "value"),
    [(0.0, 1.0), (0.0, 0.5), (1.0, 1.0), (np.inf, -1e300), (1e308, 1.0 - 1e-15), (1e-300, -1e300)],
    ids=["nothing", "no way", "no gain", "no end", "hardly a slope", "a wall"],
)
def test_without_progress_nothing_is_followed(x: float, value: float) -> None:
    valley = Valley(due=200, anchor=np.zeros(1), anchor_value=1.0)
    assert not follower().wanted(Stood(200, x, value, valley), 100)  # type: ignore[arg-type]
    assert valley.due == 200 + WINDOW
