"""An mkdocs hook: pages outside docs/ become part of the site, and links lead to them there.

Links in the sources are links between files of the repository, so that they also work on GitHub and in an editor. A link
that leads to no file of the site is left unchanged, and the strict build then fails at it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "project/examples.md",
}
SOURCES = {
    path.relative_to(ROOT).as_posix(): f"project/{path.relative_to(ROOT).as_posix()}.txt"
    for path in (ROOT / "src/nonsmooth").rglob("*.py")
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the files."""
    for path, uri in {**PAGES, **SOURCES}.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    uri = page.file.src_uri
    source = next((path for path, at in PAGES.items() if at == uri), f"docs/{uri}")

    def site_link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        target = _uri(path)
        return match[0] if target is None else posixpath.relpath(target, posixpath.dirname(uri) or ".")

    return LINK.sub(site_link, markdown)


def _uri(path: str) -> str | None:
    if path == "README.md":
        return "index.md"  # the front page of the site covers the same
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path) or SOURCES.get(path)
