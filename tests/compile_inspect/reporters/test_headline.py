"""The headline is the most important measured fact: for every pair of facts, and for several processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import combinations

import pytest
from html_pages import data_of

from compile_inspect import report
from compile_inspect.records import (
    BreakEffect,
    Compilation,
    Failure,
    GraphBreak,
    GuardFailure,
    Inspection,
    LimitHit,
    Location,
    Missing,
    Outcome,
    Recompile,
)
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Measurement, Payback, Speed, Timing, TimingPoint
from compile_inspect.reporters.headline import Topic, statements

FILE = "/home/me/model.py"
Change = Callable[[Inspection], Inspection]
SEVERITY = {"plain": 0, "good": 0, "warn": 1, "bad": 2}


def compiled(identifier: str = "0/0", outcome: Outcome = Outcome.COMPILED, calls: int = 3) -> Compilation:
    return Compilation(identifier, "forward", FILE, 3, outcome, graph_nodes=calls and calls + 2, graph_calls=calls)


CLEAN = Inspection(compilations=(compiled(),))


def with_more(inspection: Inspection, **records: tuple[object, ...]) -> Inspection:
    return dataclasses.replace(inspection, **{name: (*getattr(inspection, name), *more) for name, more in records.items()})


def timed(ratio: float, spread: float = 0.02, payback: Payback | None = None, **sizes: int) -> Timing:
    measurement = Measurement("inductor", speed=Speed(ratio, ratio - spread, ratio + spread), payback=payback)
    return Timing("f", points=(TimingPoint(sizes=sizes, measurements=(measurement,)),))


def with_agreement(inspection: Inspection, verdict: Verdict) -> Inspection:
    return with_more(inspection, agreements=(Agreement("f", True, ("x",), (VariantAgreement("inductor", verdict, "r"),)),))


def run_failed(inspection: Inspection) -> Inspection:
    return with_more(inspection, failures=(Failure("KeyError", "'x'"),))


def compilation_failed(inspection: Inspection) -> Inspection:
    failure = Failure("BackendError", "no", compilation="7/0")
    return with_more(inspection, failures=(failure,), compilations=(compiled("7/0", Outcome.FAILED, 0),))


def little_compiled(inspection: Inspection) -> Inspection:
    return with_more(inspection, compilations=tuple(compiled(f"{n}/0", Outcome.SKIPPED, 0) for n in range(20, 30)))


def one_break(inspection: Inspection) -> Inspection:
    return with_more(inspection, breaks=(GraphBreak("print", Location(FILE, 4), None, BreakEffect.SPLIT),))


def one_skipped(inspection: Inspection) -> Inspection:
    return with_more(inspection, compilations=(compiled("8/0"), compiled("9/0", Outcome.SKIPPED, 0)))


def one_recompile(inspection: Inspection) -> Inspection:
    again = Recompile("0/1", "forward", FILE, 3, (GuardFailure("0/0", "x", "size", "4", "5"),))
    return with_more(inspection, recompiles=(again,), compilations=(compiled("0/1"),))


CHANGES: dict[str, tuple[Topic, Change]] = {
    "the run failed": (Topic.FAILURE, run_failed),
    "a compilation failed": (Topic.FAILURE, compilation_failed),
    "wrong results": (Topic.WRONG_RESULTS, lambda it: with_agreement(it, Verdict.DISAGREES)),
    "little compiled": (Topic.NOT_COMPILED, little_compiled),
    "slower": (Topic.SLOWER, lambda it: with_more(it, timings=(timed(0.92, payback=Payback(None, None, None)),))),
    "given up": (Topic.GIVEN_UP, lambda it: with_more(it, limits=(LimitHit("0/8", "f", FILE, 3, "recompile_limit", 8),))),
    "a break": (Topic.BREAKS, one_break),
    "a skipped frame": (Topic.BREAKS, one_skipped),
    "unfinished": (Topic.UNFINISHED, lambda it: with_more(it, compilations=(compiled("6/0", Outcome.UNFINISHED, 0),))),
    "a recompile": (Topic.RECOMPILES, one_recompile),
    "refused": (Topic.UNCOMPARED, lambda it: with_agreement(it, Verdict.REFUSED)),
    "random": (Topic.UNCOMPARED, lambda it: with_agreement(it, Verdict.RANDOM)),
    "same speed": (Topic.SAME_SPEED, lambda it: with_more(it, timings=(timed(1.0, payback=Payback(None, 900, None)),))),
    "missing": (Topic.EVIDENCE, lambda it: with_more(it, missing=(Missing("guards", "no"),))),
    "killed": (Topic.EVIDENCE, lambda it: dataclasses.replace(it, complete=False)),
    "faster": (Topic.FASTER, lambda it: with_more(it, timings=(timed(1.4),))),
    "right": (Topic.AGREES, lambda it: with_agreement(it, Verdict.AGREES)),
}
IMPORTANCE = list(Topic)
ONE_OF_A_KIND = (
    {Topic.SLOWER, Topic.SAME_SPEED, Topic.FASTER},
    {Topic.WRONG_RESULTS, Topic.UNCOMPARED, Topic.AGREES},
)


def verdict(*inspections: Inspection) -> dict[str, object]:
    return data_of(report.html([(str(number), item) for number, item in enumerate(inspections)]))["captures"][0]["verdict"]


@pytest.mark.parametrize("name", CHANGES)
def test_each_fact_is_stated(name: str) -> None:
    topic, change = CHANGES[name]
    assert topic in [item.topic for item in statements([change(CLEAN)])]


@pytest.mark.parametrize(("first", "second"), combinations(CHANGES, 2))
def test_of_two_facts_the_more_important_leads(first: str, second: str) -> None:
    topics = [CHANGES[first][0], CHANGES[second][0]]
    for names in ((first, second), (second, first)):
        inspection = CLEAN
        for name in names:
            inspection = CHANGES[name][1](inspection)
        told = statements([inspection])
        expected = min(topics, key=IMPORTANCE.index)
        if any(set(topics) <= kind for kind in ONE_OF_A_KIND):  # the last timing counts, and the worse comparison
            assert told[0].topic in (*topics, Topic.FULL_GRAPHS)
        else:
            assert told[0].topic is min(expected, Topic.FULL_GRAPHS, key=IMPORTANCE.index), told
        order = [IMPORTANCE.index(item.topic) for item in told]
        assert order == sorted(order)


@pytest.mark.parametrize(("first", "second"), combinations(CHANGES, 2))
def test_no_headline_is_better_than_what_stands_below_it(first: str, second: str) -> None:
    page = verdict(CHANGES[second][1](CHANGES[first][1](CLEAN)))
    below = [item["tone"] for item in (*page["further"], *page["facts"])]
    assert SEVERITY[page["tone"]] >= max(map(SEVERITY.__getitem__, below)), page


def test_a_slow_capture_is_never_headed_by_captured_whole() -> None:
    page = verdict(CHANGES["slower"][1](CLEAN))
    assert page["sentence"] == (
        "Slower than eager: speedup 0.92× with inductor (95 % interval 0.90–0.94×) on f, and the build never pays back."
    )
    assert page["tone"] == "bad"
    assert [item["sentence"] for item in page["further"]] == [
        "No graph breaks and no recompiles: every frame was captured as one graph."
    ]


def test_faster_is_said_with_its_interval() -> None:
    assert statements([CHANGES["faster"][1](CLEAN)])[0].sentence == (
        "Faster than eager: speedup 1.40× with inductor (95 % interval 1.38–1.42×) on f."
    )


@pytest.mark.parametrize(
    ("ratios", "topic", "words"),
    [
        ((1.5, 0.8), Topic.SLOWER, "Slower than eager at 1 of 2 sizes: speedup 0.80× with inductor"),
        ((0.7, 1.5), Topic.SLOWER, "Slower than eager at 1 of 2 sizes: speedup 0.70× with inductor"),
        ((0.7, 0.8), Topic.SLOWER, "Slower than eager at every size: speedup 0.70× with inductor"),
        ((1.3, 1.5), Topic.FASTER, "Faster than eager at every size: speedup 1.50× with inductor"),
        ((1.3, 1.0), Topic.SAME_SPEED, "Faster than eager at 1 of 2 sizes: speedup 1.30× with inductor"),
        ((1.0, 1.0), Topic.SAME_SPEED, "No measurable gain over eager"),
    ],
)
def test_all_sizes_of_a_sweep_count(ratios: tuple[float, ...], topic: Topic, words: str) -> None:
    points = tuple(timed(ratio, batch=8 * number).points[0] for number, ratio in enumerate(ratios, 1))
    first = statements([with_more(CLEAN, timings=(Timing("f", points=points),))])[0]
    assert first.topic is topic and first.sentence.startswith(words)


@pytest.mark.parametrize(
    ("inspection", "words"),
    [
        (Inspection(), "Nothing was compiled during the recording."),
        (Inspection(compilations=(compiled(calls=0),)), "Nothing runs compiled: 1 frame traced"),
        (Inspection(compilations=(compiled(outcome=Outcome.SKIPPED, calls=0),)), "Nothing runs compiled: 1 frame traced"),
        (little_compiled(CLEAN), "Less than half runs compiled: 10 of 11 frames stay in eager mode."),
        (run_failed(Inspection()), "The run ended with an exception: KeyError: 'x'."),
        (Inspection(compilations=(compiled(outcome=Outcome.NOTHING_TO_COMPILE, calls=0),)), "Nothing runs compiled"),
    ],
)
def test_what_compiled_nothing_or_little_is_never_called_whole(inspection: Inspection, words: str) -> None:
    told = statements([inspection])
    assert told[0].sentence.startswith(words) and told[0].tone in ("warn", "bad")
    assert all("No graph breaks" not in item.sentence for item in told)


def test_the_exception_of_a_compilation_that_ends_the_run_is_one_failure() -> None:
    failed = compilation_failed(CLEAN)
    both = with_more(failed, failures=(Failure("BackendError", "no"),))
    (only,) = [item for item in statements([both]) if item.topic is Topic.FAILURE]
    assert only.sentence == "Compilation 7/0 of forward failed, which ended the run: BackendError: no."


def test_several_failed_compilations_are_counted() -> None:
    two = with_more(
        compilation_failed(CLEAN),
        compilations=(compiled("8/0", Outcome.FAILED, 0),),
        failures=(Failure("BackendError", "neither", compilation="8/0"),),
    )
    assert statements([two])[0].sentence == "Compilation 7/0 of forward failed: BackendError: no. 1 more failed."
    unexplained = with_more(CLEAN, compilations=(compiled("8/0", Outcome.FAILED, 0),))
    assert statements([unexplained])[0].sentence == "1 compilation failed."


def test_an_idle_launcher_is_no_alarm_for_its_program_and_is_not_shown_first() -> None:
    data = data_of(report.html([("launcher", Inspection()), ("rank 0", CLEAN), ("rank 1", one_recompile(CLEAN))]))
    assert data["together"]["sentence"] == "No graph breaks, but 1 recompile."
    assert data["first"] == 2
    data = data_of(report.html([("launcher", run_failed(Inspection())), ("rank 0", CLEAN)]))
    assert data["first"] == 1 and data["together"]["sentence"].startswith("The run ended with an exception")


def test_of_processes_with_as_many_compilations_the_one_in_trouble_is_shown_first() -> None:
    data = data_of(report.html([("rank 0", CLEAN), ("rank 1", one_break(CLEAN)), ("rank 2", CLEAN)]))
    assert data["first"] == 1
