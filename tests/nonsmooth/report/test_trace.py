"""The course of a run as a file."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from black_box import minimize
from nonsmooth import OptionError, ProblemError, Status
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.report.trace import Trace
from problems import PUBLISHED

START = torch.tensor([1.0, -2.0], dtype=torch.float64)


def absolute(x: Tensor) -> Tensor:
    return x.abs().sum()


def events(path: Path, kind: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == kind]


def check_nesting(found: list[dict[str, Any]]) -> None:
    """Each event lies within the one before that has not ended, or begins after that has."""
    stack: list[float] = []
    for event in found:
        first, last = event["ts"], event["ts"] + event["dur"]
        assert event["dur"] >= 0 and event["pid"] == event["tid"] == 1
        while stack and first >= stack[-1] - 1e-6:
            stack.pop()
        assert not stack or last <= stack[-1] + 1e-6, event
        stack.append(last)


def test_the_course_of_a_run(tmp_path: Path) -> None:
    path, problem = tmp_path / "trace.json", PUBLISHED["A3"]()
    result = minimize(problem.function, problem.unflatten(problem.start), profile=path)
    found = events(path)
    check_nesting(found)
    assert found[0]["name"] == "minimize" and found[0]["ts"] == 0.0
    assert found[0]["dur"] == pytest.approx(1e6 * result.time.total, rel=0.05)
    for phase in Phase:
        assert sum(event["name"] == phase.label for event in found) == result.time.counts[phase]
    names = {event["args"]["name"] for event in events(path, "M")}
    assert names == {"nonsmooth", "solver"}


def test_events_have_the_times_of_their_phases(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = minimize(absolute, START, profile=str(path))
    spent = {
        phase.label: sum(event["dur"] for event in events(path) if event["name"] == phase.label) / 1e6
        for phase in (Phase.VALUES, Phase.GRADIENTS, Phase.QP)  # nothing is within these
    }
    assert spent == pytest.approx({label: result.time[label] for label in spent}, abs=1e-6)


def test_iterations_have_figures(tmp_path: Path) -> None:
    path, problem = tmp_path / "trace.json", PUBLISHED["A1"]()
    result = minimize(problem.function, problem.unflatten(problem.start), profile=path)
    found = [event for event in events(path) if event["cat"] == "iteration"]
    assert [event["name"] for event in found] == [f"iteration {number}" for number in range(result.iterations + 1)]
    for event, f, violation, step, evaluations in zip(
        found,
        result.history.f,
        result.history.violation,
        result.history.step,
        result.history.evaluations,
        strict=True,
    ):
        figures = event["args"]
        assert (figures["f"], figures["violation"], figures["step"]) == (f, violation, step)
        assert figures["evaluations"] == evaluations


def test_what_is_not_finite_is_still_json(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.json")
    trace.iteration(1, {"f": float("inf"), "step": float("nan"), "violation": 0.5}, 1.0)
    trace.close(2.0)
    (found,) = (event for event in events(tmp_path / "trace.json") if event["cat"] == "iteration")
    assert found["args"] == {"f": "inf", "step": "nan", "violation": 0.5}


def test_events_beyond_the_limit_are_counted_only(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    now = 0.0
    clock = Clock(now=lambda: now, trace=Trace(path, max_events=4))
    for number in range(5):
        for phase in (Phase.VALUES, Phase.QP):
            with clock.phase(phase):
                now += 1.0
        assert clock.trace is not None
        clock.trace.iteration(number, {"f": 1.0}, now)
    clock.close()
    found = events(path)
    assert [event["name"] for event in found] == ["minimize", "iteration 0", "values", "QP", "values"]
    check_nesting(found)
    (message,) = events(path, "i")
    assert message["name"] == "11 events left out: only 4 are stored" and message["ts"] == 3e6
    assert clock.times()["QP"] == 5.0


def test_nothing_but_sums_is_kept_without_it() -> None:
    result = minimize(absolute, START)
    assert result.time.total > 0
    assert Clock().trace is None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_file_is_written_also_if_the_function_fails(tmp_path: Path, error: type[BaseException]) -> None:
    calls = 0

    def failing(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise error("out of paper")
        return absolute(x)

    path = tmp_path / "trace.json"
    if error is RuntimeError:
        with pytest.raises(RuntimeError, match="out of paper"):
            minimize(failing, START, profile=path, throw=True)
    else:
        assert minimize(failing, START, profile=path).status is Status.USER_STOP
    found = events(path)
    check_nesting(found)
    assert sum(event["name"] == "values" for event in found) >= 5


def test_the_file_is_written_also_if_the_callback_fails(tmp_path: Path) -> None:
    def callback(state: object) -> None:
        raise KeyError("wrong name")

    with pytest.raises(KeyError):
        minimize(absolute, START, callback=callback, profile=tmp_path / "trace.json")
    assert "callbacks" in {event["name"] for event in events(tmp_path / "trace.json")}


def test_the_file_is_written_also_if_the_start_is_bad(tmp_path: Path) -> None:
    with pytest.raises(ProblemError):
        minimize(lambda x: (x - torch.inf).sum(), START, profile=tmp_path / "trace.json")
    assert [event["name"] for event in events(tmp_path / "trace.json")] == ["minimize", "values"]


@pytest.mark.parametrize("path", ["missing/trace.json", ".", "", "a\0b"])
def test_a_bad_path_is_told_before_the_run_begins(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def forbidden(x: Tensor) -> Tensor:
        raise AssertionError("the run has begun")

    with pytest.raises(OptionError, match="profile="):
        minimize(forbidden, START, profile=path)


def test_it_must_be_a_path() -> None:
    with pytest.raises(OptionError, match="must be the path of a file to write, not True"):
        minimize(absolute, START, profile=True)  # type: ignore[arg-type]


def test_an_option_in_error_leaves_an_earlier_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("earlier")
    with pytest.raises(OptionError):
        minimize(absolute, START, profile=path, max_iteration=5)
    assert path.read_text() == "earlier"


def test_a_file_that_cannot_be_written_does_not_cost_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Trace, end: float) -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(Trace, "_entries", full)
    with caplog.at_level(logging.WARNING, logger="nonsmooth"):
        result = minimize(absolute, START, profile=tmp_path / "trace.json")
    assert result.success and "no space left on device" in caplog.text
