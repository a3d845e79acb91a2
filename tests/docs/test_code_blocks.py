"""The Python in the pages about the solver, timing and agreement runs as it stands, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Block = tuple[int, str, str | None]


def blocks(page: str) -> list[Block]:
    """Line, code and, where a text block follows directly, the output promised; only what is about the solver."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Block] = []
    matches = list(FENCE.finditer(text))
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        if match[1] != "python":
            continue
        promised = None
        if following is not None and following[1] == "text" and not text[match.end() : following.start()].strip():
            promised = following[2]
        found.append((text.count("\n", 0, match.start()) + 2, match[2], promised))
    return found


def agrees(promised: str, printed: str) -> bool:
    """Whether the output is as promised; … stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in promised.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def execute(page: str, block: Block, names: dict[str, object]) -> None:
    line, code, promised = block
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + code, page, "exec"), names)  # tracebacks name the line of the page
    assert promised is None or agrees(promised, printed.getvalue()), f"{page}:{line} prints\n{printed.getvalue()}"


def test_the_page_of_the_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks are one session: each may use what was defined before it."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    found = blocks("docs/solver.md")
    assert len(found) > 15
    for block in found:
        execute("docs/solver.md", block, names)


def test_the_page_about_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session too."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    found = blocks("docs/bench.md")
    assert len(found) == 5
    for block in found:
        execute("docs/bench.md", block, names)


def test_the_page_about_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """One session too; run from the root, for blame reads the lines of the page."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__name__": "page"}
    found = blocks("docs/verify.md")
    assert len(found) == 7
    for block in found:
        execute("docs/verify.md", block, names)


def test_the_page_about_recompiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks("docs/recompiles.md"):
        execute("docs/recompiles.md", block, names)


def test_the_page_about_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("docs/breaks.md")
    execute("docs/breaks.md", block, {"__name__": "page"})


def test_the_page_about_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("docs/report.md")
    execute("docs/report.md", block, {"__name__": "page"})


def test_every_picture_in_the_docs_is_there() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / picture).is_file(), f"{page.name}: {picture}"


@pytest.mark.parametrize("page", ["README.md", "docs/from-pygranso.md"])
def test_blocks_that_stand_alone(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [block for block in blocks(page) if re.search(r"^(from|import) nonsmooth", block[1], re.MULTILINE)]
    assert found
    for block in found:
        execute(page, block, {"__name__": "page"})


def test_the_page_about_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session too."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    found = blocks("docs/tune.md")
    assert len(found) == 3
    for block in found:
        execute("docs/tune.md", block, names)
