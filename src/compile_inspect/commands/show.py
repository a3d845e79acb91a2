"""`compile-inspect show FILE... [SECTION]`: read a capture in the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import NoColorOption
from compile_inspect.errors import CaptureError, InspectError
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.options import ShowOptions

if TYPE_CHECKING:
    from rich.console import Console

    from compile_inspect.records import Inspection


_WIDTH_WITHOUT_TERMINAL = 120
_MIN_WIDTH = 40


def show(
    arguments: Annotated[list[str], typer.Argument(metavar="FILE", help="Capture files, then optionally a section.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show entries that are otherwise folded.")] = False,
    compilation: Annotated[
        str | None, typer.Option("--compilation", metavar="ID", help="Only this compilation, such as 0/1.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most N entries of each list.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="PATH", help="With the section time: write a trace for Perfetto.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --trace overwrite an existing file.")] = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the contents of a capture and suggest what to look at next.

    compile-inspect show FILE... [SECTION], where SECTION is summary (the default), failures, graphs, breaks, guards, recompiles, kernels, code, time, cache, cudagraphs, bytecode or timing.
    """  # noqa: E501 - a line break here would appear on the screen
    paths, section = split_arguments(arguments)
    if trace is not None and section != "time":
        raise InspectError(f"--trace needs the section time: compile-inspect show FILE time --trace {trace}")

    from compile_inspect.capture_file import load_together

    loaded = load_together(paths)
    try:
        _show(
            loaded,
            paths,
            section,
            ShowOptions(all=everything, compilation=compilation, limit=limit),
            as_json,
            trace,
            force,
            no_color,
        )
    except (InspectError, OSError, typer.Exit):
        raise
    except Exception as error:
        names = ", ".join(map(str, paths))
        raise CaptureError(
            f"{names} contains something that cannot be shown ({type(error).__name__}: {error}): it may be damaged"
        ) from error


def _show(
    loaded: Sequence[tuple[Path, Inspection]],
    paths: Sequence[Path],
    section: str,
    options: ShowOptions,
    as_json: bool,
    trace: Path | None,
    force: bool,
    no_color: bool,
) -> None:
    inspections = [inspection for _, inspection in loaded]
    files = [str(path) for path, _ in loaded]
    if trace is not None:
        _write_trace(trace, inspections, options, force)
        message = f"Wrote {trace}. To view it, open https://ui.perfetto.dev and drop the file there.\n"
        typer.echo(message, err=as_json)
    console = make_console(no_color)
    if as_json:
        from compile_inspect.reporters.json import section_data

        data = section_data(inspections, section, options, files=files)
        # One line for programs, indented for people; non-ASCII characters are escaped, control characters too.
        console.out(json.dumps(data, indent=2 if console.is_terminal else None), highlight=False)
    else:
        from compile_inspect.reporters.text import render

        render(inspections, section, console, files=files, options=options, named=[str(path) for path in paths])


def split_arguments(arguments: Sequence[str]) -> tuple[list[Path], str]:
    """Separate the files from an optional section at the end; a file or folder with the name of a section is `./breaks`.

    >>> split_arguments(["step.inspection", "breaks"])[1]
    'breaks'
    >>> split_arguments(["step.inspection"])[1]
    'summary'
    """
    *before, last = arguments
    section = "summary"
    files = list(arguments)
    if last in SECTIONS and (before or not _exists(last)):
        files, section = before, last
    elif before and not _exists(last) and _is_bare_word(last):
        raise InspectError(f"there is no section {last!r}, and no file of that name; the sections are {', '.join(SECTIONS)}")
    if not files:
        raise InspectError(f"name a capture file before the section: compile-inspect show FILE {section}")
    for name in files:
        if name in SECTIONS and not _exists(name):
            raise InspectError(f"the section comes last: compile-inspect show FILE {name}")
    return [Path(name) for name in files], section


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a file name, or in a folder that may not be read
        return False


def _is_bare_word(name: str) -> bool:
    """Whether a name reads like a section rather than like a file."""
    return name.replace("-", "").replace("_", "").isalnum()


def make_console(no_color: bool) -> Console:
    """A console for standard output: plain and 120 wide where that is not a terminal."""
    from rich.console import Console

    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # an ASCII terminal gets question marks, not a traceback
        reconfigure(errors="replace")
    width = None if sys.stdout.isatty() else _width_without_terminal()
    # An empty NO_COLOR counts as not set; rich reads the variable itself for None.
    return Console(markup=False, emoji=False, highlight=False, width=width, no_color=True if no_color else None)


def _width_without_terminal() -> int:
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), _MIN_WIDTH) if columns.isdecimal() else _WIDTH_WITHOUT_TERMINAL


def _write_trace(path: Path, inspections: Sequence[Inspection], options: ShowOptions, force: bool) -> None:
    from compile_inspect.reporters.chrome_trace import chrome_trace
    from compile_inspect.reporters.selection import select

    data = chrome_trace(select(inspections, options.compilation))
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            json.dump(data, file)
    except FileExistsError as error:
        raise InspectError(f"{path} already exists; choose another name, or add --force to overwrite it") from error
    except OSError as error:
        raise InspectError(f"the trace cannot be written to {path}: {error.strerror or error}") from error
