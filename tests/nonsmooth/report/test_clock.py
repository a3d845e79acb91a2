"""Where the time of a run goes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, State, Status, minimize
from nonsmooth.report.clock import Clock, Phase, Times
from problems import PUBLISHED


class Ticks:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def clock(ticks: Ticks) -> Clock:
    return Clock(now=ticks)


def counted(times: Times) -> dict[str, float]:
    return {label: seconds for label, seconds in times.items() if seconds}


def test_a_phase_counts_without_those_within_it(clock: Clock, ticks: Ticks) -> None:
    ticks.pass_by(1)
    with clock.phase(Phase.SEARCH):
        ticks.pass_by(2)
        with clock.phase(Phase.VALUES):
            ticks.pass_by(4)
        ticks.pass_by(8)
        with clock.phase(Phase.DIRECTIONS):
            ticks.pass_by(16)
            with clock.phase(Phase.QP):
                ticks.pass_by(32)
            ticks.pass_by(64)
    ticks.pass_by(128)
    times = clock.times()
    assert counted(times) == {"search": 10, "values": 4, "directions": 80, "QP": 32, "other": 129}
    assert times.total == sum(times.values()) == 255
    assert {phase for phase, count in times.counts.items() if count == 1} == {
        Phase.SEARCH,
        Phase.VALUES,
        Phase.DIRECTIONS,
        Phase.QP,
    }


def test_a_phase_may_be_entered_within_itself(clock: Clock, ticks: Ticks) -> None:
    with clock.phase(Phase.STATIONARITY):
        ticks.pass_by(1)
        with clock.phase(Phase.STATIONARITY):
            ticks.pass_by(2)
        ticks.pass_by(4)
    times = clock.times()
    assert counted(times) == {"stationarity": 7}
    assert times.counts[Phase.STATIONARITY] == 2


def test_leaving_by_an_exception_is_leaving(clock: Clock, ticks: Ticks) -> None:
    with pytest.raises(KeyboardInterrupt), clock.phase(Phase.SEARCH):
        ticks.pass_by(1)
        with clock.phase(Phase.VALUES):
            ticks.pass_by(2)
            raise KeyboardInterrupt
    assert clock.open == []
    ticks.pass_by(4)
    assert counted(clock.times()) == {"search": 1, "values": 2, "other": 4}


def test_times_can_be_had_while_phases_are_open(clock: Clock, ticks: Ticks) -> None:
    ticks.pass_by(1)
    with clock.phase(Phase.SEARCH):
        ticks.pass_by(2)
        with clock.phase(Phase.VALUES):
            ticks.pass_by(4)
        ticks.pass_by(8)
        with clock.phase(Phase.CALLBACKS):
            ticks.pass_by(16)
            assert counted(clock.times()) == {"other": 1, "search": 10, "values": 4, "callbacks": 16}
    assert counted(clock.times()) == {"other": 1, "search": 10, "values": 4, "callbacks": 16}


def test_what_an_interrupt_left_open_is_left(clock: Clock, ticks: Ticks) -> None:
    with clock.phase(Phase.BUILD):
        depth = len(clock.open)
        clock.phase(Phase.SEARCH).__enter__()
        ticks.pass_by(1)
        clock.phase(Phase.VALUES).__enter__()
        ticks.pass_by(2)
        clock.unwind(depth)
        assert len(clock.open) == depth
        ticks.pass_by(4)
    assert counted(clock.times()) == {"search": 1, "values": 2, "build": 4}


def test_the_clock_may_have_been_started_before() -> None:
    clock = Clock(now=lambda: 10.0, started=4.0)
    assert counted(clock.times()) == {"other": 6}


def test_the_table(clock: Clock, ticks: Ticks) -> None:
    for _ in range(3):
        with clock.phase(Phase.VALUES):
            ticks.pass_by(1)
    ticks.pass_by(1)
    assert str(clock.times(earlier=2.5)).splitlines() == [
        "phase              seconds    share     count",
        "values            3.000000   75.0 %         3",
        "other             1.000000   25.0 %",
        "total             4.000000",
        "before            2.500000",
    ]
    assert str(Clock(now=ticks).times()).splitlines()[-1].split() == ["total", "0.000000"]


def test_times_are_a_mapping(clock: Clock, ticks: Ticks) -> None:
    with clock.phase(Phase.QP):
        ticks.pass_by(1)
    ticks.pass_by(3)
    times = clock.times()
    assert dict(times) == {phase.label: times[phase] for phase in Phase} and len(times) == len(Phase)
    assert times["QP"] == times[Phase.QP] == 1 and times.share("QP") == times.share(Phase.QP) == 0.25
    assert times.largest() == [Phase.OTHER, Phase.QP]
    assert "nothing" not in times and "QP" in times
    with pytest.raises(KeyError):
        times["nothing"]
    assert dict(pickle.loads(pickle.dumps(times))) == dict(times)


def test_phases_are_sentences() -> None:
    assert len({phase.label for phase in Phase}) == len(Phase)
    for phase in Phase:
        assert phase.value[0].isupper() and phase.value.endswith(".") and Phase(phase.value) is phase


def solve(name: str, **more: Any) -> Result:
    problem = PUBLISHED[name]()
    return minimize(problem.function, problem.unflatten(problem.start), **more)


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported() -> Iterator[None]:
    solve("B1")
    return


def unaccounted(call: Callable[[], Result]) -> float:
    """The part of a call that the times of its result do not know of; the least of some, for the machine may be busy."""

    def part() -> float:
        began = perf_counter()
        result = call()
        elapsed = perf_counter() - began
        return 1.0 - result.time.total / elapsed

    parts = [part() for _ in range(3)]
    while min(parts) >= 0.01 and len(parts) < 30:
        parts.append(part())
    return min(parts)


def test_the_sum_is_the_time_of_the_call() -> None:
    assert 0 <= unaccounted(lambda: solve("A1")) < 0.01


def test_phases_are_counted() -> None:
    result = solve("A1")
    assert sum(result.time.values()) == pytest.approx(result.time.total)
    assert result.time.counts[Phase.VALUES] == result.costs.values == result.evaluations
    assert result.time.counts[Phase.JACOBIANS] == result.costs.jacobians
    assert result.time.counts[Phase.GRADIENTS] == result.costs.gradients
    assert result.time.counts[Phase.HESSIAN] == result.iterations


@pytest.mark.parametrize(("name", "most"), [("A3", 500), ("C1big", 12)])
def test_little_is_left_to_other(name: str, most: int) -> None:
    """They have null steps, corrections and restorations; the second also has large programs."""
    shares: list[float] = []
    while not shares or (min(shares) >= 0.15 and len(shares) < 10):  # the machine may be busy
        result = solve(name, max_iterations=most)
        assert result.history.null_steps.sum() > 0
        shares.append(result.time.share(Phase.OTHER))
    assert min(shares) < 0.15


def absolute(x: Tensor) -> Tensor:
    return x.abs().sum()


START = torch.tensor([1.0, -2.0], dtype=torch.float64)


def test_callbacks_are_counted() -> None:
    result = minimize(absolute, START, callback=lambda state: sleep(0.02), max_iterations=3)
    assert result.time["callbacks"] >= 0.019 * result.time.counts[Phase.CALLBACKS] > 0


def test_progress_is_counted_with_the_callbacks() -> None:
    result = minimize(absolute, START, progress=True, max_iterations=3)
    assert result.time.counts[Phase.CALLBACKS] == len(result.history) + 2  # it is begun and ended too


def test_slow_functions_are_counted_as_values_also_at_the_end() -> None:
    def slow(x: Tensor) -> tuple[Tensor, Tensor, None]:
        sleep(0.005)
        return (x**2).sum(), 1 + x[0] ** 2, None

    for options in ({}, {"prescaling_threshold": 1e-3}, {"max_iterations": 1}, {"first_fallback": 3, "max_iterations": 3}):
        result = minimize(slow, START, **options)
        assert result.status is not Status.SOLVER_ERROR
        assert result.time["values"] >= 0.0049 * result.time.counts[Phase.VALUES]
        assert result.time.counts[Phase.VALUES] >= result.costs.values


def test_a_module_evaluated_again_is_counted() -> None:
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    result = minimize(lambda model: model(START).abs().sum() + model.weight.abs().sum(), layer)
    assert result.time.counts[Phase.VALUES] == result.costs.values


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_run_that_was_cut_off_is_accounted_for(error: type[BaseException]) -> None:
    def call() -> Result:
        values = iter([absolute] * 4)

        def failing(x: Tensor) -> Tensor:
            sleep(0.01)
            known = next(values, None)
            if known is None:
                raise error("out of paper")
            return known(x)

        result = minimize(failing, START)
        assert result.status is (Status.FUNCTION_ERROR if error is RuntimeError else Status.USER_STOP)
        return result

    assert 0 <= unaccounted(call) < 0.01


def test_a_continued_run_counts_its_own_time(tmp_path: Path) -> None:
    first = minimize(absolute, START, max_iterations=2, callback=lambda state: sleep(0.05))
    first.state.save(tmp_path / "state")
    began = perf_counter()
    second = minimize(absolute, START, state=State.load(tmp_path / "state"))
    assert second.time.total <= perf_counter() - began
    assert second.time.earlier == first.state.seconds >= 0.1
    assert first.time.earlier == 0.0


@pytest.mark.slow
def test_runs_within_runs_have_clocks_of_their_own() -> None:
    def distance(x: Tensor) -> Tensor:
        inner = minimize(lambda y: (y - x.detach()).abs().sum(), START, max_iterations=2)
        return (x - inner.x).abs().sum() + (x**2).sum()

    shares: list[float] = []
    while not shares or (max(shares) <= 0.5 and len(shares) < 5):  # the machine may be busy
        shares.append(minimize(distance, START, max_iterations=2).time.share("values"))
    assert max(shares) > 0.5
