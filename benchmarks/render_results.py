"""Write every page and picture that shows measurements, from the files in benchmarks/results.

    python benchmarks/render_results.py            # what `make results` runs
    python benchmarks/render_results.py --check    # names what would change, and changes nothing

It writes all of docs/reference/results.md and docs/explanation/solver-quality.md. Of README.md, of
docs/explanation/solver-mechanisms.md and of docs/explanation/what-the-solver-sees.md it writes only the blocks between
`<!-- results:begin NAME -->` and `<!-- results:end -->`. A picture names the data it was drawn from, so that it is drawn again
only when they change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import stored_results
from rendering import readme, solver_mechanisms, solver_quality, solver_tables
from rendering.page import render_page
from rendering.pictures import digest_of
from rendering.sections import PARTS
from stored_results import ROOT, unpack

RESULTS_PAGE = "docs/reference/results.md"
QUALITY_PAGE = "docs/explanation/solver-quality.md"
MECHANISM_PAGE = "docs/explanation/solver-mechanisms.md"
KINK_PAGE = "docs/explanation/what-the-solver-sees.md"
IMAGES = ROOT / "docs" / "images"


def replace_blocks(text: str, blocks: dict[str, str]) -> str:
    """Put each block between its marks.

    >>> replace_blocks("a\\n<!-- results:begin x -->\\nold\\n<!-- results:end -->\\nb\\n", {"x": "new"})
    'a\\n<!-- results:begin x -->\\n\\nnew\\n\\n<!-- results:end -->\\nb\\n'

    Raises:
        ValueError: If the text does not have the marks of a block.
    """
    for name, block in blocks.items():
        begin, end = f"<!-- results:begin {name} -->", "<!-- results:end -->"
        head, mark, rest = text.partition(begin)
        _, end_mark, tail = rest.partition(end)
        if not mark or not end_mark:
            raise ValueError(f"there is no block {name!r} between {begin} and {end}")
        text = f"{head}{begin}\n\n{block.strip()}\n\n{end}{tail}"
    return text


def mechanism_blocks() -> dict[str, str]:
    """The tables of what mechanisms, units and thresholds are worth."""
    mechanisms, thresholds = (
        {change: unpack(runs) for change, runs in stored_results.load(name)["samples"].items()}
        for name in ("solver_ablation", "solver_thresholds")
    )
    return solver_mechanisms.blocks(mechanisms, thresholds, unpack(stored_results.load("solver_random")["samples"]))


def kink_blocks() -> dict[str, str]:
    """The table of problems with and without kinks read from the program."""
    records = stored_results.load("composite_problems")["samples"]
    text = f"{solver_tables.composite_summary(records)}\n\n{solver_tables.composite_table(records)}"
    return {"composite problems": text}


def texts() -> dict[str, str]:
    """The text that every page should have, by its path."""
    blocks: dict[str, Callable[[], dict[str, str]]] = {
        "README.md": readme.blocks,
        MECHANISM_PAGE: mechanism_blocks,
        KINK_PAGE: kink_blocks,
    }
    return {
        RESULTS_PAGE: render_page(PARTS),
        QUALITY_PAGE: solver_quality.page(stored_results.load("solver_quality")["samples"]),
        **{path: replace_blocks((ROOT / path).read_text(encoding="utf-8"), make()) for path, make in blocks.items()},
    }


def pictures() -> dict[Path, tuple[str, Callable[[Path], None]]]:
    """Every picture with the digest of its data, and how it is drawn."""

    def drawn(draw: Callable[..., None], *arguments: object) -> Callable[[Path], None]:
        return lambda path: draw(arguments[0], path, arguments[1])

    samples = stored_results.load("solver_quality")["samples"]
    digest = digest_of([samples["results"], samples["problems"]])
    pictures_by_path = {IMAGES / "solver-quality.svg": (digest, drawn(solver_quality.draw, samples, digest))}
    for _, sections in PARTS:
        for section in sections:
            if section.draw and section.picture and stored_results.path_of(section.result).exists():
                document = stored_results.load(section.result)
                digest = digest_of(document["samples"] or document["summary"])
                pictures_by_path[IMAGES / section.picture] = (digest, drawn(section.draw, document, digest))
    return pictures_by_path


def drawn_from(path: Path) -> str | None:
    """The digest of the data from which a picture was drawn."""
    if not path.exists():
        return None
    match = re.search(r"<dc:description>data (\w+)</dc:description>", path.read_text(encoding="utf-8"))
    return match[1] if match else None


def outdated() -> list[str]:
    """Pages and pictures that are not what the results give."""
    pages = [path for path, text in texts().items() if _current_text(path) != text]
    return pages + [path.relative_to(ROOT).as_posix() for path, (digest, _) in pictures().items() if drawn_from(path) != digest]


def _current_text(path: str) -> str | None:
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only name what would change; exit with 1 if there is something")
    options = parser.parse_args()
    changed = outdated()
    if options.check:
        print("\n".join(changed))
        sys.exit(1 if changed else 0)
    for path, text in texts().items():
        if path in changed:
            (ROOT / path).write_text(text, encoding="utf-8")
    for path, (_, draw) in pictures().items():
        if path.relative_to(ROOT).as_posix() in changed:
            draw(path)
    print("\n".join(f"wrote {path}" for path in changed) or "every page is current")


if __name__ == "__main__":
    main()
