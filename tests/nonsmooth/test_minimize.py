"""What a run does besides finding the answer: limits, errors, interrupts, callbacks, types."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from black_box import minimize
from nonsmooth import Options, State, Status
from problems import ALL

START = torch.tensor([3.0, -2.0], dtype=torch.float64)


def slanted(x: Tensor) -> Tensor:
    """Convex, with a kink, minimal at (1, 1), where it is 0."""
    return 3 * (x[0] - x[1]).abs() + ((x - 1) ** 2).sum()


def constrained(x: Tensor) -> tuple[Tensor, Tensor, None]:
    return slanted(x), (x.sum() - 1).reshape(1), None


class Counting:
    """A function that does something at one of its calls, or from it on."""

    def __init__(self, function: Any, at: int, act: Any, *, once: bool = True) -> None:
        self.function, self.at, self.act, self.once, self.calls = function, at, act, once, 0

    def __call__(self, x: Tensor) -> Any:
        self.calls += 1
        if self.calls == self.at or (self.calls > self.at and not self.once):
            self.act()
        return self.function(x)


class OwnError(Exception):
    pass


def raise_it(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


def test_an_error_at_the_start_is_passed_on_unchanged() -> None:
    for error in (OwnError("at once"), ValueError("mine"), KeyError("k"), ZeroDivisionError("z"), AssertionError("a")):
        with pytest.raises(type(error)) as caught:
            minimize(Counting(slanted, 1, raise_it(error)), START)
        assert caught.value is error


@pytest.mark.parametrize("at", [2, 3, 5, 7])
@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("error", [OwnError("later"), ValueError("later"), IndexError("later"), MemoryError("later")], ids=repr)
def test_a_later_error_is_kept_with_the_best_point(at: int, once: bool, error: Exception) -> None:
    result = minimize(Counting(constrained, at, raise_it(error), once=once), START)
    assert result.status is Status.FUNCTION_ERROR and not result.success
    assert result.exception is error
    assert result.best is not None and result.f == result.best.f <= float(slanted(START))
    assert float(slanted(result.x)) == result.f


def test_a_later_error_is_raised_if_asked_for() -> None:
    error = OwnError("later")
    with pytest.raises(OwnError) as caught:
        minimize(Counting(slanted, 4, raise_it(error)), START, throw=True)
    assert caught.value is error


def test_throw_does_nothing_without_an_error() -> None:
    assert minimize(slanted, START, throw=True).success


@pytest.mark.parametrize("at", [2, 5, 7])
def test_an_interrupt_returns_the_best_point(at: int) -> None:
    result = minimize(Counting(constrained, at, raise_it(KeyboardInterrupt())), START)
    assert result.status is Status.USER_STOP and not result.success
    assert result.best is not None and result.f == result.best.f
    assert float(slanted(result.x)) == result.f


def test_an_interrupt_in_the_callback_returns_the_best_point() -> None:
    def callback(state: State) -> None:
        if state.iteration == 2:
            raise KeyboardInterrupt

    result = minimize(slanted, START, callback=callback)
    assert result.status is Status.USER_STOP and result.iterations == 2


def test_an_interrupt_at_the_start_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        minimize(Counting(slanted, 1, raise_it(KeyboardInterrupt())), START)


@pytest.mark.parametrize("error", [OwnError("callback"), ValueError("callback")], ids=repr)
def test_an_error_of_the_callback_is_passed_on(error: Exception) -> None:
    def callback(state: State) -> None:
        if state.iteration == 1:
            raise error

    with pytest.raises(type(error), match="callback"):
        minimize(slanted, START, callback=callback)


def test_the_callback_ends_the_run() -> None:
    seen: list[int] = []

    def callback(state: State) -> bool:
        seen.append(state.iteration)
        return state.iteration == 3

    result = minimize(slanted, START, callback=callback)
    assert result.status is Status.USER_STOP and result.iterations == 3 and seen == [0, 1, 2, 3]
    assert minimize(slanted, START, callback=lambda state: True).iterations == 0
    assert minimize(slanted, START, callback=lambda state: None).success


def test_a_proven_answer_counts_even_if_the_callback_stops() -> None:
    whole = minimize(slanted, START)
    result = minimize(slanted, START, callback=lambda state: state.iteration == whole.iterations)
    assert result.status is Status.STATIONARY and result.success


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_iteration_limit(limit: int) -> None:
    result = minimize(slanted, START, max_iterations=limit)
    assert result.status is Status.ITERATION_LIMIT and result.iterations == limit and not result.success
    assert result.f <= float(slanted(START))


@pytest.mark.parametrize("limit", [1, 2, 5, 7])
def test_the_evaluation_limit(limit: int) -> None:
    counted = Counting(constrained, 0, None)
    result = minimize(counted, START, max_evaluations=limit)
    assert result.status is Status.EVALUATION_LIMIT
    assert result.evaluations <= limit + 1 and counted.calls <= limit + 1  # one more for the certificate of the answer
    assert result.best is not None and result.f == result.best.f


def test_the_time_limit_holds_inside_a_line_search() -> None:
    """Every evaluation takes 20 ms, and a search that cannot succeed would take sixty."""

    began: list[float] = []

    def slow(x: Tensor) -> Tensor:
        began.append(time.perf_counter())
        time.sleep(0.02)
        return x[0] if float(x.detach()[0]) == 3.0 else 100 + x[0]

    result = minimize(slow, START, max_seconds=0.2)
    assert result.status is Status.TIME_LIMIT and result.f == 3.0
    # The run began before its first evaluation. One may be under way when the time is over, and the answer takes another.
    assert sum(moment > began[0] + 0.2 for moment in began) <= 3


def test_the_target_is_enough() -> None:
    result = minimize(constrained, START, target_value=5.0)
    assert result.status is Status.TARGET_REACHED and result.success
    assert result.f <= 5.0 and result.point.feasible and result.f == float(slanted(result.x))
    assert minimize(constrained, START, target_value=1e6).iterations == 0


def test_the_target_must_be_reached_at_a_feasible_point() -> None:
    result = minimize(lambda x: ((x**2).sum(), 1 - x[0], None), torch.zeros(2).double(), target_value=0.5)
    assert result.status is Status.STATIONARY and result.f == pytest.approx(1.0, abs=1e-5)


def test_a_relative_decrease_is_enough_if_asked_for() -> None:
    case = ALL["maxquad"]
    result = minimize(case.function, case.initial(), relative_decrease_tolerance=1e-2)
    assert result.status in (Status.RELATIVE_DECREASE, Status.STATIONARY)
    assert result.iterations < minimize(case.function, case.initial()).iterations
    assert result.success == result.certificate.stationary


def test_outside_the_domain_it_turns_back() -> None:
    def logarithm(x: Tensor) -> Tensor:
        return x[0] - torch.log(x[0]) + (x[1] - x[0]).abs()

    result = minimize(logarithm, torch.tensor([1e-2, 5.0], dtype=torch.float64))
    assert result.success and result.f == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_never_an_answer(value: float) -> None:
    def function(x: Tensor) -> Tensor:
        return slanted(x) if float(x.detach()[0]) > 0.5 else slanted(x) * 0 + value

    result = minimize(function, START)
    assert math.isfinite(result.f) and result.success
    assert result.f == pytest.approx(0.0, abs=1e-6)


def test_a_function_defined_at_the_start_only() -> None:
    result = minimize(lambda x: x.sum() if torch.equal(x.detach(), START) else x.sum() * math.nan, START)
    assert not result.success and result.f == 1.0 and torch.equal(result.x, START)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for options in ({}, {"qp_solver": "osqp"}, {"qp_solver": "proxqp"}):
        pytest.importorskip({"osqp": "osqp", "proxqp": "proxsuite"}.get(options.get("qp_solver", ""), "torch"))
        minimize(constrained, START, **options)  # type: ignore[arg-type]
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


def test_progress_is_written_to_stderr_only(capfd: pytest.CaptureFixture[str]) -> None:
    assert minimize(constrained, START, progress=True).success
    captured = capfd.readouterr()
    assert captured.out == "" and "iteration 0  objective" in captured.err


def test_what_happens_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="nonsmooth"):
        minimize(slanted, START)
    assert any("stationary" in record.getMessage() for record in caplog.records)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="nonsmooth"):
        minimize(Counting(slanted, 4, raise_it(OwnError("loud"))), START)
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "OwnError('loud')" in warning.getMessage()


def test_a_clean_run_warns_of_nothing(caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder) -> None:
    minimize(constrained, START)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert [str(warning.message) for warning in recwarn] == []


def test_unused_variables_stay_where_they_are() -> None:
    start = {"used": START, "idle": torch.tensor([7.0, 8.0], dtype=torch.float64)}
    result = minimize(lambda v: (slanted(v["used"]), v["used"][0] - 5, None), start)
    assert result.success and result.f == pytest.approx(0.0, abs=1e-6)
    torch.testing.assert_close(result.x["idle"], start["idle"], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["cb2", "maxq", "mifflin1", "wolfe", "nonsmooth_rosenbrock", "hs71"])
def test_single_precision(name: str) -> None:
    case = ALL[name]
    result = minimize(case.function, case.initial(dtype=torch.float32))
    assert result.x.dtype == torch.float32
    assert case.optimum is not None
    assert result.f == pytest.approx(case.optimum, rel=2e-3, abs=2e-3)
    assert result.violation <= 1e-5
    if result.success:
        assert result.check().stationary


def test_mixed_precision() -> None:
    start = {"a": torch.ones(1, dtype=torch.float32), "b": torch.ones(1, dtype=torch.float64)}
    result = minimize(lambda v: ((v["a"].double() - 3).abs() + (v["b"] - 2) ** 2).sum(), start)
    assert result.f == pytest.approx(0.0, abs=1e-3)
    assert result.x["a"].dtype == torch.float32 and result.x["b"].dtype == torch.float64


@pytest.mark.parametrize("name", ["maxquad", "mad1", "hs78"])
@pytest.mark.parametrize("options", [{}, {"memory": 5}, {"first_fallback": 4, "max_iterations": 30}], ids=str)
def test_the_same_call_gives_the_same_answer(name: str, options: dict[str, Any]) -> None:
    case = ALL[name]
    first, second = (minimize(case.function, case.initial(), **options) for _ in range(2))
    assert torch.equal(first.x, second.x) and first.iterations == second.iterations
    np.testing.assert_array_equal(first.history.f, second.history.f)


def test_random_numbers_of_torch_and_numpy_are_left_alone() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    minimize(constrained, START, first_fallback=4, max_iterations=20)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # type: ignore[index]


OPTIONS: list[dict[str, Any]] = [
    {"memory": 1}, {"memory": 50}, {"damping": 0}, {"damping": 0.9}, {"max_null_steps": 0}, {"gradient_samples": 1},
    {"steering_model": "max"}, {"steering_max_reductions": 0}, {"steering_inequality_margin": math.inf},
    {"penalty_parameter": 1e-4}, {"penalty_parameter": 1e4}, {"prescaling_threshold": 1.0}, {"scale_initial_hessian": False},
    {"regularization_threshold": 10.0}, {"regularization_threshold": 1e3, "regularize_large_eigenvalues": True},
    {"initial_step": 0.1}, {"normalize_direction": True}, {"backtracking_only": True}, {"last_fallback": 0},
    {"initial_hessian": np.diag([2.0, 0.5])}, {"initial_hessian": np.eye(2), "scale_initial_hessian": False},
    {"memory": 3, "fixed_scaling": True}, {"max_nondescent_evaluations": 5}, {"penalty_retries": 0, "first_penalty_retries": 0},
    {"initial_pairs": (np.eye(2), 2 * np.eye(2), 0.5), "memory": 5},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_still_leads_to_the_answer(options: dict[str, Any]) -> None:
    result = minimize(constrained, START, options=Options(**options))
    assert result.success and result.check().stationary
    assert result.f == pytest.approx(0.5, abs=1e-5) and result.violation <= 1e-6


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_every_kind_of_direction_makes_progress(first: int) -> None:
    result = minimize(lambda x: ((x - 1) ** 2).sum(), START, first_fallback=first, max_iterations=60)
    assert result.f < 1.0
    assert set(result.history.fallback[1:].tolist()) <= {float(level) for level in range(first, 5)}


def test_tighter_tolerances_give_a_better_answer() -> None:
    result = minimize(slanted, START, stationarity_tolerance=1e-9)
    assert result.success and result.certificate.residual <= 1e-9


def test_infeasible_start_and_bounds() -> None:
    result = minimize(lambda x: (x - torch.tensor([5.0, -5.0])).abs().sum(), START * 100, bounds=(-1, 2))
    assert result.success and result.x.tolist() == pytest.approx([2.0, -1.0], abs=1e-5)


def test_one_variable() -> None:
    for start in (-3.0, 0.0, 1e-9, 50.0):
        result = minimize(lambda x: (x[0] - 2).abs() + 0.1 * x[0] ** 2, torch.tensor([start], dtype=torch.float64))
        assert result.success and float(result.x[0]) == pytest.approx(2.0, abs=1e-5)


def test_more_constraints_than_variables() -> None:
    angles = torch.linspace(0, 2 * math.pi, 101, dtype=torch.float64)[:-1]
    rows = torch.stack([angles.cos(), angles.sin()], dim=1)
    result = minimize(lambda x: (-x[0] - 0.3 * x[1], rows @ x - 1, None), START)
    assert result.success
    # the polygon lies around the unit circle, and hardly farther out
    assert -math.hypot(1.0, 0.3) / math.cos(math.pi / 100) - 1e-6 <= result.f <= -math.hypot(1.0, 0.3) + 1e-6


def test_large_and_small_units() -> None:
    for scale in (1e-4, 1e4):
        result = minimize(lambda x, s=scale: s * slanted(x), START)
        assert result.success and result.f == pytest.approx(0.0, abs=1e-5 * scale)
        result = minimize(lambda x, s=scale: slanted(x / s), START * scale)
        assert result.f == pytest.approx(0.0, abs=1e-4)


def test_a_norm_that_must_vanish_is_met_by_its_gradient_at_the_trial_point() -> None:
    """The gradient of the norm turns on the way, so corrections with the one at x lead nowhere."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(4, 4, dtype=torch.float64, generator=generator)

    def function(x: Tensor) -> tuple[Tensor, None, Tensor]:
        return (x * target).sum(), None, torch.linalg.norm(x.T @ x - torch.eye(4, dtype=torch.float64))

    start = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator))[0] * 1.1
    result = minimize(function, start, max_iterations=60)
    assert result.violation <= 1e-6
    values = torch.linalg.svdvals(target)  # rotations and reflections have a minimum each
    assert min(abs(result.f + float(values.sum()) - part) for part in (0.0, 2 * float(values[-1]))) <= 1e-3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scaling", ["auto", "none"])
def test_the_users_own_floating_point_errors_stay_theirs(scaling: str) -> None:
    """numpy warns in functions and callbacks as outside, and says nothing of what the solver computes."""
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(np.geterr())
        return -(x**3).sum()  # falls without end, so that the solver's numbers overflow

    with np.errstate(over="raise", divide="call"):
        wanted = np.geterr()
        result = minimize(
            function, torch.ones(2, dtype=torch.float64), callback=lambda state: seen.append(np.geterr()), scaling=scaling
        )
        assert np.geterr() == wanted
    assert result.status is Status.UNBOUNDED and len(seen) > 5
    assert all(errors == wanted for errors in seen)
