"""The report at the end of a tour: everything that was measured, as one page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compile_inspect.errors import InspectError
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from pathlib import Path

    from compile_inspect.records.lessons import Lesson
    from compile_inspect.tour.guide import Guide


def write_report(lessons: Sequence[Lesson], guide: Guide, duration: float) -> Path:
    """Write the page and the captures that it shows into the tour's folder, and print where the page is."""
    from compile_inspect.capture_file import save
    from compile_inspect.report import html

    machine = guide.machine
    sentence = f"{count(len(lessons), 'lesson')} in {seconds(duration)} on torch {machine.torch}."
    # The page opens with the first capture, and captures with kernels have the most to look at.
    captures = sorted(guide.captures.items(), key=lambda item: not item[1].lowerings)
    page = html(captures, title="A tour of torch.compile", lessons=lessons, sentence=sentence, origin=str(machine))
    path = guide.folder.path / "report.html"
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InspectError(f"the report cannot be written to {path} ({error}): name another folder with -o") from error
    for name, inspection in captures:
        save(inspection, path.with_name(f"{re.sub(r'[^A-Za-z0-9_]+', '_', name)}.inspection"), force=True)
    guide.console.rule(style="blue")
    size = f"{len(page.encode()) / 1e6:.1f} MB"
    lesson_count = count(len(lessons), "lesson")
    guide.console.print(f"{lesson_count} in {seconds(duration)}. Wrote {path} ({size}). Open it in a browser.")
    return path
