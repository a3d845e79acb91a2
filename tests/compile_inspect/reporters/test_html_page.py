"""The page as a whole: what its data looks like, and that nothing in a capture can become more than text."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import string
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from html_contract import Schema
from html_pages import HOSTILE, capture_of, data_of, full, hostile
from samples import MODEL, MODEL_SOURCE, everything

from compile_inspect import report
from compile_inspect.records import Failure, Inspection, Location, Node, Stage
from compile_inspect.records.fixes import Proof, Proposal, Replacement


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
    with pytest.raises(ValueError, match="a comparison needs two captures, not 1"):
        report.html([("a", everything())], comparison=True)


@pytest.mark.slow
def test_a_large_capture_is_thinned_and_says_so() -> None:
    sample = everything()
    nodes = tuple(Node(f"n{number}", "call_function", "torch.sin") for number in range(45_000))
    stages = (Stage.DYNAMO, Stage.FORWARD, Stage.BACKWARD, Stage.POST_GRAD)
    graphs = tuple(dataclasses.replace(sample.graphs[0], id=stage.name, stage=stage, nodes=nodes) for stage in stages)
    large = dataclasses.replace(sample, graphs=graphs, lowerings=())
    thin, whole = capture_of(large), capture_of(large, whole=True)
    # What links the panes stays.
    assert [graph["stage"] for graph in thin["graphs"]] == ["dynamo", "post_grad"] and len(whole["graphs"]) == 4
    assert thin["left_out"][0] == "2 graphs (AOTAutograd forward of 0/0, AOTAutograd backward of 0/0)"
    assert "compile-inspect report --whole" in thin["left_out"][-1]
    assert whole["left_out"] == []


def test_the_page_opens_on_the_process_that_compiled_most() -> None:
    launcher = Inspection()
    failed = dataclasses.replace(launcher, failures=(Failure("RuntimeError", "gone"),))
    one = dataclasses.replace(everything(), compilations=everything().compilations[:1])
    good = dataclasses.replace(one, breaks=(), recompiles=(), limits=(), missing_evidence=(), failures=())
    for processes, first in (
        ([launcher, everything()], 1),
        ([failed, one, everything()], 2),
        ([everything(), one, failed], 0),
        ([launcher, launcher], 0),
        ([one, one, launcher], 0),
        ([good, one], 1),
    ):
        named = [(f"pid {number}", item) for number, item in enumerate(processes)]
        assert data_of(report.html(named))["first"] == first


def test_several_processes_are_judged_together_and_the_worst_comes_first() -> None:
    good = dataclasses.replace(everything(), breaks=(), recompiles=(), limits=(), missing_evidence=(), lowerings=())
    good = dataclasses.replace(good, compilations=good.compilations[:1], failures=())
    data = data_of(report.html([("rank 0", good), ("rank 1", everything())]))
    assert data["together"]["sentence"].startswith("Compilation 2/0 of broken failed")
    assert [item["tone"] for item in data["together"]["members"]] == ["good", "bad"] and data["first"] == 1
    assert data_of(report.html([("a", good)]))["together"] is None
    assert data_of(report.html([("a", good), ("b", good)], comparison=True))["together"] is None


def test_nothing_on_disk_is_read_for_a_capture(tmp_path: Path) -> None:
    secret = tmp_path / "settings.py"
    secret.write_text("PASSWORD = 'hunter2'\n")
    sample = full()
    (finding,) = sample.findings
    change = Replacement(str(secret), (2, 0), (2, 0), "", "x = 1\n")
    proposal = Proposal("prints", "Look here", (change,))
    advice = dataclasses.replace(finding.advice, proposals=(proposal,))
    leaking = dataclasses.replace(finding, advice=advice, trials=((proposal, Proof.of(breaks=(1, 0), inputs=1, values=1)),))
    place = dataclasses.replace(sample.breaks[1].own_location or sample.breaks[1].location, file=str(secret), line=1)
    there = dataclasses.replace(sample.breaks[1], location=place, own_location=place)
    capture = capture_of(dataclasses.replace(sample, findings=(leaking,), breaks=(sample.breaks[0], there)))
    assert "hunter2" not in json.dumps(capture)
    (found,) = [item for item in capture["breaks"] if item["identifier"] == "GB0059"]
    assert [item["standing"] for item in found["proposals"]] == ["untried"]


def test_fixes_tried_on_another_text_are_not_shown_as_proven() -> None:
    sample = full()
    (finding,) = sample.findings
    moved = dataclasses.replace(finding.cause, own_location=dataclasses.replace(finding.cause.own_location, code="print(0)"))
    stranger = dataclasses.replace(finding, cause=moved)
    capture = capture_of(dataclasses.replace(sample, findings=(stranger,)))
    assert not any(item["standing"] == "proven" for found in capture["breaks"] for item in found["proposals"])
    assert any("that this capture does not contain" in note for note in capture["notes"])
    changed = capture_of(dataclasses.replace(sample, sources={MODEL: MODEL_SOURCE.replace("print(y.sum())", "print(y)")}))
    assert not any(item["standing"] == "proven" for found in changed["breaks"] for item in found["proposals"])


def test_control_characters_are_in_no_id_either() -> None:
    sample = everything()
    odd = "0/0\u202e\x1b[31m\x00"
    graphs = tuple(dataclasses.replace(graph, compilation=odd) for graph in sample.graphs)
    compilations = (dataclasses.replace(sample.compilations[0], id=odd),)
    breaks = (dataclasses.replace(sample.breaks[0], compilations=(odd,)),)
    text = json.dumps(capture_of(dataclasses.replace(sample, graphs=graphs, compilations=compilations, breaks=breaks)))
    assert "\\u202e" not in text and "\\u001b" not in text and "\\u0000" not in text


def test_no_text_is_endless() -> None:
    sample = everything()
    long = dataclasses.replace(sample.breaks[0], kind="k" * 2_000_000, explanation="e" * 3_000_000)
    assert len(json.dumps(capture_of(dataclasses.replace(sample, breaks=(long,)))["breaks"])) < 100_000


def test_many_breaks_in_a_long_file_are_quick() -> None:
    """Compared with a single one, whose file is parsed and highlighted too: how fast the machine is does not matter."""
    sample = everything()
    source = MODEL_SOURCE + "".join(f"def f{number}(x):\n    return x + {number}\n\n" for number in range(1_000))

    def seconds(count: int) -> float:
        breaks = tuple(
            dataclasses.replace(sample.breaks[0], own_location=Location(MODEL, 11 + 3 * number, "f", f"return x + {number}"))
            for number in range(count)
        )
        start = time.process_time()
        capture_of(dataclasses.replace(sample, sources={MODEL: source}, breaks=breaks))
        return time.process_time() - start

    seconds(1)
    one, many = [seconds(1)], [seconds(60)]
    while min(many) >= 25 * min(one) and len(many) < 4:  # the machine may be busy
        one.append(seconds(1))
        many.append(seconds(60))
    assert min(many) < 25 * min(one)  # it is 9 times; parsed and highlighted 60 times, it would be over 60


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
    assert attributes["sandbox"] == "allow-scripts allow-popups allow-popups-to-escape-sandbox"
    assert (attributes["srcdoc"] or "").startswith("<!doctype html>")
