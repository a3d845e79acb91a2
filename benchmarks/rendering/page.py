"""docs/reference/results.md: a section for each benchmark, with its table, where it comes from and how to repeat it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import stored_results
from stored_results import Document

TRANSCRIBED = "Summary statistics; raw samples not stored."
INTRODUCTION = """\
# Results

<!-- Written by `make results`; do not edit. -->

`make results` makes every table and picture on this page from the files in `benchmarks/results`. Unless a section says
otherwise, a figure is the median of several measurements, and the range in parentheses goes from the smallest to the largest.
Things that are compared take turns, so that other work on the machine affects them alike. A date or commit from git log is
that of the commit that stored the results; what is not listed was not recorded.
[The list of benchmarks](../../benchmarks/README.md) says how to run them.
"""


@dataclass(frozen=True)
class Section:
    """One benchmark on the page."""

    title: str
    result: str
    """The name of its file in benchmarks/results."""
    description: str
    """What is measured, and how."""
    render: Callable[[Document], str]
    """Its tables."""
    draw: Callable[[Document, Path, str], None] | None = None
    """Draws its picture into a file, which names the digest of the data."""
    picture_text: str = ""
    """What the picture shows, for readers who do not see it."""

    @property
    def picture(self) -> str | None:
        """The file name of the picture."""
        return f"{self.result.replace('_', '-').replace('solver-speed-', 'solver-')}.svg" if self.draw else None


def render_page(parts: Sequence[tuple[str, Sequence[Section]]]) -> str:
    """The text of the page; a section without results is left out."""
    lines = [INTRODUCTION]
    for heading, sections in parts:
        lines += [f"## {heading}", ""]
        for section in sections:
            if stored_results.path_of(section.result).exists():
                lines += _section_lines(section, stored_results.load(section.result))
    return "\n".join(lines).rstrip() + "\n"


def _section_lines(section: Section, document: Document) -> list[str]:
    picture = f"![{section.picture_text}](../images/{section.picture})" if section.picture else ""
    repeat = f"Repeat it: `{document['command']}`"
    paragraphs = [f"### {section.title}", section.description, section.render(document).strip(), picture]
    return [line for text in [*paragraphs, provenance(document), repeat] if text for line in (text, "")]


def provenance(document: Document) -> str:
    """Where, when and with what a measurement was made, and what is not known of it."""
    versions = ", ".join(f"{_title(name)} {version}" for name, version in document["versions"].items())
    date = datetime.fromisoformat(document["date"]).date().isoformat()
    commit = document["commit"] or "not recorded"
    changes = ", with uncommitted changes" if document["dirty"] else ""
    commit += f" ({' and '.join(document['from_git_log'])} from git log)" if document["from_git_log"] else ""
    parts = [f"{date}; {_machine(document['machine'])}; {versions}; commit {commit}{changes}{_load(document['load'])}."]
    parts += [TRANSCRIBED] if document["transcribed"] else []
    parts += document["notes"]
    return "*" + " ".join(parts) + "*"


def _machine(machine: dict[str, Any]) -> str:
    cores = None if machine["cores"] is None else f"{machine['cores']} cores"
    memory = None if machine["memory_gib"] is None else f"{machine['memory_gib']:g} GiB"
    return ", ".join(text for text in (machine["gpu"], machine["processor"], cores, memory, machine["system"]) if text)


def _load(load: dict[str, float | None] | None) -> str:
    known = [value for value in (load or {}).values() if value is not None]
    if not known:
        return ""
    return f"; load {min(known):g}" + (f" to {max(known):g}" if max(known) > min(known) else "")


def _title(package: str) -> str:
    return {"python": "Python", "pygranso": "PyGRANSO"}.get(package, package)
