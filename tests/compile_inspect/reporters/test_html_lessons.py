"""The lessons of a tour as data of a page: the contract with the front end, code as code, and nothing that is markup."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import string
from pathlib import Path

import pytest
from html_contract import Schema
from html_pages import HOSTILE, data_of, hostile_lessons, lessons
from rich.console import Console
from samples import everything

from compile_inspect import report
from compile_inspect.records import Inspection
from compile_inspect.records.lessons import Lesson, Listing, Table
from compile_inspect.reporters.html.highlighting import CLASSES
from compile_inspect.reporters.html.lessons import MAX_LISTING_LINES, Tour, lessons_of
from compile_inspect.tour.folder import TourFolder
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.machine import Machine
from compile_inspect.tour.report import write_report

TOLD = {"sentence": "3 lessons in 1 min 14 s on torch 2.13.0.", "origin": "torch 2.13.0, x86_64, 2 cores"}


def evidence_of(lesson: Lesson) -> list[dict[str, object]]:
    return lessons_of([lesson])[0]["evidence"]


@pytest.mark.parametrize("captures", [0, 1, 2])
def test_the_data_is_what_the_front_end_was_compiled_for(captures: int) -> None:
    models = [(f"model {number}", everything()) for number in range(captures)]
    for taught in (lessons(), hostile_lessons()):
        data = data_of(report.html(models, title="A tour", lessons=taught, **TOLD))
        assert Schema().faults(data, "Page") == []
        assert data["kind"] == "tour" and len(data["lessons"]) == len(taught)


def test_the_schema_notices_evidence_that_is_wrong() -> None:
    data = data_of(report.html([], lessons=lessons()))
    data["lessons"][0]["evidence"][1]["columns"][0]["align"] = "center"
    data["lessons"][1]["evidence"][0]["kind"] = "picture"
    del data["lessons"][2]["answer"]
    faults = Schema().faults(data, "Page")
    assert any("lessons[0]" in fault for fault in faults) and any("lessons[1]" in fault for fault in faults)
    assert "page.lessons[2].answer is missing" in faults


def test_a_lesson_keeps_its_texts_and_the_order_of_its_evidence() -> None:
    first, second, _ = lessons_of(lessons())
    assert first["question"] == "Why is the first call of a compiled model so much slower than later ones?"
    assert [len(first[name]) for name in ("theory", "answer", "notes")] == [2, 2, 0] and first["seconds"] == 12.5
    assert [item["kind"] for item in first["evidence"]] == ["remark", "table"]
    assert [item["language"] for item in second["evidence"]] == ["python", "diff", "cpp", "text"]


def test_columns_are_aligned_as_their_names_say() -> None:
    (table,) = evidence_of(Lesson("a", "", "", evidence=(Table("t", ("Name", ">Time", "> odd"), (("a", "b", "c"),)),)))
    assert table["columns"] == [
        {"title": "Name", "align": "left"},
        {"title": "Time", "align": "right"},
        {"title": "odd", "align": "right"},
    ]
    assert table["rows"] == [["a", "b", "c"]]


def test_python_and_cpp_are_highlighted_and_nothing_else_is() -> None:
    keyword = CLASSES.index("keyword")
    text = "for (auto x : y) return x;\nreturn"
    listings = tuple(Listing("", text, language) for language in ("cpp", "python", "diff", "text", "triton", ""))
    found = evidence_of(Lesson("a", "", "", evidence=listings))
    assert [item["language"] for item in found] == ["cpp", "python", "diff", "text", "text", "text"]
    for item in found[:2]:
        assert item["lines"][1] == ["return", keyword, len("return")]
    for item in found[2:]:
        assert item["lines"] == [["for (auto x : y) return x;"], ["return"]]


def test_a_listing_is_not_endless() -> None:
    long = Listing("", "\n".join(f"x = {number}" for number in range(MAX_LISTING_LINES + 3)), "python")
    (listing,) = evidence_of(Lesson("a", "", "", evidence=(long,)))
    lines = listing["lines"]
    assert len(lines) == MAX_LISTING_LINES + 1 and lines[-1] == ["… 3 more lines not shown"]
    assert lines[-2][0] == f"x = {MAX_LISTING_LINES - 1}"


def test_keys_can_stand_in_an_address_and_no_two_are_the_same() -> None:
    keys = [
        item["key"] for item in lessons_of([Lesson(key, "", "") for key in ("basics", "basics", "a b/ü", "", "a-b", HOSTILE)])
    ]
    assert keys[:5] == ["basics", "basics-2", "a-b", "lesson", "a-b-2"]
    assert all(re.fullmatch(r"[\w-]+", key, re.ASCII) for key in keys) and len(set(keys)) == len(keys)


def test_no_time_is_not_a_number() -> None:
    times = (math.nan, math.inf, -math.inf)
    assert [item["seconds"] for item in lessons_of([Lesson("a", "", "", seconds=time) for time in times])] == [0.0] * 3


def test_the_page_tells_of_the_tour_before_its_script_runs() -> None:
    page = report.html([("mlp", everything()), ("breaking", everything())], title="A tour", lessons=lessons(), **TOLD)
    data = data_of(page)
    assert "<title>A tour · compile-inspect · 3 lessons in 1 min 14 s on torch 2.13.0</title>" in page
    assert f'<p id="waiting">{TOLD["sentence"]} A script shows the rest' in page and "compile-inspect tour runs" in page
    assert (data["sentence"], data["origin"]) == (TOLD["sentence"], TOLD["origin"])
    # Without a sentence the lessons give one.
    assert data_of(report.html([], lessons=lessons()))["sentence"] == "3 lessons in 1 min 14 s."


def test_the_models_of_a_tour_are_not_judged_together() -> None:
    good = dataclasses.replace(everything(), breaks=(), recompiles=(), limits=(), missing=(), lowerings=())
    good = dataclasses.replace(good, compilations=good.compilations[:1], failures=())
    data = data_of(report.html([("mlp", good), ("breaking", everything())], lessons=lessons()))
    assert data["together"]["sentence"].startswith("2 models of the tour") and data["together"]["tone"] == "plain"
    assert [item["tone"] for item in data["together"]["members"]] == ["good", "bad"]
    # The tour has an order of its own: the worst does not come first.
    assert data["first"] == 0
    assert "process" not in json.dumps([data["together"], data["sentence"]])
    assert data_of(report.html([("mlp", good)], lessons=lessons()))["together"] is None


def test_what_is_left_out_of_a_model_is_not_said_to_be_in_a_capture() -> None:
    sample = everything()
    nodes = tuple(dataclasses.replace(sample.graphs[0].nodes[0], name=f"n{number}") for number in range(60_000))
    graphs = tuple(dataclasses.replace(graph, nodes=nodes) for graph in sample.graphs[:2])
    large = dataclasses.replace(sample, graphs=graphs, lowerings=())
    tour, program = (data_of(report.html([("a", large)], lessons=taught)) for taught in (lessons(), ()))
    assert "compile-inspect inspect" in tour["captures"][0]["left_out"][-1]
    assert "shows the capture" in program["captures"][0]["left_out"][-1]


def test_other_pages_have_no_lessons() -> None:
    program = data_of(report.html([("a", everything()), ("b", Inspection())]))
    assert (program["kind"], program["lessons"], program["origin"]) == ("program", [], "")
    assert program["sentence"] == program["together"]["sentence"]
    comparison = data_of(report.html([("a", everything()), ("b", Inspection())], comparison=True))
    assert comparison["kind"] == "comparison" and comparison["sentence"].endswith("Nothing was compiled during the recording.")


def test_what_does_not_fit_together_is_refused() -> None:
    captures = [("a", Inspection()), ("b", Inspection())]
    with pytest.raises(ValueError, match="a comparison has no lessons, but 3 were passed"):
        report.html(captures, comparison=True, lessons=lessons())
    with pytest.raises(ValueError, match="'3 lessons in a minute' describes lessons, but there are none"):
        report.html(captures, sentence="3 lessons in a minute")


def test_nothing_of_hostile_lessons_is_markup() -> None:
    page = report.html([("a", everything())], title="A tour", lessons=hostile_lessons(), sentence=HOSTILE, origin=HOSTILE)
    assert page.count("<script") == 2 and "<img" not in page
    packed = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert packed is not None and set(packed[1]) <= set(string.ascii_letters + string.digits + "+/=")
    text = json.dumps(data_of(page)["lessons"], ensure_ascii=False)
    assert "</script><script>alert(1)</script>" in text
    assert not set(text) & set("\x00\x1b\u202e\u2028\ud800")


def test_a_tour_without_a_sentence_counts_its_lessons() -> None:
    assert Tour(lessons()[:2]).summary() == "2 lessons in 1 min 14 s."
    assert Tour(lessons(), sentence="a\nb").summary() == "a b"


@pytest.mark.parametrize("models", [(), ("mlp",), ("mlp", "breaking")])
def test_the_end_of_a_tour_is_the_page_of_its_lessons_and_models(tmp_path: Path, models: tuple[str, ...]) -> None:
    console = Console(file=io.StringIO(), record=True, width=200)
    guide = Guide(console, Machine("2.13.0", "x86_64", 2, 2), TourFolder(tmp_path))
    guide.captures.update({name: everything() for name in models})
    data = data_of(write_report(lessons(), guide, 74.2).read_text(encoding="utf-8"))
    assert data["sentence"] == "3 lessons in 1 min 14 s on torch 2.13.0." and data["origin"] == str(guide.machine)
    assert [item["key"] for item in data["lessons"]] == ["basics", "graph_breaks", "stances"]
    assert [item["label"] for item in data["captures"]] == list(models)
    assert "3 lessons in 1 min 14 s. Wrote" in console.export_text()
