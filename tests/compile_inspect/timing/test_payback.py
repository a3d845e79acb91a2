"""When a build pays back, predicted from few samples and really observed."""

from __future__ import annotations

import math
from random import Random

import pytest

from compile_inspect.timing.payback import predict_payback, trimmed_mean


def crossing(build: float, random: Random, eager: float, variant: float, noise: float) -> int:
    """Call both until the summed times cross."""
    gained, calls = 0.0, 0
    while gained < build:
        gained += eager * random.lognormvariate(0, noise) - variant * random.lognormvariate(0, noise)
        calls += 1
    return calls


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("eager", "variant"), [(1.2e-3, 0.5e-3), (8.5e-3, 1.8e-3), (2.0e-3, 1.2e-3)])
def test_fifty_calls_predict_the_crossing(seed: int, eager: float, variant: float) -> None:
    random = Random(seed)
    first = [[seconds * random.lognormvariate(0, 0.1) for _ in range(50)] for seconds in (eager, variant)]
    found = predict_payback(3.0, *first)
    observed = crossing(3.0, random, eager, variant, 0.1)
    assert found.calls == pytest.approx(observed, rel=0.25)
    assert found.low is not None and found.high is not None and found.calls is not None
    assert found.low < found.calls < found.high
    assert found.gain_seconds == pytest.approx(eager - variant, rel=0.15)


def test_the_interval_holds_the_truth_nine_times_in_ten() -> None:
    random, held = Random(0), 0
    for _ in range(200):
        first = [[seconds + random.gauss(0, 2e-4) for _ in range(50)] for seconds in (1.2e-3, 0.7e-3)]
        found = predict_payback(5.0, *first)
        held += (found.low or 0) <= 10_000 <= (found.high or math.inf)
    assert held >= 180


def test_one_interruption_changes_little() -> None:
    eager, variant = [0.002] * 50, [0.001] * 50
    variant[7] = 1.0
    assert predict_payback(1.0, eager, variant).calls == 1000


def test_a_machine_that_slows_down_for_a_while_widens_the_interval() -> None:
    random = Random(5)
    steady = [2e-3 + random.gauss(0, 1e-5) for _ in range(200)]
    bursts = [(4e-3 if index // 20 % 3 == 0 else 2e-3) + random.gauss(0, 1e-5) for index in range(200)]
    quiet, busy = (predict_payback(1.0, samples, [1e-3] * 200) for samples in (steady, bursts))
    assert quiet.high is not None and quiet.low is not None and busy.low is not None
    assert (busy.high or math.inf) - busy.low > 10 * (quiet.high - quiet.low)


def test_what_is_slower_never_pays_back() -> None:
    found = predict_payback(3.0, [0.001] * 50, [0.002] * 50)
    assert (found.never_pays, found.calls, found.low, found.high) == (True, None, None, None)
    assert found.gain_seconds == pytest.approx(-0.001)


def test_what_may_be_either_says_so() -> None:
    random = Random(6)
    eager = [1e-3 * random.lognormvariate(0, 0.3) for _ in range(50)]
    variant = [1e-3 * random.lognormvariate(0, 0.3) for _ in range(50)]
    found = predict_payback(3.0, eager, variant)
    assert found.low is not None and found.high is None


def test_no_build_pays_at_once_and_one_sample_knows_little() -> None:
    assert predict_payback(0.0, [2.0] * 5, [1.0] * 5).calls == 0
    one = predict_payback(6.0, [2.0], [1.0])
    assert (one.calls, one.low, one.high) == (6, 0, None)


def test_a_trimmed_mean_of_a_normal_distribution() -> None:
    random = Random(7)
    held = 0
    for _ in range(300):
        mean, uncertainty = trimmed_mean([random.gauss(5.0, 1.0) for _ in range(60)])
        held += abs(mean - 5.0) <= uncertainty
    assert 270 <= held <= 297


@pytest.mark.parametrize(
    ("build", "eager", "variant", "message"),
    [
        (-1.0, [1.0], [1.0], "not -1.0"),
        (math.nan, [1.0], [1.0], "not nan"),
        (1.0, [1.0], [1.0, 2.0], "there are 1 and 2"),
        (1.0, [], [], "no samples"),
    ],
)
def test_mistakes_are_explained(build: float, eager: list[float], variant: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict_payback(build, eager, variant)
