"""The sentence at the end: what it says follows from what was measured, and from nothing else."""

from __future__ import annotations

import pytest

from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Build, Doubt, Measurement, Payback, Speed, Summary, Timing, TimingPoint
from compile_inspect.reporters.conclusions import choose, conclude_agreement, conclude_timing


def measured(
    name: str,
    median: float,
    speed: tuple[float, float, float] | None = None,
    *,
    payback: Payback | None = None,
    cold: float | None = None,
    noise: float = 0.02,
    doubts: tuple[Doubt, ...] = (),
    assumes: tuple[str, ...] = (),
) -> Measurement:
    summary = Summary(50, median, median * (1 - noise), median * (1 + noise), median, median * noise)
    return Measurement(
        name,
        summary=summary,
        speed=None if speed is None else Speed(*speed),
        payback=payback,
        build=Build(1.0, cold_seconds=cold),
        doubts=doubts,
        assumes=assumes,
    )


EAGER = measured("eager", 1e-3)
PAYS = Payback(5000, 4800, 5300)


def timed(*items: Measurement, **sizes: int) -> TimingPoint:
    return TimingPoint(sizes, (), items)


def told(*items: Measurement) -> str:
    return conclude_timing(Timing("model", points=(timed(*items),)))


def test_a_clear_winner_is_named_with_its_interval_and_payback() -> None:
    sentence = told(EAGER, measured("inductor", 5e-4, (2.0, 1.9, 2.1), payback=PAYS))
    assert sentence == (
        "Use inductor: speedup over eager 2.00× (95 % interval 1.90–2.10×); "
        "a cold build pays back after 5,000 calls (4,800–5,300)."
    )


@pytest.mark.parametrize(
    ("payback", "words"),
    [
        (None, "the payback of its build was not measured."),
        (Payback(None, None, None), "its build never pays back."),
        (Payback(5000, 900, None), "the payback of its build is unclear (between 900 calls and never)."),
        (Payback(5000, 900, 90000), "the payback of its build is unclear (between 900 calls and 90,000 calls)."),
        (Payback(1, 1, 1), "a cold build pays back after 1 call."),
    ],
)
def test_payback_is_said_as_far_as_it_is_known(payback: Payback | None, words: str) -> None:
    assert told(EAGER, measured("inductor", 5e-4, (2.0, 1.9, 2.1), payback=payback)).endswith(words)


@pytest.mark.parametrize("speed", [(1.05, 0.97, 1.1), (1.0, 0.9, 1.1), (0.98, 0.95, 1.01), (1.3, 1.0, 1.6)])
def test_equal_within_noise_is_no_winner(speed: tuple[float, float, float]) -> None:
    sentence = told(EAGER, measured("inductor", 1e-3 / speed[0], speed))
    assert sentence.startswith("Nothing is clearly faster than eager. The closest variant is inductor: speedup over eager ")
    assert "Use inductor" not in sentence


def test_what_is_slower_is_not_recommended() -> None:
    sentence = told(EAGER, measured("inductor", 2e-3, (0.5, 0.48, 0.52)), measured("aot", 3e-3, (0.33, 0.3, 0.35)))
    assert sentence == (
        "Use eager: nothing is faster. "
        "The next fastest variant is inductor: speedup over eager 0.50× (95 % interval 0.48–0.52×)."
    )


def test_of_variants_that_cannot_be_told_apart_the_cheaper_build_is_taken() -> None:
    one = measured("inductor", 5.00e-4, (2.0, 1.9, 2.1), cold=9.0)
    other = measured("aot-inductor", 4.95e-4, (2.02, 1.9, 2.1), cold=20.0)
    assert told(EAGER, one, other).startswith("Use inductor: ")
    assert told(EAGER, other, one).endswith("aot-inductor: no clear difference from it.")
    apart = measured("aot-inductor", 3e-4, (3.3, 3.2, 3.4), cold=20.0)
    assert told(EAGER, one, apart).startswith("Use aot-inductor: ") and "told apart" not in told(EAGER, one, apart)


def test_missing_measurements() -> None:
    refused = Measurement("inductor", refused="no compiler")
    assert told(EAGER, refused) == told(EAGER) == "Only eager ran, so there is no comparison."
    assert told(refused) == told() == conclude_timing(Timing("model")) == "Nothing was measured."
    assert choose(timed(refused)).variant is None


def test_doubts_and_assumptions_of_the_chosen_one_are_said() -> None:
    shaky = measured("inductor", 5e-4, (2.0, 1.9, 2.1), doubts=(Doubt.RECOMPILED, Doubt.BUSY), assumes=("Sizes stay.",))
    sentence = told(EAGER, shaky)
    assert "Assumptions: Sizes stay." in sentence and "Measure again before you rely on it: torch compiled again" in sentence
    assert "other processes" not in sentence
    assert "Assumed" not in told(EAGER, shaky, measured("aot", 1e-4, (10.0, 9.0, 11.0)))


def test_sizes_are_grouped_by_what_to_use() -> None:
    faster = measured("inductor", 5e-4, (2.0, 1.9, 2.1), payback=PAYS)
    slower = measured("inductor", 2e-3, (0.5, 0.4, 0.6))
    same = measured("inductor", 1e-3, (1.0, 0.9, 1.1))
    points = [timed(EAGER, item, batch=size) for item, size in ((slower, 1), (slower, 8), (faster, 64), (faster, 512))]
    assert conclude_timing(Timing("model", points=tuple(points))) == (
        "At batch 1 and 8 use eager: nothing is faster; at batch 64 and 512 use inductor, speedup over eager 1.90–2.10×, "
        "a build pays back after 5,000 calls."
    )
    both = tuple(timed(EAGER, faster, batch=size) for size in (1, 8))
    assert conclude_timing(Timing("model", points=both)).startswith("At every size use inductor, ")
    neither = tuple(timed(EAGER, item, batch=size) for item, size in ((same, 1), (slower, 8)))
    assert conclude_timing(Timing("model", points=neither)) == "At every size nothing is clearly faster than eager."
    partly = (timed(EAGER, faster, batch=1), timed(EAGER, batch=8))
    assert conclude_timing(Timing("model", points=partly)).startswith("At batch 1 use inductor, ")


def test_an_interrupted_run_says_what_it_rests_on() -> None:
    timing = Timing("model", points=(timed(EAGER, measured("inductor", 5e-4, (2.0, 1.9, 2.1))),), interrupted="sampling")
    assert conclude_timing(timing).endswith("this conclusion only uses the measurements up to then.")


def compared(*items: VariantAgreement, gradients: bool = False, points: int = 3) -> str:
    return conclude_agreement(Agreement("f", gradients, tuple(f"input {number}" for number in range(points)), items))


def test_agreement_in_one_sentence() -> None:
    right = VariantAgreement("inductor", Verdict.AGREES, "it agrees", not_probed=("other shapes", "gradients"))
    other = VariantAgreement("trace", Verdict.AGREES, "it agrees", not_probed=("other shapes",))
    wrong = VariantAgreement("aot", Verdict.DISAGREES, "values differ", not_probed=("other devices",))
    refused = VariantAgreement("script", Verdict.REFUSED, "no")
    frozen = VariantAgreement("callable", Verdict.ASSUMES, "frozen")
    draws = VariantAgreement("noise", Verdict.RANDOM, "draws")
    assert compared(right) == "inductor agrees with eager: values at up to 3 inputs. Not probed: other shapes; gradients."
    assert compared(right, other, points=1) == (
        "inductor and trace agree with eager: values at 1 input. Not probed: other shapes; gradients (of inductor)."
    )
    assert compared(wrong, gradients=True) == "aot does not agree with eager: values and gradients at up to 3 inputs."
    assert compared(right, wrong).startswith("aot does not agree with eager; inductor agrees: values")
    assert "Not compared: script, which could not run." in compared(right, refused)
    assert "callable only while its frozen assumptions hold" in compared(frozen)
    assert compared(refused) == "Nothing was compared: no variant could run."
    assert compared(draws, refused).startswith("Nothing was compared: the variants draw different random numbers")
    assert compared(VariantAgreement("inductor", Verdict.NONDETERMINISTIC, "")).startswith("No conclusion: eager itself")
