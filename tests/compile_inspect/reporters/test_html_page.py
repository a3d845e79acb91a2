"""The page as a whole: what its data looks like, and that nothing in a capture can become more than text."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import string
from html.parser import HTMLParser

import pytest
from html_contract import Schema
from html_pages import HOSTILE, capture_of, data_of, full, hostile
from samples import everything

from compile_inspect import report
from compile_inspect.records import Inspection, Node, Stage


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize("inspection", [Inspection(), everything(), full()], ids=["empty", "everything", "full"])
def test_the_data_is_what_the_front_end_was_compiled_for(inspection: Inspection) -> None:
    data = data_of(report.html([("a", inspection), ("b", inspection)], comparison=True))
    assert Schema().faults(data, "Page") == []


def test_the_schema_notices_what_is_wrong() -> None:
    data = data_of(report.html([("a", everything())]))
    capture = data["captures"][0]
    capture["verdict"]["tone"] = "purple"
    del capture["time"]
    capture["graphs"][0]["nodes"][0]["inputs"] = ["one"]
    capture["extra"] = 1
    faults = Schema().faults(data, "Page")
    assert len(faults) == 4
    assert any("captures[0].time is missing" in fault for fault in faults)
    assert any("'purple'" in fault for fault in faults)


def test_a_page_loads_nothing_and_runs_its_own_script_only() -> None:
    page = report.html([("a", everything())])
    elements = Elements()
    elements.feed(page)
    assert {tag for tag, _ in elements.seen} <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "noscript",
        "p",
        "div",
        "script",
    }
    assert not any(name in attributes for _, attributes in elements.seen for name in ("src", "href", "style", "onload"))
    policy = next(item["content"] for _, item in elements.seen if item.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(inside) == 1
        found = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{found}'" in policy


def test_nothing_of_a_hostile_capture_is_markup() -> None:
    page = report.html([(HOSTILE, hostile())], title=HOSTILE)
    assert "alert(2)" not in page.replace("&lt;script&gt;", "").split("<div id")[1].split("<script>")[0]
    packed = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert packed is not None
    assert set(packed[1]) <= set(string.ascii_letters + string.digits + "+/=")
    elements = Elements()
    elements.feed(page)
    assert sum(tag == "script" for tag, _ in elements.seen) == 2
    assert not any(tag == "img" for tag, _ in elements.seen)


def test_what_a_hostile_capture_holds_is_kept_as_text_without_control_characters() -> None:
    capture = capture_of(hostile())
    assert Schema().faults(capture, "Capture") == []
    assert capture["breaks"][0]["link"] == ""
    name = capture["graphs"][0]["nodes"][0]["name"]
    assert "</script><script>alert(1)</script>" in name
    assert not set(name) & set("\x00\x1b\u202e\u2028")


def test_the_same_capture_gives_the_same_page() -> None:
    assert report.html([("a", everything())]) == report.html([("a", everything())])


def test_two_captures_are_needed_for_a_comparison() -> None:
    with pytest.raises(ValueError, match="a comparison is of two captures, not of 1"):
        report.html([("a", everything())], comparison=True)


def test_a_large_capture_is_thinned_and_says_so() -> None:
    sample = everything()
    nodes = tuple(Node(f"n{number}", "call_function", "torch.sin") for number in range(15_000))
    graphs = tuple(dataclasses.replace(sample.graphs[0], id=f"g{number}", nodes=nodes) for number in range(3))
    large = dataclasses.replace(sample, graphs=graphs)
    thin, whole = capture_of(large), capture_of(large, whole=True)
    assert len(thin["graphs"]) == 1 and len(whole["graphs"]) == 3
    assert thin["left_out"][0] == "2 graphs of later compilations"
    assert "compile-inspect report --whole" in thin["left_out"][-1]
    assert whole["left_out"] == []


def test_the_joint_graph_is_left_out_where_its_parts_are_there() -> None:
    sample = everything()
    parts = dataclasses.replace(sample.graphs[0], id="forward-0", stage=Stage.FORWARD)
    assert [item["stage"] for item in capture_of(sample)["graphs"]].count("joint") == 1
    both = capture_of(dataclasses.replace(sample, graphs=(*sample.graphs, parts)))
    assert [item["stage"] for item in both["graphs"]].count("joint") == 0


def test_tried_fixes_come_with_their_proof_and_the_chosen_one_first() -> None:
    found = next(item for item in capture_of(full())["breaks"] if item["identifier"] == "GB0059")
    chosen, other = found["proposals"]
    assert chosen["standing"] == "proven" and chosen["seconds"] == [0.002, 0.001]
    assert ["-", "        print(y.sum())"] in chosen["diff"] and ["+", "        pass"] in chosen["diff"]
    assert other["standing"] == "withdrawn"
    assert found["excerpt"]["marked"] == 6


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    shown = everything()._repr_html_()
    elements = Elements()
    elements.feed(shown)
    assert [tag for tag, _ in elements.seen] == ["iframe"]
    attributes = elements.seen[0][1]
    assert attributes["sandbox"] == "allow-scripts"
    assert (attributes["srcdoc"] or "").startswith("<!doctype html>")
