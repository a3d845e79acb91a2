"""The page of a tour in a real browser: lessons first, then the models that they were about."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compile_inspect.records import Inspection
from compile_inspect.records.lessons import Lesson, Listing, Table

sys.path.append(str(Path(__file__).resolve().parents[1] / "compile_inspect" / "reporters"))

from html_pages import HOSTILE, hostile_lessons, lessons
from samples import everything

TOLD = {"sentence": "3 lessons in 1 min 14 s on torch 2.13.0.", "origin": "torch 2.13.0, x86_64, 2 cores, no GPU"}
TOP = "element => element.getBoundingClientRect().top"

pytestmark = pytest.mark.slow


@pytest.fixture
def touring(opening: Callable[..., Any]) -> Callable[..., Any]:
    """Open the page of a tour about some models."""

    def open_tour(*models: Inspection, taught: tuple[Lesson, ...] = lessons(), **more: Any) -> Any:
        return opening(*models, title="A tour of torch.compile", lessons=taught, **TOLD, **more)

    return open_tour


def unfold(page: Any, key: str) -> Any:
    """Show what was seen in a lesson, and give the lesson."""
    lesson = page.locator(f"#lesson-{key}")
    lesson.locator(".evidence-fold > summary").click()
    lesson.locator(".evidence").wait_for()
    return lesson


def test_the_lessons_of_a_tour_come_before_its_model(touring: Callable[..., Any], training: Inspection) -> None:
    page = touring(training).page
    assert page.locator("main > :first-child").get_attribute("id") == "lessons"
    # A figure and its unit are held together by a space that is not broken.
    assert page.locator("#lessons h2").inner_text().replace("\u00a0", " ") == TOLD["sentence"]
    assert TOLD["sentence"][:-1] in page.title()
    assert TOLD["origin"] in page.locator("#lessons").inner_text()
    assert page.locator("#lesson-stances").evaluate(TOP) < page.locator("#verdict").evaluate(TOP)
    # What a page shows of every capture is there as well, and is named.
    assert page.locator("[data-pane=kernels] [data-kernel]").count() > 0
    assert page.locator("#shown").inner_text() == "Model 0.inspection"


def test_every_lesson_shows_its_question_answer_evidence_and_notes(touring: Callable[..., Any]) -> None:
    page = touring(everything()).page
    for lesson in lessons():
        article = page.locator(f"#lesson-{lesson.key}")
        text = article.inner_text()
        for told in (lesson.title, lesson.question, *lesson.answer, *lesson.notes):
            assert told in text, told
        places = [article.locator(name).evaluate(TOP) for name in (".question", ".answer")]
        assert places == sorted(places)
        assert article.locator(".evidence").count() == 0
        if lesson.evidence:
            assert unfold(page, lesson.key).locator(".evidence").evaluate(TOP) > article.locator(".answer").evaluate(TOP)
    # One at a time: opening the second has folded the first.
    assert page.locator(".evidence").count() == 1
    first = unfold(page, "basics")
    assert first.locator("table caption").inner_text() == "MLP under each backend"
    assert first.locator("tbody tr").nth(1).locator("td").all_inner_texts() == ["9.12 s", "61.3 µs"]
    assert first.locator("thead th").nth(1).evaluate("cell => getComputedStyle(cell).textAlign") == "right"
    assert first.locator(".remark code").inner_text() == "MLP"


def test_the_contents_stay_in_view_and_lead_to_the_lessons(touring: Callable[..., Any]) -> None:
    page = touring(everything()).page
    entries = page.locator(".contents li")
    assert entries.count() == 3 and "12.5 s" in entries.nth(0).inner_text()
    for lesson in lessons():
        page.locator(".contents a", has_text=lesson.title).focus()
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => document.activeElement.id === 'lesson-{lesson.key}'")
        top = page.locator(f"#lesson-{lesson.key}").evaluate(TOP)
        header = page.locator(".masthead").evaluate("element => element.getBoundingClientRect().bottom")
        assert header - 1 <= top < 200 and page.evaluate("() => location.hash") == f"#lesson-{lesson.key}"
        # The list is still there, marks where the reader is, and the evidence of that lesson is open.
        page.wait_for_function(f"() => document.querySelector('.contents [aria-current]').hash === '#lesson-{lesson.key}'")
        assert 0 <= page.locator(".contents").evaluate(TOP) < 300
        assert page.locator(f"#lesson-{lesson.key} .evidence").count() == bool(lesson.evidence)
    links = page.eval_on_selector_all("a[href^='#']", "items => items.map(item => item.getAttribute('href'))")
    for link in set(links):
        assert page.locator(f"[id='{link[1:]}']").count() == 1, link


def test_measurements_are_drawn_to_scale(touring: Callable[..., Any]) -> None:
    page = touring(everything()).page
    chart = page.locator("#lesson-basics .measured")
    assert chart.locator("h5").all_inner_texts() == ["First call", "Later call"]
    width = "bar => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width"
    shares = [bar.evaluate(width) for bar in chart.locator(".bar").all()]
    assert shares == pytest.approx([81.5e-3 / 9.12, 1, 1, 61.3 / 92.0], abs=0.01)
    assert chart.locator("dd").all_inner_texts() == ["81.5 ms", "9.12 s", "92.0 µs", "61.3 µs"]
    assert page.locator("#lesson-graph_breaks .measured").count() == 0


def test_code_is_highlighted_and_changes_are_colored(touring: Callable[..., Any]) -> None:
    page = touring(everything()).page
    lesson = unfold(page, "graph_breaks")
    assert "def" in lesson.locator("[data-listing=python] .tok-keyword").all_inner_texts()
    assert lesson.locator("[data-listing=cpp] .tok-type").count() > 0
    assert lesson.locator("[data-listing=text] [class^=tok-]").count() == 0
    change = lesson.locator("[data-listing=diff]")
    assert change.locator(".removed").all_inner_texts() == ["-    print(x.sum())"]
    assert change.locator(".hunk").count() == 3
    color = "element => getComputedStyle(element).backgroundColor"
    kept = change.locator(".diff-line:not(.removed, .hunk)").first
    assert kept.inner_text() == " def f(x):" and kept.evaluate(color) != change.locator(".removed").evaluate(color)


def test_theory_is_folded_until_it_is_opened_or_printed(touring: Callable[..., Any], tmp_path: Path) -> None:
    long = Listing("Long", "\n".join(f"line {number}" for number in range(400)))
    rows = tuple((f"row {number}", "1") for number in range(300))
    taught = (*lessons(), Lesson("long", "Long", "?", evidence=(long, Table("Many", ("A", ">B"), rows))))
    page = touring(everything(), taught=taught).page
    theory = page.locator("#lesson-basics .theory")
    paragraph = "Backends stop at different stages."
    assert theory.locator("p").count() == 0
    theory.locator("summary").focus()
    page.keyboard.press("Enter")
    theory.locator("p", has_text=paragraph).wait_for()
    assert theory.locator("code").inner_text() == "inductor"
    theory.locator("summary").click()
    theory.locator("p", has_text=paragraph).wait_for(state="detached")
    listing = unfold(page, "long").locator(".listing")
    assert listing.locator(".diff-line").count() == 150 and page.locator("#lesson-long tbody tr").count() == 60
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    theory.locator("p", has_text=paragraph).wait_for()
    listing.locator(".diff-line").nth(399).wait_for()
    assert listing.locator(".diff-line").count() == 400 and page.locator("#lesson-long tbody tr").count() == 300
    assert listing.locator("pre").evaluate("pre => pre.scrollHeight - pre.clientHeight") == 0
    assert not page.locator(".lesson-links").first.is_visible()
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    theory.locator("p", has_text=paragraph).wait_for(state="detached")
    listing.locator(".diff-line").nth(150).wait_for(state="detached")
    assert listing.locator(".diff-line").count() == 150 and page.locator("#lesson-long tbody tr").count() == 60
    page.pdf(path=str(tmp_path / "tour.pdf"))
    assert (tmp_path / "tour.pdf").stat().st_size > 20_000


def test_captures_of_a_tour_are_models(touring: Callable[..., Any]) -> None:
    page = touring(everything(), Inspection()).page
    assert page.locator("header label.captures span").inner_text() == "Models"
    told = " ".join(page.locator("header, nav.parts, #lessons, #together, #shown").all_inner_texts())
    assert "process" not in told.lower()
    assert page.locator("#together th[scope=row]").count() == 2
    page.locator("header select").select_option("1")
    # The lessons stand between the list and the model: it comes into view.
    page.locator("#shown", has_text="Model 1.inspection").wait_for()
    page.wait_for_function("() => Math.abs(document.getElementById('shown').getBoundingClientRect().top - 100) < 100")
    assert "Nothing was compiled" in page.locator("#verdict").inner_text()


def test_a_tour_without_models_is_its_lessons(touring: Callable[..., Any]) -> None:
    page = touring().page
    assert page.locator(".lesson").count() == 3 and page.locator("#verdict").count() == 0
    assert page.locator("nav.parts a").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(touring: Callable[..., Any], scheme: str) -> None:
    wide = Table("Wide", tuple(f">column {number}" for number in range(12)), (("0123456789abcdef",) * 12,))
    code = Listing("w" * 300, "x = " + "y + " * 200, "python")
    taught = (*lessons(), Lesson("wide", "W" * 300, "w" * 300, evidence=(wide, code), answer=("w" * 600,), notes=("n" * 300,)))
    page = touring(everything(), Inspection(), taught=taught, width=360, height=740, scheme=scheme).page
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    unfold(page, "wide")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    # What is wide scrolls in a box that the keyboard reaches.
    for box in ("#lesson-wide .table-box", "#lesson-wide pre"):
        assert page.locator(box).evaluate("box => box.scrollWidth > box.clientWidth")
        page.locator(box).focus()
        assert page.locator(box).evaluate("box => box === document.activeElement")


def test_hostile_lessons_run_nothing(touring: Callable[..., Any]) -> None:
    page = touring(everything(), taught=hostile_lessons()).page
    for fold in page.locator(".lesson").first.locator("summary").all():
        fold.click()
    page.locator(".lesson .evidence").wait_for()
    shown = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    assert shown in HOSTILE
    places = (".contents a", ".question", ".answer", ".remark", ".theory", ".notice", "caption", "td", "figcaption", "pre")
    for where in places:
        assert shown in page.locator(f"#lessons {where}").first.inner_text(), where
    assert page.locator("img, iframe, object, embed").count() == 0 and page.locator("script").count() == 2
    for link in page.eval_on_selector_all("#lessons a", "items => items.map(item => item.getAttribute('href'))"):
        assert link.startswith("#"), link
    keys = page.eval_on_selector_all(".lesson", "items => items.map(item => item.id)")
    assert len(set(keys)) == 2
    page.locator(".contents a").nth(1).click()
    page.wait_for_function(f"() => document.activeElement.id === '{keys[1]}'")
