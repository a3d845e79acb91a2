"""Single iterations: what is done where values are rounded away, and where a step ends far beyond a kink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Options, Result, State, Status, minimize
from nonsmooth.evaluate import Trial
from nonsmooth.hessian import FullMemory
from nonsmooth.kinks.bundle import Bundle, own_cut
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.options import Tolerances
from nonsmooth.qp import QPSolver
from nonsmooth.step import attempt
from nonsmooth.step.fallback import plain_step
from nonsmooth.step.model import Model, Step
from nonsmooth.step.null_steps import explains_failure, gather
from nonsmooth.step.outcome import Evidence
from nonsmooth.thresholds import THRESHOLDS
from problems import PUBLISHED

torch.manual_seed(3)
MATRIX = (lambda a: a + a.T)(torch.randn(30, 30, dtype=torch.float64))
STARTS = [torch.linalg.qr(torch.randn(30, 5, dtype=torch.float64))[0].contiguous() for _ in range(8)]
del STARTS[2]  # there the last two digits are lost in the accuracy of the quadratic programs
IDENTITY = torch.eye(5, dtype=torch.float64)


def trace(basis: Tensor) -> Any:
    """The sum of the largest eigenvalues, with 25 equalities of which 15 are different."""
    return -(basis.T @ MATRIX @ basis).diagonal().sum(), None, basis.T @ basis - IDENTITY


def solve(start: Tensor, **more: Any) -> Result:
    return minimize(trace, start, stationarity_tolerance=1e-9, compile="never", **more)


@pytest.mark.parametrize("start", STARTS)
def test_nine_digits_of_a_smooth_problem(start: Tensor) -> None:
    result = solve(start)
    assert result.status is Status.STATIONARY, result
    assert result.certificate.residual <= 1e-9 and result.check().stationary
    assert result.f == pytest.approx(-float(torch.linalg.eigvalsh(MATRIX)[-5:].sum()), rel=1e-12)
    assert result.violation < 1e-10


def test_values_alone_do_not_lead_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without steps that only the gradients judge, some of these runs end before."""
    monkeypatch.setattr(attempt, "THRESHOLDS", replace(THRESHOLDS, max_idle_steps=0))
    assert not all(solve(start).status is Status.STATIONARY for start in STARTS)


def test_no_end_to_what_rounding_hides_is_noticed() -> None:
    """Digits that are not there are not looked for forever: the steps end, and the verdict is no success."""
    result = minimize(trace, STARTS[0], stationarity_tolerance=1e-17, compile="never")
    assert not result.success and not result.certificate.stationary
    assert result.iterations < 300


def test_a_run_saved_among_such_steps_goes_on_the_same_way(tmp_path: Path) -> None:
    saved: list[int] = []

    def save(state: State) -> None:
        if state.shortest_gradient < float("inf") and not saved:
            state.save(tmp_path / "state")
            saved.append(state.iteration)

    whole = solve(STARTS[1], callback=save)
    assert saved, "no step was of that kind"
    continued = solve(STARTS[1], state=State.load(tmp_path / "state"))
    assert continued.iterations == whole.iterations
    assert torch.equal(continued.x, whole.x)


def at(x: float, f: float, slope: float) -> Trial:
    return Trial.stored(np.array([x]), f, np.zeros(0), 0, np.array([slope]), np.zeros((0, 1)))


@pytest.mark.parametrize(
    ("there", "length", "kinked"),
    [
        (at(1.0, 500.0, 500.0), 1.0, True),  # it rose all the way
        (at(0.25, 125.0, 500.0), 0.25, True),
        (at(1.0, 250.0, 500.0), 1.0, False),  # it rose in the end only, as a square does
        (at(1.0, 500.0, -500.0), 1.0, False),  # it falls again
        (at(1.0, 5e9, 5e9), 1.0, False),  # something else altogether
        (at(1.0, np.inf, 500.0), 1.0, False),
    ],
)
def test_which_points_show_a_kink(there: Trial, length: float, kinked: bool) -> None:
    here = at(0.0, 0.0, -100.0)
    step = plain_step(here, np.ones(1), here.gradient, -1.0, 1.0)
    assert explains_failure(here, step, there, length) is kinked


def test_a_step_far_beyond_a_kink_costs_one_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nuclear norm has a kink at every singular value that vanishes, and near the solution nearly all steps cross one."""
    problem = PUBLISHED["C1big"]()

    def solved() -> Result:
        start = problem.unflatten(problem.start)
        return minimize(problem.function, start, stationarity_tolerance=1e-6, max_iterations=200, compile="never")

    result = solved()
    monkeypatch.setattr(attempt, "explains_failure", lambda *given: False)
    bisected = solved()
    assert result.status is bisected.status is Status.STATIONARY
    assert result.f == pytest.approx(bisected.f, rel=1e-7)
    assert result.costs.values < 0.85 * bisected.costs.values


def rising(power: float) -> tuple[State, Step, Trial]:
    """At 0 a model that promises a fall of 1 along a step, and the point there, where f = −t + 20·t^power."""
    size, capacity = 30, 10
    direction = np.zeros(size)
    direction[0] = 1.0
    here = Trial.stored(np.zeros(size), 0.0, np.zeros(0), 0, -direction, np.zeros((0, size)))
    there = Trial.stored(direction, 19.0, np.zeros(0), 0, (20.0 * power - 1.0) * direction, np.zeros((0, size)))
    state = State(
        current=here, weight=1.0, hessian=FullMemory(size), bundle=Bundle(size, capacity),
        pieces=ConstraintPieces(size, capacity), incumbents=Incumbents(Tolerances.of(Options(), single=False)),
        generator=np.random.default_rng(0), form=lambda x: x,
    )  # fmt: skip
    state.hessian_updates = 1
    return state, plain_step(here, direction, here.gradient, -1.0, 1.0), there


@pytest.mark.parametrize(("power", "kept"), [(1.0, True), (1.5, True), (2.0, False), (3.0, False), (4.0, False)])
def test_gradients_from_where_a_function_rises_late_are_left_to_the_line_search(power: float, kept: bool) -> None:
    """A quadratic, the power 2, is no kink; only where kinks have been met is everything gathered."""
    state, step, there = rising(power)
    model = Model(state.current, own_cut(state.current), None, state.hessian, QPSolver())
    assert gather(state, model, step, there) is (Evidence.KINK if kept else None)
    assert len(state.bundle) == kept
    kinked, *_ = rising(power)
    kinked.near_kink = True
    assert gather(kinked, model, step, there) is Evidence.KINK and len(kinked.bundle) == 1
