"""`time_variants` on real functions and real compilers."""

from __future__ import annotations

import json
from statistics import median

import pytest
import torch

import compile_inspect
from compile_inspect.errors import TargetError
from compile_inspect.records import CacheUse, MeasurementWarning, Timing
from compile_inspect.serialization import from_data, to_data
from compile_inspect.target import Target
from compile_inspect.timing import point_measurement
from compile_inspect.timing.api import measure
from compile_inspect.timing.cold_builds import FreshBuilds, measure_fresh_builds
from compile_inspect.timing.point_measurement import cache_use
from compile_inspect.variants import Compiled, Task


@pytest.fixture(autouse=True)
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SIZE = 256
"""So few numbers that one kernel without vector instructions is several times as fast, too."""


def many(x: torch.Tensor) -> torch.Tensor:
    """Operations that cost little beside their dispatch, so that one fused kernel is several times as fast on any CPU."""
    for _ in range(20):
        x = torch.relu(x * 1.01 + 0.1)
    return x


@pytest.fixture(scope="module")
def timed() -> Timing:
    torch.set_num_threads(1)
    told: list[tuple[str, float]] = []
    found = compile_inspect.time_variants(
        many,
        torch.randn(SIZE),
        variants=["cuda-graph/inductor", "inductor-callable"],
        seconds=0.5,
        progress=lambda what, part: told.append((what, part)),
    )
    parts = [part for _, part in told]
    assert parts == sorted(parts) and parts[0] >= 0.0 and parts[-1] <= 1.0
    assert told[0][0] == "building eager" and any(what.startswith("sampling, round ") for what, _ in told)
    assert told[-1][0] == "building inductor-callable warm, in a separate process"
    return found


def test_eager_is_first_and_every_variant_is_kept(timed: Timing) -> None:
    assert [item.variant for item in timed.points[0].measurements] == [
        "eager",
        "cuda-graph/inductor",
        "inductor-callable",
    ]
    assert (timed.target, timed.device, timed.gradients, timed.threads) == ("many", "cpu", False, 1)
    assert timed.points[0].inputs == (f"float32[{SIZE}] cpu",)


def test_a_refused_variant_has_its_reason_and_nothing_else(timed: Timing) -> None:
    refused = timed.points[0].of("cuda-graph/inductor")
    assert refused is not None
    assert refused.refusal == "CUDA graphs need tensors on a CUDA device"
    assert (refused.samples, refused.summary, refused.build, refused.payback) == ((), None, None, None)


def test_what_is_much_faster_is_seen_to_be(timed: Timing) -> None:
    eager, fast = timed.points[0].of("eager"), timed.points[0].of("inductor-callable")
    assert eager is not None and fast is not None
    assert eager.summary is not None and fast.summary is not None and fast.speedup is not None
    assert fast.speedup.low > 1.2
    assert fast.speedup.low <= fast.speedup.ratio <= fast.speedup.high
    assert timed.points[0].fastest is fast
    assert eager.speedup is None and eager.payback is None


def test_raw_samples_are_kept_one_for_every_round(timed: Timing) -> None:
    ran = [item for item in timed.points[0].measurements if item.summary]
    assert len({len(item.samples) for item in ran}) == 1
    for item in ran:
        assert item.summary is not None
        assert item.summary.count == len(item.samples) >= 5
        assert item.summary.median == median(item.samples)
        assert min(item.samples) > 0
        assert item.warm_up_calls >= 3 and item.first_call_seconds is not None


def test_a_cold_build_pays_back_by_its_gain(timed: Timing) -> None:
    fast = timed.points[0].of("inductor-callable")
    assert fast is not None and fast.payback is not None and fast.build is not None and fast.payback.calls is not None
    assert fast.build.cold_seconds is not None and fast.build.warm_seconds is not None and fast.build.reason == ""
    assert fast.payback.build_seconds == fast.build.cold_seconds > 0 < fast.build.warm_seconds
    assert fast.build.cold_samples == (fast.build.cold_seconds,)
    assert fast.payback.calls == pytest.approx(fast.build.cold_seconds / fast.payback.gain_seconds, abs=1)
    assert fast.build.cache_use in (CacheUse.MISS, CacheUse.HIT)
    eager = timed.points[0].of("eager")
    assert eager is not None and eager.build is not None and eager.build.cache_use is CacheUse.NOT_NEEDED


def test_a_cold_build_takes_longer_than_a_warm_one(timed: Timing) -> None:
    fast = timed.points[0].of("inductor-callable")
    assert fast is not None and fast.build is not None
    cold, warm = fast.build.cold_seconds, fast.build.warm_seconds
    for _ in range(3):  # more than twice as long on an idle machine; other work may make either longer
        assert cold is not None and warm is not None
        if cold > warm:
            return
        again = measure_fresh_builds(Task(many, (torch.randn(SIZE),)), "inductor-callable")
        (cold,), warm = again.cold_seconds, again.warm_seconds
    pytest.fail(f"{cold} s cold, {warm} s warm")


def test_without_a_cold_build_nothing_is_said_of_payback() -> None:
    timing = compile_inspect.time_variants(torch.sin, torch.ones(4), variants=["eager-backend"], seconds=0.01, builds=0)
    compiled = timing.points[0].of("eager-backend")
    assert compiled is not None and compiled.build is not None and compiled.speedup is not None
    assert (compiled.payback, compiled.build.cold_seconds, compiled.build.reason) == (
        None,
        None,
        "no cold builds were requested",
    )
    with pytest.raises(ValueError, match="builds must be 0 or more, not -1"):
        measure(Target(torch.sin, (torch.ones(2),)), builds=-1)


def test_the_payback_of_a_variant_does_not_depend_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the measuring process pays for a build depends on the order; what is told does not rest on it."""
    asked: list[str] = []

    def afresh(task: Task, item: object, **options: object) -> FreshBuilds:
        asked.append(item.name)  # type: ignore[attr-defined]
        return FreshBuilds((7.0, 9.0, 8.0), 2.0)

    monkeypatch.setattr(point_measurement, "measure_fresh_builds", afresh)
    orders = (["eager-backend", "aot_eager"], ["aot_eager", "eager-backend"])
    for order in orders:
        timing = compile_inspect.time_variants(many, torch.randn(64), variants=order, seconds=0.05, builds=3)
        for name in order:
            item = timing.points[0].of(name)
            assert item is not None and item.build is not None and item.payback is not None
            assert item.build.cold_seconds == 8.0 == item.payback.build_seconds and item.build.warm_seconds == 2.0
    assert asked == [*orders[0], *orders[1]]


@pytest.mark.exhaustive
def test_cold_builds_take_as_long_in_any_order() -> None:
    """Within 25 %, as a ratio of medians of CPU time, which other work on the machine changes less than the seconds.

    In the measuring process the second build is many times faster than the first.
    """
    taken: dict[str, list[float]] = {"inductor": [], "inductor-callable": []}
    for order in (["inductor", "inductor-callable"], ["inductor-callable", "inductor"]) * 2:
        timing = compile_inspect.time_variants(many, torch.randn(4096), variants=order, seconds=0.1)
        for name in order:
            item = timing.points[0].of(name)
            assert item is not None and item.build is not None and item.build.cold_seconds is not None, item
            assert item.build.cold_cpu_seconds is not None
            taken[name].append(item.build.cold_cpu_seconds)
    for name, seconds in taken.items():
        first, second = median(seconds[0::2]), median(seconds[1::2])
        assert max(first, second) / min(first, second) < 1.25, (name, seconds)


def interrupting(at: str) -> object:
    """A progress that presses Ctrl-C, once, where what is told holds these words."""
    done = False

    def progress(told: str, part: float) -> None:
        nonlocal done
        if at in told and not done:
            done = True
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    ("at", "sampled", "reason"),
    [
        ("building aot_eager", ["eager", "eager-backend"], "interrupted"),
        ("sampling, round 3", ["eager", "eager-backend", "aot_eager"], "interrupted"),
        ("building eager-backend cold", ["eager", "eager-backend", "aot_eager"], "interrupted"),
    ],
)
def test_an_interrupt_keeps_what_is_there(at: str, sampled: list[str], reason: str) -> None:
    timing = compile_inspect.time_variants(
        many,
        torch.randn(64),
        variants=["eager-backend", "aot_eager"],
        seconds=0.05,
        progress=interrupting(at),
        sweep={"batch": [64, 32]},
    )
    assert timing.interrupted_during == f"batch 64: {at.removesuffix(', round 3')}" and len(timing.points) == 1
    measured = timing.points[0].measurements
    assert [item.variant for item in measured if item.summary] == sampled
    assert [item.refusal for item in measured if not item.summary] == ["interrupted before it was built"] * (3 - len(sampled))
    assert len({len(item.samples) for item in measured if item.summary}) == 1
    assert all(item.build is not None and item.build.reason == reason for item in measured[1:] if item.summary)


def test_an_interrupt_before_anything_was_measured_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        compile_inspect.time_variants(many, torch.ones(2), variants=[], seconds=0.01, progress=interrupting("building eager"))


def test_memory_is_told(timed: Timing) -> None:
    eager, fast = timed.points[0].of("eager"), timed.points[0].of("inductor-callable")
    assert eager is not None and eager.memory is not None and eager.memory.peak_bytes is not None
    assert fast is not None and fast.memory is not None and fast.memory.peak_bytes is not None
    assert eager.memory.peak_bytes >= 2 * 4 * SIZE
    assert 4 * SIZE <= fast.memory.peak_bytes < eager.memory.peak_bytes


def test_a_timing_goes_through_json(timed: Timing) -> None:
    assert from_data(Timing, json.loads(json.dumps(to_data(timed)))) == timed


@pytest.mark.slow
def test_gradients_and_sizes() -> None:
    model = torch.nn.Linear(4, 4)
    seen: list[tuple[int, bool]] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        seen.append((len(x), torch.is_grad_enabled()))
        return model(x).square().sum()

    timing = compile_inspect.time_variants(
        forward,
        torch.randn(2, 4),
        variants=[Compiled("aot_eager")],
        gradients=True,
        seconds=0.05,
        sweep={"batch": [3, 5]},
        builds=0,
    )
    assert timing.gradients
    assert [dict(point.sizes) for point in timing.points] == [{"batch": 3}, {"batch": 5}]
    assert [point.inputs for point in timing.points] == [("float32[3, 4] cpu",), ("float32[5, 4] cpu",)]
    assert {size for size, _ in seen} == {3, 5} and all(grad for _, grad in seen)
    for point in timing.points:
        compiled = point.of("aot_eager")
        # A second size is a build of its own, with fixed sizes, not a recompilation with symbolic ones.
        assert (
            compiled is not None and compiled.summary is not None and MeasurementWarning.RECOMPILATION not in compiled.warnings
        )
    assert model.weight.grad is None


def test_without_gradients_nothing_is_kept_for_a_backward() -> None:
    modes = set()

    def forward(x: torch.Tensor) -> torch.Tensor:
        modes.add(torch.is_grad_enabled())
        return x * 2

    compile_inspect.time_variants(forward, torch.ones(2), variants=["eager"], seconds=0.01)
    assert modes == {False}
    assert torch.is_grad_enabled()


def test_a_function_that_fails_is_a_refusal_at_every_size_it_fails_at() -> None:
    weight = torch.ones(4)
    timing = compile_inspect.time_variants(
        lambda x: x * weight, torch.ones(4), variants=[], seconds=0.01, sweep={"batch": [4, 3]}
    )
    good, bad = (point.measurements[0] for point in timing.points)
    assert good.summary is not None
    assert bad.refusal.startswith("RuntimeError: The size of tensor a (3) must match the size of tensor b (4)")


def test_a_function_that_fails_later_is_a_refusal_too() -> None:
    calls = 0

    def fails_later(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("enough")
        return x

    timing = compile_inspect.time_variants(fails_later, torch.ones(2), variants=[], seconds=0.01)
    assert timing.points[0].measurements[0].refusal == "RuntimeError: enough"


def test_a_target_has_its_own_inputs() -> None:
    target = Target(torch.sin, (torch.ones(3),), further=(((torch.ones(5),), {}),))
    timing = compile_inspect.time_variants(target, variants=["eager"], seconds=0.01, sweep="further")
    assert [point.inputs for point in timing.points] == [("float32[3] cpu",), ("float32[5] cpu",)]
    with pytest.raises(TargetError, match="has its own inputs"):
        compile_inspect.time_variants(target, torch.ones(2))


def test_mistakes_are_explained() -> None:
    with pytest.raises(TargetError, match="'inductr' is not a variant"):
        compile_inspect.time_variants(torch.sin, torch.ones(2), variants=["inductr"])
    with pytest.raises(TargetError, match="'inductr' is not a variant"):
        compile_inspect.time_variants(torch.sin, torch.ones(2), variants="eager,inductr")
    with pytest.raises(ValueError, match="seconds must be more than 0, not 0"):
        measure(Target(torch.sin, (torch.ones(2),)), seconds=0)


def test_a_variant_given_twice_is_timed_once() -> None:
    timing = compile_inspect.time_variants(torch.sin, torch.ones(2), variants=["eager", "eager"], seconds=0.01)
    assert [item.variant for item in timing.points[0].measurements] == ["eager"]
    assert Task.of(Target(torch.sin, (torch.ones(2),))).device == "cpu"


@pytest.mark.parametrize(
    ("grown", "expected"),
    [
        ({}, CacheUse.UNKNOWN),
        ({"inductor.fxgraph_cache_miss": 1}, CacheUse.MISS),
        ({"inductor.fxgraph_cache_bypass": 1}, CacheUse.MISS),
        ({"aot_autograd.autograd_cache_hit": 1}, CacheUse.HIT),
        ({"inductor.fxgraph_cache_hit": 1, "inductor.fxgraph_cache_miss": 1}, CacheUse.PARTIAL_HIT),
    ],
)
def test_what_the_counters_say_about_caches(grown: dict[str, int], expected: CacheUse) -> None:
    before = {"inductor.fxgraph_cache_hit": 3, "inductor.fxgraph_cache_miss": 4}
    after = {name: before.get(name, 0) + grown.get(name, 0) for name in {*before, *grown}}
    assert cache_use(before, after) is expected


@pytest.mark.gpu
def test_on_a_gpu_every_default_variant_is_timed_or_says_why_not() -> None:
    timing = compile_inspect.time_variants(many, torch.randn(4096, device="cuda"), seconds=1.0)
    ran = {item.variant: item for item in timing.points[0].measurements if item.summary}
    assert {"eager", "inductor", "cuda-graph/eager", "cuda-graph/inductor"} <= set(ran)
    for item in ran.values():
        assert len(item.device_samples) == len(item.samples)
        assert item.memory is not None and item.memory.peak_bytes is not None
    graph = ran["cuda-graph/inductor"]
    assert graph.speedup is not None and graph.speedup.low > 3
    assert timing.device == "cuda" and "NVIDIA" in timing.hardware
