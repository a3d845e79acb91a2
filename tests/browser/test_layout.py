"""The page at three widths and in both themes: nothing is wider than the window, overlaps, or is too pale to read."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compile_inspect.records import Inspection, Recompile
from compile_inspect.records.guards import GuardFailure

sys.path.append(str(Path(__file__).resolve().parents[1] / "compile_inspect" / "reporters"))

from html_pages import full, lessons
from samples import everything

from browser_pages import settled

WIDTHS = (1400, 1000, 400)
THEMES = ("light", "dark")

WIDER = """() => {
    const scrolls = element => {
        for (let at = element.parentElement; at; at = at.parentElement)
            if (!["visible", "clip"].includes(getComputedStyle(at).overflowX) && at !== document.body) return true;
        return false;
    };
    const wide = [...document.body.querySelectorAll("*")].filter(element => {
        const box = element.getBoundingClientRect();
        const seen = box.width > 1 && box.height > 1 && !element.closest(".skip, svg");
        return seen && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(element);
    });
    return wide.map(element => `${element.tagName}.${element.className}`);
}"""
"""Elements beyond the window, but for those inside a box that scrolls by itself."""

OVERLAPS = """selector => {
    const texts = [];
    for (const root of document.querySelectorAll(selector)) {
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            if (!node.data.trim() || node.parentElement.closest(".unseen")) continue;
            const range = document.createRange();
            range.selectNodeContents(node);
            for (const box of range.getClientRects()) if (box.width > 1) texts.push([node.data, box]);
        }
    }
    const found = [];
    texts.forEach(([text, a], index) => texts.slice(index + 1).forEach(([other, b]) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        // Lines of one paragraph may touch: letters reach into the leading.
        if (across > 1 && down > 6) found.push([text, other]);
    }));
    return found;
}"""
"""Pairs of texts that are drawn over each other."""

CLIPPED = """selector => [...document.querySelectorAll(selector)]
    .filter(element => element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 2)
    .map(element => element.textContent)"""

CONTRASTS = """selector => {
    const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const channel = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
    const ground = element => {
        for (let at = element; at; at = at.parentElement) {
            const found = parse(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found;
        }
        return [255, 255, 255];
    };
    return [...document.querySelectorAll(selector)].filter(element => element.textContent.trim()).map(element => {
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
        return [element.textContent.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    });
}"""
"""Every text of a selector, with how much it stands out from what is behind it."""

HEADLINE = (
    ".sentence span, .further li span, .origin, .fact-label, .fact-value, .fact-detail, .recommendations a, .recommendations "
    "p, .standing, .parts a"
)
LESSON = ".lesson h3, .question, .answer h4, .answer p, .contents a, .took, .measured dt, .measured-value, .outcome"

pytestmark = pytest.mark.slow


def long_names() -> Inspection:
    """Everything, with names as long as those of real models."""
    name = "self.transformer.layers.encoder_decoder_attention['output_projection'].weight"
    failures = (GuardFailure("0/0", name, f"tensor '{name}' size mismatch at index 0. expected 32, actual 48", "32", "48"),)
    recompiles = tuple(Recompile(f"{number}/1", "forward", "/home/me/project/model.py", 4, failures) for number in range(3))
    return dataclasses.replace(full(), recompiles=recompiles)


def in_both_themes(page: Any) -> Iterator[str]:
    """The page as a system with each of the themes shows it."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches") is (theme == "dark")
        page.wait_for_timeout(200)
        yield theme


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_fits_and_can_be_read(opening: Callable[..., Any], width: int) -> None:
    page = opening(long_names(), everything(), width=width, height=1000).page
    page.evaluate("() => document.querySelectorAll('main details').forEach(fold => { fold.open = true; })")
    for theme in in_both_themes(page):
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, theme
        assert page.evaluate(WIDER) == [], theme
        assert page.evaluate(OVERLAPS, ".sentence, .further, .facts, .recommendations, .cause h3, .cause p") == [], theme
        assert page.evaluate(CLIPPED, ".fact, .recommendations li, .sentence, .further li") == [], theme
        assert [item for item in page.evaluate(CONTRASTS, HEADLINE) if item[1] < 4.5] == [], theme


@pytest.mark.parametrize("width", WIDTHS)
def test_a_tour_fits_and_can_be_read(opening: Callable[..., Any], width: int) -> None:
    told = {"title": "A tour", "lessons": lessons(), "sentence": "3 lessons in 1 min 14 s.", "origin": "torch 2.13.0"}
    page = opening(everything(), width=width, height=1000, **told).page
    page.locator("#lesson-graph_breaks .evidence-fold > summary").click()
    page.locator("#lesson-graph_breaks .evidence").wait_for()
    for theme in in_both_themes(page):
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, theme
        assert page.evaluate(WIDER) == [], theme
        assert page.evaluate(OVERLAPS, ".sentence, .contents, .lesson-head, .question, .answer, .measured") == [], theme
        assert [item for item in page.evaluate(CONTRASTS, f"{HEADLINE}, {LESSON}") if item[1] < 4.5] == [], theme


@pytest.mark.parametrize("width", WIDTHS)
def test_cards_fill_their_rows(opening: Callable[..., Any], width: int) -> None:
    page = opening(everything(), width=width).page
    boxes = [card.bounding_box() for card in page.locator(".facts li").all()]
    area = page.locator(".facts").bounding_box()
    rows: dict[int, list[dict[str, float]]] = {}
    for box in boxes:
        rows.setdefault(round(box["y"]), []).append(box)
    for row in rows.values():
        assert min(box["x"] for box in row) == pytest.approx(area["x"], abs=2)
        assert max(box["x"] + box["width"] for box in row) == pytest.approx(area["x"] + area["width"], abs=2)


def test_headings_of_cards_leave_no_blank_strip(opening: Callable[..., Any]) -> None:
    page = opening(full()).page
    gaps = page.eval_on_selector_all(
        ".card:has(> h3:first-child)",
        """cards => cards.map(card => [card.querySelector("h3"), card].map(item => item.getBoundingClientRect().top))""",
    )
    assert gaps and max(heading - card for heading, card in gaps) < 24


def test_what_has_the_focus_is_outlined_and_not_hidden_by_the_head(opening: Callable[..., Any]) -> None:
    page = opening(everything()).page
    for _ in range(30):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => {
                const element = document.activeElement, style = getComputedStyle(element);
                const marked = ".divider, .target, [role=option], [role=treeitem], g";  // in a way of their own
                const mark = style.outlineStyle !== "none" || element.matches(marked);
                const head = document.querySelector(".masthead").getBoundingClientRect().bottom;
                const box = element.getBoundingClientRect();
                const free = element.closest(".masthead, .skip") !== null || box.bottom > head;
                return [mark, free, element.outerHTML.slice(0, 90)];
            }"""
        )
        assert seen[0] and seen[1], seen


@pytest.mark.parametrize("kind", ["report", "tour"])
def test_paper_shows_all_of_it_and_nothing_is_cut_off(opening: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    page = opening(full(), width=800, **({"lessons": lessons()} if kind == "tour" else {})).page
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    settled(page)
    if kind == "tour":  # what is folded away is made for paper
        page.locator(".lesson .evidence").nth(1).wait_for()
    assert page.evaluate("() => getComputedStyle(document.querySelector('.masthead')).position") == "static"
    assert page.locator(".lesson .evidence").count() == (2 if kind == "tour" else 0)
    assert page.evaluate(CLIPPED, ".fact, .recommendations li, .sentence, .answer, .settings") == []
    page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def test_bars_of_compile_time_are_as_long_as_their_percentage(opening: Callable[..., Any], breaking: Inspection) -> None:
    page = opening(breaking).page
    rows = page.eval_on_selector_all(
        "[data-own-time]",
        """rows => rows.map(row => {
            const track = row.querySelector(".share").getBoundingClientRect().width;
            const bar = row.querySelector("rect").getBoundingClientRect().width;
            return [row.querySelector("td:nth-child(4)").textContent, bar / track];
        })""",
    )
    assert rows
    for text, share in rows:
        figure = 0.0 if text.startswith(("–", "<")) else float(text.split()[0])
        assert 100 * share == pytest.approx(figure, abs=1.01)


def test_no_line_of_source_is_cut(opening: Callable[..., Any], gpt2: Inspection) -> None:
    page = opening(gpt2, width=1000).page
    cut = "pane => pane.scrollWidth - pane.clientWidth"
    assert page.locator("[data-pane=source] .pane-scroll").evaluate(cut) <= 1
