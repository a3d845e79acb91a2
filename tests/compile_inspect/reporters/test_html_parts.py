"""Lines, sources, graphs and measurements as the page gets them."""

from __future__ import annotations

import dataclasses

import pytest
from html_pages import capture_of
from hypothesis import given
from hypothesis import strategies as some
from samples import LIBRARY, MODEL, everything

from compile_inspect.records import (
    Inspection,
    Kernel,
    KernelKind,
    Location,
    Lowering,
    MemoryEstimate,
    Phase,
    Stack,
    UnfusedPair,
)
from compile_inspect.records.timing import Measurement, Timing, TimingPoint
from compile_inspect.reporters.html.highlighting import CLASSES, highlighted
from conftest import ROOT


def test_the_front_end_has_the_same_classes() -> None:
    text = (ROOT / "frontend" / "src" / "data.ts").read_text()
    listed = text.split("TOKEN_CLASSES = [")[1].split("]")[0]
    assert tuple(word.strip().strip('"') for word in listed.split(",") if word.strip()) == CLASSES


@given(some.text(max_size=300), some.sampled_from(["python", "cpp", "text"]))
def test_highlighting_covers_every_line_and_changes_none(text: str, language: str) -> None:
    lines = highlighted(text, language)
    for line in lines:
        shown, tokens = str(line[0]), [int(item) for item in line[1:]]
        assert "\n" not in shown
        if tokens:
            assert sum(tokens[1::2]) == len(shown)
            assert all(0 <= kind < len(CLASSES) for kind in tokens[::2])
    assert len(lines) == max(1, len(highlighted(text, "text")))


def test_words_get_their_classes() -> None:
    (line,) = highlighted("def f(x): return 'a'  # why")
    text, tokens = str(line[0]), [int(item) for item in line[1:]]
    words, at = {}, 0
    for kind, length in zip(tokens[::2], tokens[1::2], strict=True):
        words[text[at : at + length].strip()] = CLASSES[kind]
        at += length
    assert words["def"] == "keyword" and words["f"] == "function" and words["'a'"] == "string" and words["# why"] == "comment"


def test_an_endless_line_is_cut() -> None:
    (line,) = highlighted("x = '" + "a" * 10_000 + "'")
    assert len(str(line[0])) < 5_000 and str(line[0]).endswith("more characters")


def test_the_users_file_is_whole_and_a_librarys_is_the_functions_that_matter() -> None:
    sample = everything()
    library = "\n".join(f"def f{number}():\n    return {number}\n" for number in range(40))
    stacks = (*sample.stacks, Stack((Location(LIBRARY, 8, "f2"),)))
    found = capture_of(dataclasses.replace(sample, stacks=stacks, sources={LIBRARY: library, **sample.sources}))["sources"]
    paths = capture_of(sample)["paths"]
    assert [len(item["pieces"][0]["lines"]) for item in found] == [8, 2]
    assert found[1]["pieces"][0]["first"] == 7 and found[1]["total"] == 119
    assert [item["library"] for item in paths if item["path"] == MODEL] == [False]


def test_nodes_know_their_kernels_and_kernels_their_nodes() -> None:
    capture = capture_of(everything())
    lowering = next(item for item in capture["lowerings"] if item["graph"] is not None)
    graph = capture["graphs"][lowering["graph"]]
    assert graph["stage"] == "post_grad"
    for number, kernel in enumerate(lowering["kernels"]):
        for node in kernel["nodes"]:
            assert number in graph["nodes"][node]["kernels"]
    linked = [node for node in graph["nodes"] if node["kernels"]]
    assert linked
    for node in linked:
        assert all(graph["nodes"].index(node) in lowering["kernels"][number]["nodes"] for number in node["kernels"])


def test_kernels_in_cpp_are_highlighted_as_such() -> None:
    code = "kernel = cpp('''\nfor (long i = 0; i < 8; i++) {}\n''')\n"
    kernel = Kernel("kernel", KernelKind.CPP, (), first_line=2, last_line=2)
    lowering = Lowering("l", "0/0", everything().lowerings[0].direction, None, code, kernels=(kernel,))
    (found,) = capture_of(Inspection(lowerings=(lowering,)))["lowerings"]
    assert found["language"] == "cpp"
    assert found["code"][1][:3] == ["for (long i = 0; i < 8; i++) {}", CLASSES.index("keyword"), 3]


def test_every_line_of_the_generated_module_stays_where_it_is() -> None:
    code = "import a\nk = triton('''\nimport b\n\n''', device='cuda')\n# the end\n"
    kernel = Kernel("k", KernelKind.TRITON, (), first_line=2, last_line=5)
    lowering = Lowering("l", "0/0", everything().lowerings[0].direction, None, code, kernels=(kernel,))
    (found,) = capture_of(Inspection(lowerings=(lowering,)))["lowerings"]
    assert [line[0] for line in found["code"]] == code.rstrip("\n").split("\n")
    assert found["code"][2] == ["import b", CLASSES.index("keyword"), 6, 0, 2] and found["language"] == "triton"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_do_not_break_the_page(number: float) -> None:
    timing = Timing("f", points=(TimingPoint(measurements=(Measurement("eager", samples=(number, 1.0)),)),))
    phase = Phase("0/0", "dynamo", number, 1.0)
    capture = capture_of(Inspection(timings=(timing,), phases=(phase, Phase("0/0", "lower", 5.0, 1.0))))
    assert capture["timings"][0]["points"][0]["measurements"][0]["samples"] == [1.0]
    assert [(item["name"], item["start"]) for item in capture["time"]["phases"]] == [("lower", 0.0)]


def test_samples_of_a_long_run_are_thinned() -> None:
    timing = Timing("f", points=(TimingPoint(measurements=(Measurement("eager", samples=tuple(range(10_000))),)),))
    capture = capture_of(Inspection(timings=(timing,)))
    assert len(capture["timings"][0]["points"][0]["measurements"][0]["samples"]) <= 400


def test_guards_are_grouped_and_those_nobody_can_act_on_come_last() -> None:
    groups = capture_of(everything())["guards"]
    assert [group["noise"] for group in groups] == sorted(group["noise"] for group in groups)
    assert len({(group["compilation"], group["variable"], group["noise"]) for group in groups}) == len(groups)
    assert sum(len(group["conditions"]) for group in groups) == len(everything().guards)


def test_reasons_why_nothing_was_fused_belong_to_the_launch_they_are_about() -> None:
    nodes = tuple(
        Kernel("cpp_fused_0", KernelKind.CPP, (), scheduler_nodes=(f"op{number}", f"op{number}b")) for number in (1, 2, 3)
    )
    apart = (
        UnfusedPair("op3", "op1", "far away", "cpp_fused_0", "cpp_fused_0"),
        UnfusedPair("op2_op2b", "gone", "no", "cpp_fused_0", "cpp_fused_0"),
    )
    lowering = Lowering("l", "0/0", everything().lowerings[0].direction, None, kernels=nodes, unfused_pairs=apart)
    (found,) = capture_of(Inspection(lowerings=(lowering,)))["lowerings"]
    assert [(item["first"], item["second"]) for item in found["not_fused"]] == [(2, 0), (1, None)]


def test_a_phase_below_the_ground_is_on_it() -> None:
    capture = capture_of(Inspection(phases=(Phase("0/0", "odd", 1.0, 1.0, depth=-1),)))
    assert [item["depth"] for item in capture["time"]["phases"]] == [0]


def test_memory_steps_know_their_kernels() -> None:
    kernel = Kernel("k", KernelKind.CPP, (), scheduler_nodes=("op0", "op1"))
    memory = MemoryEstimate(8, (("op0_op1", 8), ("op7", 4)))
    lowering = Lowering("l", "0/0", everything().lowerings[0].direction, None, kernels=(kernel,), memory=memory)
    (found,) = capture_of(Inspection(lowerings=(lowering,)))["lowerings"]
    assert found["memory"]["steps"] == [["op0_op1", 8, 0], ["op7", 4, None]]
