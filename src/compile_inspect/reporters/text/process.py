"""Several processes in one report; identical sections are shown once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.wording.plain import one_line

Renderer = Callable[[Inspection, Console, ShowOptions], None]


def render_processes(
    inspections: Sequence[Inspection], files: Sequence[str], renderer: Renderer, console: Console, options: ShowOptions
) -> None:
    """Render each process under its own header; processes with identical text share one."""
    if len(inspections) == 1:
        renderer(inspections[0], console, options)
        return
    groups: dict[str, list[int]] = {}
    for index, inspection in enumerate(inspections):
        groups.setdefault(_as_text(inspection, renderer, console, options), []).append(index)
    for text, members in groups.items():
        if not text.strip() and len(groups) == 1:
            return  # a section that is empty for every process needs no header
        labels = [_label(inspections[index], files[index] if index < len(files) else "") for index in members]
        console.rule(Text(_join(labels)), align="left", style="dim")
        renderer(inspections[members[0]], console, options)


def _as_text(inspection: Inspection, renderer: Renderer, console: Console, options: ShowOptions) -> str:
    """The section as plain text, to find processes with identical text."""
    file = io.StringIO()
    renderer(inspection, Console(file=file, width=console.width, color_system=None), options)
    return file.getvalue()


def _label(inspection: Inspection, file: str) -> str:
    process = inspection.process
    parts = [one_line(process.label)]
    if process.rank is not None and process.pid:
        parts.append(f"pid {process.pid}")
    if file:
        parts.append(one_line(file))
    if not inspection.complete:
        parts.append("partial")
    return " · ".join(parts)


def _join(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    more = f" and {len(labels) - 4} more" if len(labels) > 4 else ""
    return f"identical in {len(labels)} processes: {', '.join(labels[:4])}{more}"
