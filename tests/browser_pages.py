"""A real browser, and reports of real captures in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from compile_inspect import report
from compile_inspect.records import Inspection

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


SETTLED = """() => new Promise(resolve => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => setTimeout(resolve))));
})"""


def settled(page: Any) -> None:
    """Wait until the page has drawn what its events led to: what is lit changes with the next frame, effects come after it."""
    page.evaluate(SETTLED)


@dataclass
class Opened:
    """A page in the browser, with whatever it complained about or asked for."""

    page: Any
    path: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def pane(self, name: str) -> Any:
        """One of the three panes of the explorer."""
        return self.page.locator(f"[data-pane={name}]")

    def lit(self, pane: str, hook: str) -> set[str]:
        """What is lit in a pane, by the value of a hook such as `data-line`."""
        settled(self.page)
        return set(
            self.page.eval_on_selector_all(
                f"[data-pane={pane}] [{hook}].lit, [data-pane={pane}] [{hook}].chosen",
                f"items => items.map(item => item.getAttribute('{hook}'))",
            )
        )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; tests that need it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is there")
    with playwright.sync_playwright() as driver:
        # Containers run as root, where Chromium's own sandbox does not start.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def opening(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Open the report of some inspections (`more` goes to `report.html`); what the page complains about fails the test."""
    contexts: list[Any] = []
    opened: list[Opened] = []

    def open_page(*inspections: Inspection, width: int = 1280, height: int = 900, scheme: str = "light", **more: Any) -> Opened:
        captures = [(f"{number}.inspection", item) for number, item in enumerate(inspections)]
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(report.html(captures, **more), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        found = Opened(context.new_page(), path)
        opened.append(found)
        found.page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("dialog", lambda dialog: (found.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-ready]", timeout=20_000)
        return found

    yield open_page
    for item in opened:
        assert item.complaints == []
        assert [address for address in item.requests if address != item.path.as_uri()] == []
    for context in contexts:
        context.close()


@pytest.fixture
def training(recorded: Callable[[str], Any]) -> Inspection:
    """A network trained for a step: forward and backward in one graph each."""
    return recorded("mlp").inspection


@pytest.fixture
def breaking(recorded: Callable[[str], Any]) -> Inspection:
    """A module with three graph breaks and a recompile."""
    return recorded("breaking").inspection


@pytest.fixture
def gpt2(recorded: Callable[[str], Any]) -> Inspection:
    """A small GPT-2 of transformers."""
    return recorded("gpt2").inspection


def texts(items: Sequence[Any]) -> list[str]:
    """The texts of some elements."""
    return [item.inner_text() for item in items]
