"""What samples say, against distributions whose answers are known."""

from __future__ import annotations

from random import Random
from statistics import stdev

import pytest

from compile_inspect.timing.noise import faster, median_interval, outliers, ratio, summarize


def test_a_summary_has_the_numbers_of_the_samples() -> None:
    samples = [3.0, 1.0, 2.0, 5.0, 4.0]
    summary = summarize(samples)
    assert (summary.count, summary.median, summary.mean) == (5, 3.0, 3.0)
    assert summary.deviation == pytest.approx(stdev(samples))
    assert (summary.low, summary.high) == (1.0, 5.0)  # five samples bear no 95 % interval: their range is shown
    assert summarize([2.0]).deviation == 0.0
    with pytest.raises(ValueError, match="no samples"):
        summarize([])


# Ranks from tables of the binomial distribution (Conover, Practical Nonparametric Statistics), counted from 0.
@pytest.mark.parametrize(("count", "below"), [(6, 0), (8, 0), (9, 1), (20, 5), (50, 17), (100, 39), (1000, 468), (1001, 468)])
def test_the_interval_is_that_of_the_binomial_distribution(count: int, below: int) -> None:
    assert median_interval(list(range(count))) == (below, count - 1 - below)


@pytest.mark.parametrize("count", [9, 30, 200, 1500])
@pytest.mark.parametrize("distribution", ["lognormal", "exponential"])
def test_the_interval_holds_the_true_median_at_least_95_times_in_100(count: int, distribution: str) -> None:
    random = Random(count)
    draw = (lambda: random.lognormvariate(0, 1)) if distribution == "lognormal" else (lambda: random.expovariate(1.0))
    true = 1.0 if distribution == "lognormal" else 0.6931
    runs = 400
    held = sum(low <= true <= high for low, high in (median_interval([draw() for _ in range(count)]) for _ in range(runs)))
    # Four standard deviations of the binomial count below 95 %; not above 99.9 %, which would be a useless interval.
    assert 0.95 * runs - 4 * (runs * 0.95 * 0.05) ** 0.5 <= held <= 0.999 * runs


def test_outliers_are_named_with_their_place() -> None:
    random = Random(1)
    samples = [random.gauss(1.0, 0.01) for _ in range(200)]
    samples[17], samples[90] = 1.5, 0.2
    found = {item.position: item for item in outliers(samples)}
    assert {17, 90} <= set(found) and len(found) <= 5
    assert found[17].seconds == 1.5
    assert found[17].deviations == pytest.approx(50, rel=0.3)


def test_equal_samples_have_no_outliers() -> None:
    assert outliers([1.0] * 10 + [2.0] * 4) == ()


def test_ratios_are_paired_over_rounds() -> None:
    random = Random(2)
    speed_of_round = [random.choice([1.0, 3.0]) for _ in range(100)]  # the machine slows down threefold, now and then
    first = [0.90 * speed * random.gauss(1, 0.01) for speed in speed_of_round]
    second = [1.00 * speed * random.gauss(1, 0.01) for speed in speed_of_round]
    found = ratio(first, second)
    assert found.low < 1 / 0.9 < found.high
    assert found.high - found.low < 0.02
    assert faster(first, second) and not faster(second, first)
    assert faster(first, second, by=0.05) and not faster(first, second, by=0.2)


def test_what_is_the_same_is_seldom_called_faster() -> None:
    random = Random(3)
    wrong = 0
    for _ in range(400):
        first, second = ([random.lognormvariate(0, 0.2) for _ in range(40)] for _ in range(2))
        wrong += faster(first, second)
    assert wrong <= 20  # 2.5 % are expected at most


def test_a_burst_of_other_work_makes_nothing_faster() -> None:
    """All of the difference comes from the first half of the rounds."""
    random = Random(4)
    noise = [random.gauss(0, 0.001) for _ in range(100)]
    first = [1.0 + item for item in noise]
    second = [1.2] * 60 + [0.9] * 40
    assert not faster(first, second)


def test_too_few_rounds_prove_nothing() -> None:
    assert not faster([1.0] * 4, [9.0] * 4)
    assert faster([1.0] * 5, [9.0] * 5)
    assert not faster([1.0] * 9, [1.0] * 9)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ValueError, match="there are 1 and 2 of them"):
        faster([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"from 0 to 1, not 1\.5"):
        faster([1.0], [1.0], by=1.5)
