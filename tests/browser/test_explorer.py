"""The explorer in a real browser: from source line to node to kernel and back, forward and backward; search, keys, drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from html_data import capture_in, kernels_of_line, line_of, line_with, lines_of_kernel, nodes_of_line

from browser_pages import settled
from compile_inspect.records import Inspection

LINE = "hidden = self.layer(x).relu()"

pytestmark = pytest.mark.slow


def choose(opened: Any, compilation: str) -> None:
    """Choose a compilation by its id."""
    select = opened.page.locator("#explorer select").first
    value = select.evaluate(
        "(node, id) => [...node.options].find(option => option.textContent.trim().startsWith(id)).value", compilation
    )
    select.select_option(value)
    settled(opened.page)


def tab(opened: Any, pane: str, name: str) -> None:
    """Choose a tab of a pane by its words."""
    opened.pane(pane).get_by_role("tab", name=name).first.click()
    settled(opened.page)


def shown_graph(opened: Any) -> int:
    """The graph whose nodes are shown."""
    return int(opened.pane("graph").locator("[data-node]").first.get_attribute("data-node").split(":")[0])


@pytest.fixture
def opened(opening: Callable[..., Any], breaking: Inspection) -> Any:
    found = opening(breaking)
    choose(found, "0/0")
    return found


def test_a_line_leads_to_its_nodes_and_kernels_forward_and_backward(opened: Any) -> None:
    capture = capture_in(opened.path)
    line = line_with(capture, LINE)
    row = opened.pane("source").locator(f"[data-line='{line}']")
    seen = {"Forward": set(), "Backward": set()}
    for direction in seen:
        tab(opened, "kernels", direction)
        row.hover()
        seen[direction] = opened.lit("kernels", "data-kernel")
        assert opened.lit("graph", "data-node") == nodes_of_line(capture, line, shown_graph(opened))
        assert opened.lit("graph", "data-node")
    assert seen["Forward"] and seen["Backward"]
    assert seen["Forward"] | seen["Backward"] == kernels_of_line(capture, line, "0/0")


def test_a_kernel_leads_to_its_lines_and_nodes(opened: Any) -> None:
    capture = capture_in(opened.path)
    for direction in ("Forward", "Backward"):
        tab(opened, "kernels", direction)
        for card in opened.pane("kernels").locator("[data-kernel]").all():
            hook = card.get_attribute("data-kernel")
            wanted = lines_of_kernel(capture, hook)
            if not wanted:
                continue
            card.hover(position={"x": 12, "y": 12})
            assert hook in opened.lit("kernels", "data-kernel")
            shown = {item for item in wanted if opened.pane("source").locator(f"[data-line='{item}']").count()}
            assert opened.lit("source", "data-line") >= shown


@pytest.mark.parametrize("stage", ["AOT forward", "AOT backward", "Post-grad forward", "Post-grad backward"])
def test_a_node_of_every_stage_leads_to_its_line_and_its_kernels(opened: Any, stage: str) -> None:
    capture = capture_in(opened.path)
    line = line_with(capture, LINE)
    tab(opened, "graph", stage)
    graph = shown_graph(opened)
    nodes = nodes_of_line(capture, line, graph)
    assert nodes, stage
    tab(opened, "kernels", "Backward" if "backward" in stage else "Forward")
    hook = sorted(nodes, key=lambda item: int(item.split(":")[1]))[-1]
    opened.pane("graph").locator(f"[data-node='{hook}']").first.hover()
    stack = capture["graphs"][graph]["nodes"][int(hook.split(":")[1])]["stack"]
    assert opened.lit("source", "data-line") >= line_of(capture, stack)
    assert opened.lit("kernels", "data-kernel") <= kernels_of_line(capture, line, "0/0")


def test_a_click_keeps_it_lit_until_escape(opened: Any) -> None:
    capture = capture_in(opened.path)
    line = line_with(capture, LINE)
    row = opened.pane("source").locator(f"[data-line='{line}']")
    row.click()
    opened.page.mouse.move(5, 5)
    assert opened.lit("graph", "data-node")
    assert opened.page.locator("[data-pane=source] .chosen").count() >= 1
    opened.page.keyboard.press("Escape")
    settled(opened.page)
    assert opened.page.locator("#explorer .chosen, #explorer .lit").count() == 0


def test_one_kernel_has_one_color_in_all_panes(opened: Any) -> None:
    tab(opened, "graph", "Post-grad forward")
    tab(opened, "kernels", "Forward")
    capture = capture_in(opened.path)
    graph = shown_graph(opened)
    lowering = next(number for number, item in enumerate(capture["lowerings"]) if item["graph"] == graph)
    kernel = next(number for number, item in enumerate(capture["lowerings"][lowering]["kernels"]) if item["nodes"])
    node = capture["lowerings"][lowering]["kernels"][kernel]["nodes"][0]
    hue = """node => [node, ...node.querySelectorAll("*")]
        .map(item => getComputedStyle(item).getPropertyValue("--hue").trim()).find(value => value) ?? "" """
    card = opened.pane("kernels").locator(f"[data-kernel='{lowering}:{kernel}']").first.evaluate(hue)
    row = opened.pane("graph").locator(f"[data-node='{graph}:{node}']").first.evaluate(hue)
    assert card and card == row


def test_search_finds_code_nodes_and_kernels(opened: Any) -> None:
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("relu")
    box = page.locator("[data-search]")
    assert box.input_value() == "relu"
    page.locator("#explorer mark, #explorer .match, #explorer .found").first.wait_for()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    settled(page)
    assert box.input_value() == ""


def test_the_drawn_graph_moves_zooms_and_folds(opening: Callable[..., Any], gpt2: Inspection) -> None:
    opened = opening(gpt2)
    opened.page.locator("[data-view=drawn]").first.click()
    pane = opened.pane("graph")
    pane.locator("[data-box]").first.wait_for()
    before = pane.locator("[data-box]").count()
    assert before > 1
    area = pane.locator("svg").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    place = "node => { const it = node.querySelector('[data-box]').getBoundingClientRect(); return [it.x, it.width]; }"
    x, width = area.evaluate(place)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    opened.page.mouse.move(*middle)
    opened.page.mouse.wheel(0, -240)
    moved = "([x, width]) => { const it = document.querySelector('[data-pane=graph] svg [data-box]').getBoundingClientRect();"
    opened.page.wait_for_function(f"{moved} return it.x !== x || it.width !== width; }}", arg=[x, width])
    opened.page.get_by_role("button", name="Expand all").first.click()
    settled(opened.page)
    assert pane.locator("[data-box]").count() > 0


def test_everything_can_be_reached_by_keys(opened: Any) -> None:
    page = opened.page
    pane = opened.pane("source")
    first = pane.locator("[data-line][tabindex='0']").first
    before = first.get_attribute("data-line")
    first.focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    moved = page.evaluate("() => document.activeElement.getAttribute('data-line')")
    assert moved is not None and moved != before
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("[data-pane=source] .chosen").count() >= 1
    for name in ("Source", "Graph", "Kernels"):
        assert page.locator(f"[aria-label='{name}']").count() >= 1, name


def test_panes_stand_below_each_other_on_a_phone(opening: Callable[..., Any], training: Inspection) -> None:
    opened = opening(training, width=390, height=800)
    boxes = [opened.pane(name).bounding_box() for name in ("source", "graph", "kernels")]
    assert boxes[0]["y"] < boxes[1]["y"] < boxes[2]["y"]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 391 for box in boxes)
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 391


def test_panes_stand_beside_each_other_on_a_screen(opening: Callable[..., Any], training: Inspection) -> None:
    opened = opening(training)
    boxes = [opened.pane(name).bounding_box() for name in ("source", "graph", "kernels")]
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 1280


def test_a_line_of_another_compilation_leads_there(opened: Any) -> None:
    capture = capture_in(opened.path)
    line = line_with(capture, "return (hidden * self.scale).sum()")
    opened.pane("source").locator(f"[data-line='{line}']").click()
    opened.page.locator("[data-elsewhere] button").first.click()
    settled(opened.page)
    chosen = opened.page.locator("#explorer select").first.input_value()
    assert chosen != "0/0"
    assert opened.lit("graph", "data-node") == nodes_of_line(capture, line, shown_graph(opened)) != set()


def test_why_kernels_were_not_fused_stands_between_them(opening: Callable[..., Any], gpt2: Inspection) -> None:
    opened = opening(gpt2)
    capture = capture_in(opened.path)
    reasons = {item["reason"] for lowering in capture["lowerings"] for item in lowering["not_fused"]}
    shown = opened.pane("kernels").locator(".apart").all_inner_texts()
    assert shown and all(any(reason in text for reason in reasons) for text in shown)


def test_modules_fold_and_unfold(opening: Callable[..., Any], gpt2: Inspection) -> None:
    opened = opening(gpt2)
    pane = opened.pane("graph")
    pane.get_by_role("button", name="Expand all").click()
    settled(opened.page)
    everything = pane.locator("[data-node]").count()
    pane.get_by_role("button", name="Collapse all").click()
    settled(opened.page)
    folded = pane.locator("[data-node]").count()
    assert folded < everything
    pane.get_by_role("button", name="Expand all").click()
    settled(opened.page)
    assert pane.locator("[data-node]").count() == everything
