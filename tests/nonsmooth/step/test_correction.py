"""Steps along curved constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import State, Status, minimize
from nonsmooth.errors import StateError
from nonsmooth.kinks.bundle import ConstraintCuts
from nonsmooth.step.correction import FREE_FAILURES, LONGEST_WAIT, Bending, Curved, Habit
from problems.published import output_feedback


def eigenvector(size: int) -> tuple[Any, Tensor]:
    """The largest eigenvalue on the sphere: every full step leaves it."""
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(size, size, generator=generator, dtype=torch.float64)
    matrix = root @ root.T

    def function(x: Tensor) -> Any:
        return -(x @ matrix @ x), None, x @ x - 1

    return function, torch.randn(size, generator=generator, dtype=torch.float64)


def test_a_habit_is_given_up_by_and_by_and_comes_back() -> None:
    habit, tried = Habit(), []
    for turn in range(400):
        if habit.due():
            tried.append(turn)
            habit.learn(False)
    gaps = np.diff(tried)
    assert gaps.tolist()[: FREE_FAILURES - 1] == [1] * (FREE_FAILURES - 1)
    assert (np.diff(gaps) >= 0).all() and gaps.max() == LONGEST_WAIT + 1
    habit.learn(True)
    assert [habit.due() for _ in range(10)] == [True] * 10


def test_later_in_an_iteration_only_what_works_now_and_then() -> None:
    habit = Habit()
    for _ in range(FREE_FAILURES - 1):
        habit.learn(False)
        assert habit.due(later=True)
    habit.learn(False)
    waiting = habit.waiting
    assert not habit.due(later=True) and habit.waiting == waiting
    habit.learn(True)
    assert habit.due(later=True)


def test_many_failures_do_not_overflow() -> None:
    habit = Habit(failures=10**6)
    habit.learn(False)
    assert habit.waiting == LONGEST_WAIT


def test_it_is_restored() -> None:
    curved = Curved(Habit(1, 0), Habit(5, 4), Habit(), np.array([0.5, -1.0]))
    again = Curved.restored(curved.numbers(), curved.bend)
    assert (again.correcting, again.restoring, again.foreseeing) == (Habit(1, 0), Habit(5, 4), Habit(0, 0))
    np.testing.assert_array_equal(again.bend, curved.bend)


@pytest.mark.parametrize("numbers", [[[0, 0]] * 2, [[-1, 0]] * 3, [[0, -1]] * 3, [[0, 10**9]] * 3, [["a", 0]] * 3, 7])
def test_habits_that_nobody_had(numbers: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Curved.restored(numbers, np.zeros(0))


@pytest.mark.parametrize(
    "bend", [np.zeros((1, 1)), np.zeros(()), np.zeros(2), np.array([np.nan]), np.array([1j]), np.array(["a"])]
)
def test_a_bend_that_cannot_be(bend: np.ndarray, tmp_path: Any) -> None:
    function, start = eigenvector(20)
    path = tmp_path / "run.npz"
    minimize(function, start, callback=lambda state: state.save(path), max_iterations=4, compile="never")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | {"bend": bend}))
    with pytest.raises(StateError, match="damaged"):
        minimize(function, start, state=State.load(path), compile="never")


def test_a_run_that_was_cut_off_goes_on_as_the_whole_one() -> None:
    """What an iteration has learnt about bends counts only when it ends."""
    function, start = eigenvector(120)
    options: dict[str, Any] = {"penalty_parameter": 0.01, "compile": "never"}
    seen: dict[int, Any] = {}

    def look(state: State) -> None:
        seen[state.iteration] = state.curved.numbers(), state.curved.bend.tolist()

    whole = minimize(function, start, callback=look, **options)
    for limit in range(5, whole.evaluations - 1):
        state = minimize(function, start, max_evaluations=limit, **options).state
        assert (state.curved.numbers(), state.curved.bend.tolist()) == seen[state.iteration], limit


def test_steps_are_bent_before_they_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    function, start = eigenvector(120)
    options: dict[str, Any] = {"penalty_parameter": 0.01, "compile": "never", "scaling": "none"}
    foreseen = minimize(function, start, **options)
    monkeypatch.setattr(Bending, "foreseen", lambda self, state, model, step, value: None)
    plain = minimize(function, start, **options)
    assert foreseen.success and plain.success
    assert foreseen.f == pytest.approx(plain.f, rel=1e-9)
    assert foreseen.evaluations < 0.8 * plain.evaluations


def test_the_bend_of_a_sphere_is_one() -> None:
    """‖x + d‖² − 1 is its linearisation plus ‖d‖², whatever d is."""
    function, start = eigenvector(120)
    bends: list[np.ndarray] = []

    def look(state: State) -> None:
        if len(state.curved.bend):
            bends.append(state.curved.bend)

    assert minimize(function, start, callback=look, penalty_parameter=0.01, compile="never", scaling="none").success
    assert len(bends) > 10
    np.testing.assert_allclose(np.concatenate(bends[:10]), 1.0, rtol=1e-3)  # of shorter steps rounding is left


def test_what_never_helps_is_hardly_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eigenvalues have kinks at which full steps fail as they do where a constraint is curved, if these are not known."""
    problem = output_feedback(10, 4, 5)
    asked = tried = 0
    learn, corrected = Habit.learn, Bending.corrected

    def ask(self: Bending, *given: Any, **how: Any) -> Any:
        nonlocal asked
        asked += 1
        return corrected(self, *given, **how)

    def fail(self: Habit, worked: bool) -> None:
        nonlocal tried
        tried += 1
        learn(self, worked=False)

    monkeypatch.setattr(Bending, "corrected", ask)
    monkeypatch.setattr(Bending, "foreseen", lambda self, state, model, step, value: None)
    monkeypatch.setattr(Habit, "learn", fail)
    monkeypatch.setattr(ConstraintCuts, "carried", lambda self, rows: False)
    minimize(problem.function, problem.unflatten(problem.start), max_evaluations=1500, compile="never")
    assert asked > 50
    assert tried <= 2 * (FREE_FAILURES + 6 + asked / LONGEST_WAIT)


@pytest.mark.parametrize("at", [0, 9, 14, 20])
def test_a_resumed_run_bends_as_the_whole_one(at: int, tmp_path: Any) -> None:
    function, start = eigenvector(120)
    options: dict[str, Any] = {"penalty_parameter": 0.01, "compile": "never"}
    path = tmp_path / "run.state"

    bends: list[int] = []

    def save(state: State) -> None:
        bends.append(len(state.curved.bend))
        if state.iteration == at:
            state.save(path)

    whole = minimize(function, start, callback=save, **options)
    resumed = minimize(function, start, state=State.load(path), **options)
    np.testing.assert_array_equal(resumed.history.f, whole.history.f)
    assert resumed.evaluations == whole.evaluations
    assert whole.state.curved.numbers() == resumed.state.curved.numbers()
    assert 1 in bends


def test_gradients_too_long_to_be_multiplied_end_nothing() -> None:
    """The square of their lengths is infinite."""

    def huge(x: Tensor) -> tuple[Tensor, None, Tensor]:
        return (x - 1).abs().sum(), None, 1e200 * x[0].abs()

    result = minimize(huge, torch.zeros(2, dtype=torch.float64), max_evaluations=200, compile="never")
    assert result.exception is None and result.status is not Status.SOLVER_ERROR
