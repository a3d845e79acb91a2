"""The calls before the samples, with a clock and counters of our own."""

from __future__ import annotations

from collections.abc import Sequence

from compile_inspect.timing.warm_up import WarmUp, warm_up


def run(durations: Sequence[float], compiled: Sequence[int] = ()) -> WarmUp:
    """Warm up a call that takes these durations, the last for ever, and compiles at the calls named (counted from 1)."""
    now, calls, counted = 0.0, 0, 0

    def call() -> None:
        nonlocal now, calls, counted
        now += durations[min(calls, len(durations) - 1)]
        calls += 1
        counted += calls in compiled

    return warm_up(call, clock=lambda: now, counts=lambda: counted)


def test_steady_calls_need_six() -> None:
    assert run([0.01]) == WarmUp(first_seconds=0.01, calls=6, settled=True, compiled=False)


def test_it_goes_on_until_the_times_have_settled() -> None:
    found = run([0.5, 0.25, 0.12, 0.06, 0.03, 0.02, 0.01, 0.005])
    assert found.first_seconds == 0.5
    assert found.settled
    assert found.calls == 12  # two of the three calls before the last three took as long


def test_a_late_compilation_starts_the_count_again() -> None:
    assert run([0.01], compiled=[5]) == WarmUp(0.01, 11, settled=True, compiled=True)


def test_it_gives_up_on_calls_that_never_settle() -> None:
    found = run([1e-6 * 1.2**number for number in range(80)])
    assert (found.calls, found.settled) == (60, False)


def test_long_calls_are_made_three_times() -> None:
    assert run([10.0]) == WarmUp(10.0, 3, settled=False, compiled=False)
