"""Page faults are counted where they happen, and a call that lives of them is doubted."""

from __future__ import annotations

import mmap

import pytest

from compile_inspect.records.timing import MeasurementWarning
from compile_inspect.timing.measurement_warnings import warnings_about
from compile_inspect.timing.noise import summarize
from compile_inspect.timing.page_faults import page_faults, seconds_for, seconds_per_fault
from compile_inspect.timing.payback import predict_payback
from compile_inspect.timing.sampling import sample_rounds
from compile_inspect.timing.warm_up import WarmUp

pytest.importorskip("resource")

PAGES = 200
KEPT = bytearray(PAGES * mmap.PAGESIZE)
STEPS = range(0, PAGES * mmap.PAGESIZE, mmap.PAGESIZE)


def fetch() -> None:
    """Write to every page of memory that the system has just given."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        for place in STEPS:
            memory[place] = 1


def reuse() -> None:
    for place in STEPS:
        KEPT[place] = 1


def test_pages_that_a_call_fetches_are_counted() -> None:
    before = page_faults()
    fetch()
    assert page_faults() - before >= PAGES
    sampled = sample_rounds({"fetch": fetch, "reuse": reuse}, device="cpu", seconds=0, rounds=10)
    assert PAGES <= sampled.faults["fetch"] < 1.5 * PAGES
    assert sampled.faults["reuse"] < 0.1 * PAGES


def test_short_calls_count_each() -> None:
    calls = 0

    def one() -> None:
        nonlocal calls
        calls += 1
        with mmap.mmap(-1, mmap.PAGESIZE) as memory:
            memory[0] = 1

    def clock() -> float:
        return 10e-6 * calls  # a call is short on any machine

    sampled = sample_rounds({"one": one}, device="cpu", seconds=0, rounds=10, clock=clock)
    assert sampled.batches["one"] > 1 and 1 <= sampled.faults["one"] < 2


def test_a_call_that_spends_a_tenth_on_them_is_doubted() -> None:
    cost = seconds_for(1)
    for _ in range(20):  # 0 where a busy machine let nothing be learnt
        if cost > 0:
            break
        seconds_per_fault.cache_clear()
        cost = seconds_for(1)
    assert 1e-9 < cost < 1e-2  # that of a large page where the system gives such
    for share, expected in ((0.2, (MeasurementWarning.PAGE_FAULTS,)), (0.05, ())):
        samples = (1000 * cost / share,) * 20
        warm = WarmUp(samples[0], 6, settled=True, compiled=False)
        assert warnings_about(samples, summarize(samples), warm, faults=1000.0) == expected
        assert warnings_about(samples, summarize(samples), warm, faults=10.0) == ()


def test_a_gain_that_pages_make_may_pass() -> None:
    sampled = sample_rounds({"fetch": fetch, "reuse": reuse}, device="cpu", seconds=0, rounds=10)
    passing = sampled.temporary_gain("fetch", "reuse")
    assert passing == pytest.approx(seconds_for(PAGES), rel=0.6)
    assert sampled.temporary_gain("reuse", "fetch") == 0.0
    lasting = predict_payback(10.0, [0.003] * 50, [0.001] * 50, temporary_gain=0.0005)
    assert (lasting.calls, lasting.low, lasting.high, lasting.is_unclear) == (5000, 5000, 6667, False)
    assert predict_payback(10.0, [0.003] * 50, [0.001] * 50, temporary_gain=0.0015).is_unclear
    assert predict_payback(10.0, [0.003] * 50, [0.001] * 50, temporary_gain=0.0025).high is None
