"""Warnings about the machine and about the samples."""

from __future__ import annotations

from random import Random

import pytest

from compile_inspect.records.timing import MeasurementWarning
from compile_inspect.timing import measurement_warnings
from compile_inspect.timing.measurement_warnings import Conditions, has_drift, warnings_about, warnings_between
from compile_inspect.timing.noise import summarize
from compile_inspect.timing.warm_up import WarmUp

SETTLED = WarmUp(1.0, 6, settled=True, compiled=False)


def warnings(samples: list[float], warm: WarmUp = SETTLED) -> tuple[MeasurementWarning, ...]:
    return warnings_about(tuple(samples), summarize(samples), warm)


def steady(count: int, scatter: float = 0.01, seed: int = 0) -> list[float]:
    random = Random(seed)
    return [random.uniform(1 - scatter, 1 + scatter) for _ in range(count)]


def test_steady_samples_raise_no_doubt() -> None:
    assert warnings(steady(100)) == ()


def test_each_doubt_has_its_cause() -> None:
    assert warnings(steady(100), WarmUp(5.1, 6, True, False)) == (MeasurementWarning.SLOW_FIRST_CALL,)
    assert warnings(steady(100), WarmUp(1.0, 60, False, False)) == (MeasurementWarning.UNFINISHED_WARM_UP,)
    assert warnings(steady(100, 0.2)) == (MeasurementWarning.NOISE,)
    assert warnings([*steady(93), *[2.0] * 7][::-1]) == (MeasurementWarning.OUTLIERS,)
    assert warnings([value * (1 + 0.002 * index) for index, value in enumerate(steady(100))]) == (MeasurementWarning.DRIFT,)
    assert warnings(steady(9)) == (MeasurementWarning.FEW_SAMPLES,)


def test_drift_is_seen_in_both_directions_and_not_in_noise() -> None:
    assert has_drift(tuple([1.0] * 20 + [1.2] * 20))
    assert has_drift(tuple([1.2] * 20 + [1.0] * 20))
    assert not any(has_drift(tuple(steady(60, 0.3, seed))) for seed in range(50))
    assert not has_drift((1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("others", "frequency", "expected"),
    [
        (3.9, 3.0e9, ()),
        (4.1, 3.0e9, (MeasurementWarning.CPU_CONTENTION,)),
        (0.0, 3.2e9, ()),
        (0.0, 3.4e9, (MeasurementWarning.FREQUENCY_CHANGE,)),
        (0.0, 2.6e9, (MeasurementWarning.FREQUENCY_CHANGE,)),
        (9.0, None, (MeasurementWarning.CPU_CONTENTION,)),
    ],
)
def test_other_processes_and_frequency(
    others: float, frequency: float | None, expected: tuple[MeasurementWarning, ...]
) -> None:
    before = Conditions(0.0, 1000.0, 50.0, 3.0e9)
    after = Conditions(10.0, 1000.0 + others + 9.5, 59.5, frequency)
    assert warnings_between(before, after, processors=2) == expected


def test_what_is_not_told_raises_no_doubt() -> None:
    assert warnings_between(Conditions(0.0, None, 0.0, None), Conditions(9.0, None, 0.0, None), 2) == ()


def test_the_machine_is_read(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 10 40 9000 5 1 2 3 0 0\ncpu0 1 2\n")
    for number, kilohertz in ((0, 3_000_000), (1, 2_000_000)):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{kilohertz}\n")
    monkeypatch.setattr(measurement_warnings, "_PROC_STAT", stat)
    monkeypatch.setattr(measurement_warnings, "_FREQUENCIES", tmp_path)
    monkeypatch.setattr(measurement_warnings.os, "sysconf", lambda name: 100)
    now = Conditions.now()
    assert now.all_seconds == pytest.approx(1.56)  # everything but idle and waiting
    assert now.frequency == 2.5e9
    monkeypatch.setattr(measurement_warnings, "_PROC_STAT", tmp_path / "missing")
    monkeypatch.setattr(measurement_warnings, "_FREQUENCIES", tmp_path / "missing")
    assert (Conditions.now().all_seconds, Conditions.now().frequency) == (None, None)
