"""The documentation builds without a warning, loads nothing from elsewhere, and its search works without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//""")

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = LOADED.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.relative_to(site)}: {found and found[0]}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_the_search_works_in_a_site_opened_from_a_file(site: Path, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto((site / "index.html").as_uri())
    page.click("input.md-search__input")  # which starts the search
    page.wait_for_function("!document.querySelector('.md-search-result__meta').textContent.includes('Initializing')")
    page.keyboard.type("complementarity")
    page.wait_for_selector(".md-search-result__item a[href*='the-certificate']", timeout=30_000, state="attached")
    context.close()
    assert complaints == []
    assert [address for address in requests if not address.startswith(("file:", "data:", "blob:"))] == []
