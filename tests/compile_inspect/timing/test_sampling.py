"""Rounds of samples, with a clock that only moves when a call says so."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from compile_inspect.timing.sampling import interleave, sample_rounds


class FakeClock:
    """Time that passes by what calls take, and by a tick for reading it."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def call(self, seconds: float, log: list[str] | None = None, name: str = "") -> Callable[[], None]:
        def call() -> None:
            self.now += seconds
            if log is not None:
                log.append(name)

        return call


def test_every_round_calls_each_once_in_changing_order() -> None:
    clock, log = FakeClock(), []
    calls = {name: clock.call(0.01, log, name) for name in "abc"}
    samples = interleave(calls, device="cpu", seconds=9.0, rounds=20, clock=clock)
    assert {name: len(found) for name, found in samples.items()} == {"a": 20, "b": 20, "c": 20}
    in_rounds = log[-60:]
    orders = [tuple(in_rounds[start : start + 3]) for start in range(0, 60, 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    assert len(set(orders)) >= 5
    assert {order[0] for order in orders} == {"a", "b", "c"}


def test_samples_are_the_seconds_of_one_call() -> None:
    clock = FakeClock()
    calls = {"slow": clock.call(0.02), "quick": clock.call(0.000002)}
    found = sample_rounds(calls, device="cpu", seconds=0.5, clock=clock)
    assert found.wall["slow"] == pytest.approx([0.02] * len(found.wall["slow"]))
    assert found.wall["quick"] == pytest.approx([0.000002] * len(found.wall["quick"]))
    assert found.batches == {"slow": 1, "quick": 150}
    assert found.device == {}


def test_batches_drown_the_cost_of_the_clock() -> None:
    clock = FakeClock(tick=1e-6)
    samples = interleave({"quick": clock.call(1e-6)}, device="cpu", seconds=0.0, clock=clock)
    assert samples["quick"] == pytest.approx([1e-6] * 5, rel=0.03)


def test_a_call_of_no_time_ends_with_the_largest_batch() -> None:
    clock = FakeClock()
    found = sample_rounds({"nothing": lambda: None}, device="cpu", seconds=0.0, clock=clock)
    assert found.batches == {"nothing": 10_000}
    assert found.wall["nothing"] == (0.0,) * 5


def test_it_ends_when_the_time_is_used_but_not_before_five_rounds() -> None:
    clock = FakeClock()
    assert len(interleave({"a": clock.call(0.01)}, device="cpu", seconds=0.095, clock=clock)["a"]) == 10
    assert len(interleave({"a": clock.call(100.0)}, device="cpu", seconds=0.1, clock=clock)["a"]) == 5
    assert len(interleave({"a": clock.call(100.0)}, device="cpu", seconds=0.1, rounds=2, clock=clock)["a"]) == 2


def test_rounds_are_reported_and_garbage_is_left_alone() -> None:
    clock, seen = FakeClock(), []
    assert gc.isenabled()
    interleave(
        {"a": clock.call(0.1)}, device="cpu", seconds=0, on_round=lambda n: seen.append((n, gc.isenabled())), clock=clock
    )
    assert seen == [(number, False) for number in range(1, 6)]
    assert gc.isenabled()


def test_garbage_collection_comes_back_after_an_error_and_stays_off_where_it_was_off() -> None:
    calls = 0

    def fails() -> None:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        interleave({"a": fails}, device="cpu", seconds=10, clock=FakeClock(tick=1e-3))
    assert gc.isenabled()
    gc.disable()
    try:
        interleave({"a": lambda: None}, device="cpu", seconds=0)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_nothing_to_call() -> None:
    assert interleave({}, device="cpu", seconds=1.0) == {}


@pytest.mark.gpu
def test_on_a_gpu_the_wait_counts_and_device_events_are_kept() -> None:
    import torch

    x = torch.randn(4096, 4096, device="cuda")
    found = sample_rounds({"mm": lambda: x @ x, "add": lambda: x[0] + 1}, device="cuda", seconds=0.2)
    assert len(found.device["mm"]) == len(found.wall["mm"]) >= 5
    assert min(found.wall["mm"]) > 0.5 * min(found.device["mm"]) > 1e-5
    assert sorted(found.wall["mm"])[2] > sorted(found.wall["add"])[2]
