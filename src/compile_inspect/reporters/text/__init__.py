"""Reports for a terminal, one module per section.

>>> from rich.console import Console
>>> from compile_inspect.records import Inspection
>>> render([Inspection()], "cache", Console(width=100), files=["a.inspection"], options=ShowOptions())
Nothing was compiled during the recording, so there is nothing to show.
<BLANKLINE>
Next: compile-inspect show a.inspection summary
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from rich.console import Console

from compile_inspect.errors import InspectError
from compile_inspect.records import Inspection
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.selection import select
from compile_inspect.reporters.text.messages import PARTIAL, print_warning
from compile_inspect.reporters.text.next_command import print_next
from compile_inspect.reporters.text.process import Renderer, render_processes

__all__ = ["ShowOptions", "render"]

# Imported on demand: all of them together take a tenth of a second.
_MODULES = {section: "summary_details" if section == "summary" else section for section in SECTIONS}


def _renderer(section: str) -> Renderer:
    renderer: Renderer = import_module(f"{__name__}.{_MODULES[section]}").render
    return renderer


def render(
    inspections: Sequence[Inspection],
    section: str,
    console: Console,
    *,
    files: Sequence[str],
    options: ShowOptions,
    named: Sequence[str] = (),
) -> None:
    """Print one section of some captures, and the suggested next command.

    `files` names the capture file of each inspection; `named` are those that the user typed, if the others were found
    next to them.
    """
    if section not in _MODULES:
        raise InspectError(f"there is no section {section!r}; the sections are {', '.join(SECTIONS)}")
    chosen = select(inspections, options.compilation)
    if section == "summary":
        from compile_inspect.reporters.text import summary

        summary.render_overview(chosen, console)
    elif not all(inspection.complete for inspection in chosen):
        print_warning(console, PARTIAL)
        console.print()
    render_processes(chosen, files, _renderer(section), console, options)
    print_next(console, chosen, section, named or files, options)
