"""Links and pictures of every page in the repository lead somewhere; `mkdocs build --strict` looks at the site's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_blocks import FENCE, ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)
MENTION = re.compile(r"(?<![\w/])docs/[\w/.-]+\.(?:md|py|svg|png)")


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = set()
    for heading in HEADING.findall(prose(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found | set(re.findall(r"^::: (\S+)$", prose(path), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(path), f"{page.name}: {link}"


def test_pages_named_in_code_exist() -> None:
    code = [path for folder in ("src", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")]
    for file in [*code, *PAGES]:
        for name in MENTION.findall(file.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{file.relative_to(ROOT)} names {name}"


def test_every_page_is_in_the_navigation() -> None:
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """The navigation only: tags that are functions stay unread."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)

    def named(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [name for value in values for name in named(value)]  # type: ignore[attr-defined]

    listed = [name for name in named(settings["nav"]) if not name.startswith("project/")]
    present = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert present == set(listed)
