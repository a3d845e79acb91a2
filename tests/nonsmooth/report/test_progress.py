"""What is shown of a run while it happens."""

from __future__ import annotations

import io
import os
import re
import select
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from black_box import minimize
from nonsmooth import Options, State
from nonsmooth.report.progress import HEADINGS, Progress, line, row


def rosenbrock(x: Tensor) -> tuple[Tensor, Tensor, None]:
    value = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    return value, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None


START = torch.tensor([0.3, -0.7], dtype=torch.float64)


def run_shown(progress: Progress, *, iterations: int = 6, tick: Callable[[], object] = lambda: None) -> None:
    def callback(state: State) -> bool:
        tick()
        return progress(state)

    with progress:
        minimize(rosenbrock, START, max_iterations=iterations, callback=callback)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """Text that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def capable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_rows_hold_what_the_state_says() -> None:
    seen: list[tuple[tuple[str, ...], float, float, int]] = []
    minimize(
        rosenbrock,
        START,
        max_iterations=3,
        callback=lambda state: seen.append((row(state), state.f, state.violation, state.evaluations)),
    )
    assert [cells[0] for cells, *_ in seen] == ["0", "1", "2", "3"]
    assert seen[0][0][5] == "-"  # no step led to the start
    for cells, f, violation, evaluations in seen:
        assert len(cells) == len(HEADINGS)
        assert float(cells[1]) == pytest.approx(f, rel=1e-7)
        assert float(cells[2]) == pytest.approx(violation, rel=1e-2)
        assert int(cells[6]) == evaluations


def test_a_fallback_is_mentioned_only_where_there_was_one() -> None:
    cells = ("3", "0.25", "0.00e+00", "1", "1.00e-03", "5.0e-01", "7", "-")
    assert "fallback" not in line(cells)
    assert line((*cells[:-1], "2")).endswith("evaluations 7  fallback 2")


def test_without_a_terminal_lines_are_written_at_most_once_a_second() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(Options(), stream=stream, clock=clock)

    def tick() -> None:
        clock.now += 0.4

    run_shown(progress, tick=tick)  # seven calls at 100.4, 100.8, ... 102.8
    lines = stream.getvalue().splitlines()
    assert [int(text.split()[1]) for text in lines] == [0, 3, 6]
    assert lines[0].startswith("iteration 0  objective 6.81  violation 0.00e+00  mu 1  stationarity ")
    assert "step" not in lines[0] and "step" in lines[1]


def test_the_last_iteration_is_always_written() -> None:
    stream = io.StringIO()
    run_shown(Progress(Options(), stream=stream, clock=Clock()))
    assert [text.split()[1] for text in stream.getvalue().splitlines()] == ["0", "6"]


def test_nothing_is_written_twice_or_without_iterations() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress(Options(), stream=stream, clock=clock):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("verdict", [None, False, True])
def test_the_verdict_of_the_callback_is_passed_on(verdict: bool | None) -> None:
    calls: list[int] = []

    def callback(state: State) -> bool | None:
        calls.append(state.iteration)
        return verdict

    result = minimize(rosenbrock, START, max_iterations=3, progress=True, callback=callback)
    assert calls == ([0] if verdict else [0, 1, 2, 3])
    assert result.status.name == ("USER_STOP" if verdict else "ITERATION_LIMIT")


def test_minimize_shows_progress_on_stderr_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown = minimize(rosenbrock, START, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("iteration 0  objective 6.81")
    assert f"\niteration {shown.iterations}  objective 0.085786" in err
    quiet = minimize(rosenbrock, START)
    assert capsys.readouterr() == ("", "")
    assert quiet.f == shown.f


def test_a_terminal_gets_a_table_and_bars(capable_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    stream = Terminal()
    run_shown(Progress(Options(max_iterations=50, max_seconds=900), stream=stream), iterations=14)
    text = plain(stream.getvalue())
    last = text[text.rindex("iteration ") :].splitlines()
    assert last[0].split() == list(HEADINGS)
    assert [int(text.split()[0]) for text in last[1:11]] == list(range(5, 15))
    assert last[11].startswith("iterations") and last[11].endswith("14 of 50")
    assert last[12].startswith("seconds") and "of 900" in last[12]
    assert all(len(text) <= 80 for text in last)
    assert capsys.readouterr() == ("", "")


def test_what_the_callback_prints_stays_on_stdout(capable_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    stream = Terminal()
    with Progress(Options(), lambda state: print("seen", state.iteration), stream=stream) as progress:
        minimize(rosenbrock, START, max_iterations=2, callback=progress)
    assert capsys.readouterr().out == "seen 0\nseen 1\nseen 2\n"
    assert "seen" not in stream.getvalue()


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    run_shown(Progress(Options(), stream=stream, clock=Clock()))
    assert len(stream.getvalue().splitlines()) == 2
    assert "\x1b" not in stream.getvalue()


def test_a_missing_or_closed_stream_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert minimize(rosenbrock, START, progress=True, max_iterations=2).iterations == 2
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert minimize(rosenbrock, START, progress=True, max_iterations=2).iterations == 2


def test_a_terminal_that_fails_halfway_is_given_up(capable_terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    progress = Progress(Options(), stream=stream, clock=Clock())

    def fail() -> None:
        raise RuntimeError("no such terminal")

    monkeypatch.setattr(progress, "_frame", fail)
    run_shown(progress)
    lines = [text for text in plain(stream.getvalue()).splitlines() if text.strip()]
    assert [text.split()[1] for text in lines] == ["0", "6"]


def test_without_rich_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.live", None)
    stream = Terminal()
    run_shown(Progress(Options(), stream=stream, clock=Clock()))
    assert stream.getvalue().startswith("iteration 0  objective 6.81")


@pytest.fixture
def pseudo_terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    reader, writer = pty.openpty()
    stream = os.fdopen(writer, "w")
    yield reader, stream
    stream.close()
    os.close(reader)


def everything(reader: int) -> str:
    """What was written to the terminal: one read may give a part of it only."""
    parts = []
    while select.select([reader], [], [], 0.5)[0]:
        parts.append(os.read(reader, 100_000))
    return b"".join(parts).decode()


def test_a_real_terminal(capable_terminal: None, pseudo_terminal: tuple[int, io.TextIOWrapper]) -> None:
    reader, stream = pseudo_terminal
    run_shown(Progress(Options(), stream=stream), iterations=3)
    stream.flush()
    text = everything(reader)
    assert "stationarity" in text and "of 1000" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor was hidden and is back


def test_an_error_of_the_callback_leaves_the_terminal_in_order(capable_terminal: None) -> None:
    stream = Terminal()

    def callback(state: State) -> None:
        raise LookupError("of the user")

    with pytest.raises(LookupError), Progress(Options(), callback, stream=stream) as progress:
        minimize(rosenbrock, START, callback=progress)
    assert stream.getvalue().count("\x1b[?25h") == 1
