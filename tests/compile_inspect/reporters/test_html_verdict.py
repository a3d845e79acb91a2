"""What a reader is told first."""

from __future__ import annotations

import dataclasses
from typing import Any

from html_pages import capture_of, full
from samples import everything

from compile_inspect.records import Inspection
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Measurement, Payback, Speedup, Summary, Timing, TimingPoint


def facts(inspection: Inspection) -> dict[str, dict[str, Any]]:
    return {item["key"]: item for item in capture_of(inspection)["verdict"]["facts"]}


def measured(variant: str, ratio: float, spread: float = 0.05, payback: Payback | None = None) -> Measurement:
    summary = Summary(50, 1e-3 / ratio, 0.9e-3 / ratio, 1.1e-3 / ratio, 1e-3 / ratio, 0.0)
    return Measurement(variant, summary=summary, speedup=Speedup(ratio, ratio - spread, ratio + spread), payback=payback)


def timed(*measurements: Measurement) -> Inspection:
    timing = Timing("f", points=(TimingPoint(measurements=(measured("eager", 1.0), *measurements)),))
    return dataclasses.replace(Inspection(), timings=(timing,))


def test_what_was_not_looked_at_is_said_with_the_command_that_looks() -> None:
    found = facts(Inspection())
    assert found["agreement"]["value"] == "not checked" and "compile-inspect verify" in found["agreement"]["detail"]
    assert found["speed"]["value"] == "not measured" and "compile-inspect bench" in found["speed"]["detail"]
    assert "payback" not in found


def test_what_disagrees_is_the_verdict_and_the_first_thing_to_do() -> None:
    verdict = capture_of(full())["verdict"]
    assert verdict["tone"] == "bad" and verdict["sentence"].startswith("Compilation 2/0 of broken failed")
    assert verdict["further"][0]["sentence"] == "Incorrect results: inductor does not agree with eager (it differs by 1)."
    assert verdict["recommendations"][0]["title"] == "Do not use inductor here"
    assert verdict["recommendations"][0]["link"] == "#agreement"
    assert {item["key"]: item for item in verdict["facts"]}["agreement"]["value"] == "1 of 1 differ"


def test_three_things_at_most_are_worth_doing_and_each_leads_somewhere() -> None:
    recommendations = capture_of(full())["verdict"]["recommendations"]
    assert len(recommendations) == 3
    assert all(item["link"].startswith("#") and item["why"] for item in recommendations)


def test_agreement_counts_what_could_run() -> None:
    agreement = Agreement(
        "f",
        True,
        ("the example", "drawn"),
        (VariantAgreement("a", Verdict.AGREES, ""), VariantAgreement("b", Verdict.REFUSED, "")),
    )
    found = facts(dataclasses.replace(everything(), agreements=(agreement,)))["agreement"]
    assert (found["value"], found["detail"], found["tone"]) == ("1 of 1 agree", "f: values and gradients, 2 inputs", "good")


def test_speed_is_that_of_torch_compile_and_names_what_is_faster() -> None:
    found = facts(timed(measured("inductor", 2.0, payback=Payback(500, 450, 550)), measured("aot-inductor", 4.0)))
    assert found["speed"]["value"] == "2.00×"
    assert found["speed"]["detail"] == "inductor, 95 % interval 1.95–2.05; f; aot-inductor 4.00×"
    assert found["payback"]["value"] == "500 calls"
    recommendations = capture_of(timed(measured("inductor", 2.0), measured("aot-inductor", 4.0)))["verdict"]["recommendations"]
    assert recommendations[0]["title"].startswith("Use a faster variant")


def test_no_faster_variant_is_named_where_the_intervals_overlap() -> None:
    recommendations = capture_of(timed(measured("inductor", 2.0, 0.3), measured("aot-inductor", 2.1, 0.3)))["verdict"][
        "recommendations"
    ]
    assert recommendations == []


def test_where_compiling_is_slower_eager_is_recommended() -> None:
    inspection = timed(measured("inductor", 0.5, payback=Payback(None, None, None)))
    verdict = capture_of(inspection)["verdict"]
    assert {item["key"]: item["tone"] for item in verdict["facts"]}["speed"] == "bad"
    assert {item["key"]: item["value"] for item in verdict["facts"]}["payback"] == "never"
    assert verdict["recommendations"][0]["title"] == "Leave it in eager mode: f"


def test_a_fix_of_lines_that_no_input_reaches_is_not_called_proven() -> None:
    sample = dataclasses.replace(full(), agreements=(), compilations=(), limits=())
    (finding,) = sample.findings
    sample = dataclasses.replace(sample, breaks=(finding.cause,))
    trials = tuple((item, dataclasses.replace(proof, unreached_lines=(6,))) for item, proof in finding.trials)
    unsure = dataclasses.replace(sample, findings=(dataclasses.replace(finding, trials=trials),))
    (entry,) = [item for item in capture_of(unsure)["verdict"]["recommendations"] if item["title"].startswith("Leave it out")]
    assert entry["standing"] == "suggested" and "No input reaches line 6" in entry["why"]
    (entry,) = [item for item in capture_of(sample)["verdict"]["recommendations"] if item["title"].startswith("Leave it out")]
    assert entry["standing"] == "proven" and "It saves 1.0 ms per call." in entry["why"]


def test_a_variant_that_is_wrong_is_never_recommended() -> None:
    wrong = Agreement("f", False, ("the example",), (VariantAgreement("aot-inductor", Verdict.DISAGREES, "it differs"),))
    inspection = timed(measured("inductor", 2.0), measured("aot-inductor", 4.0))
    titles = [
        item["title"] for item in capture_of(dataclasses.replace(inspection, agreements=(wrong,)))["verdict"]["recommendations"]
    ]
    assert titles == ["Do not use aot-inductor here"]


def test_where_no_variant_could_run_nothing_is_said_to_agree() -> None:
    refused = Agreement("f", False, ("the example",), (VariantAgreement("a", Verdict.REFUSED, "it cannot"),))
    found = facts(Inspection(agreements=(refused,)))["agreement"]
    assert (found["value"], found["tone"]) == ("not comparable", "warn")


def test_none_is_good_news_only_where_something_was_compiled_and_all_recorded() -> None:
    assert {facts(Inspection())[key]["tone"] for key in ("breaks", "recompiles")} == {"plain"}
    sample = dataclasses.replace(everything(), breaks=(), recompiles=(), limits=(), missing_evidence=(), compilations=())
    compiled = dataclasses.replace(sample, compilations=everything().compilations[:1])
    assert {facts(compiled)[key]["tone"] for key in ("breaks", "recompiles")} == {"good"}
    assert facts(dataclasses.replace(compiled, complete=False))["breaks"]["tone"] == "plain"


def test_a_capture_of_a_comparison_alone_says_so() -> None:
    verdict = capture_of(timed(measured("inductor", 2.0)))["verdict"]
    assert verdict["sentence"] == "Faster than eager: speedup 2.00× with inductor (95 % interval 1.95–2.05×) on f."
    assert [item["sentence"] for item in verdict["further"]] == [
        "No compilation was recorded: this capture contains comparisons and timings only."
    ]


def test_the_size_that_was_timed_is_named() -> None:
    inspection = timed(measured("inductor", 2.0))
    (timing,) = inspection.timings
    point = dataclasses.replace(timing.points[0], sizes={"batch": 64})
    inspection = dataclasses.replace(inspection, timings=(dataclasses.replace(timing, points=(point,)),))
    assert facts(inspection)["speed"]["detail"] == "inductor, 95 % interval 1.95–2.05; f, batch 64"


def test_a_failed_compilation_leads_to_its_row() -> None:
    recommendations = capture_of(everything())["verdict"]["recommendations"]
    (entry,) = [item for item in recommendations if item["title"] == "Compilation 2/0 of broken failed"]
    assert entry["link"] == "#compilation-5"
    assert entry["why"].startswith("Compilation 2/0 of broken failed: BackendError: no (")
