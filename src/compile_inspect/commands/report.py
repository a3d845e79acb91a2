"""`compile-inspect report FILE... -o out.html`: captures as one page."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.errors import CaptureError, InspectError

if TYPE_CHECKING:
    from compile_inspect.records import Inspection

_DATA = b'<script type="application/gzip" id="data">'


def report(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Capture files.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The HTML file to write. Default: the name of the first capture, with .html"
        ),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare two captures; name the earlier one first.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Leave nothing out, even for large captures.")] = False,
    title: Annotated[str, typer.Option("--title", help="The title of the page. Default: the names of the captures.")] = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the file given with -o. Without -o, an earlier report is replaced."),
    ] = False,
) -> None:
    """Write captures as one HTML file: source, graphs and kernels side by side and linked, and all findings.

    The file is self-contained and needs no network, so you can mail or archive it. Captures of other
    processes of the same program are included.
    """
    if compare and len(files) != 2:
        raise InspectError(f"--compare takes two captures, the earlier one first, not {len(files)}")
    # Without -o, the command may replace a report that it wrote earlier.
    path = output if output is not None else Path(files[0].name or "report").with_suffix(".html")
    _require_writable(path, files, force or (output is None and _is_own_page(path)))

    from compile_inspect.capture_file import load, load_together
    from compile_inspect.report import html

    loaded = [(item, load(item)) for item in files] if compare else load_together(files)
    if compare:
        for item in files:
            others = len(load_together([item])) - 1
            if others:
                typer.echo(f"{item}: captures of other processes of the same program ({others}) are not compared.", err=True)
    captures = _labeled(loaded)
    try:
        page = html(captures, title=title, comparison=compare, whole=whole)
    except (InspectError, OSError):
        raise
    except Exception as error:
        names = ", ".join(map(str, files))
        raise CaptureError(
            f"{names} contains something that cannot be shown ({type(error).__name__}: {error}): it may be damaged"
        ) from error
    _write(path, page)
    typer.echo(f"Wrote {shlex.quote(str(path))} ({len(page.encode()) / 1e6:.1f} MB). Open it in a browser.")


def _is_own_page(path: Path) -> bool:
    """Whether a file is a page that this command wrote: only those contain this data element."""
    try:
        return path.is_file() and _DATA in path.read_bytes()
    except OSError:
        return False


def _require_writable(path: Path, files: Sequence[Path], force: bool) -> None:
    """Raise before captures are read and the page is made, if the page cannot be written."""
    try:
        if path.is_dir():
            raise InspectError(f"{path} is a directory; name a file in it, for example {path / 'report.html'}")
        if path.exists() and not path.is_file():
            raise InspectError(f"{path} is a device or a pipe; name a regular file with -o")
        if any(path.exists() and item.exists() and path.samefile(item) for item in files):
            raise InspectError(f"{path} is one of the captures; give the page another name with -o")
        if path.exists() and not force:
            raise InspectError(f"{path} already exists; choose another name with -o, or add --force to overwrite it")
        parent = path.absolute().parent
        if parent.exists() and not parent.is_dir():
            raise InspectError(f"{path.parent} is a file, not a directory; choose another name with -o")
        if not parent.is_dir():
            raise InspectError(f"the directory {path.parent} does not exist; create it first")
    except (OSError, ValueError) as error:
        raise InspectError(f"{path} cannot be the name of a page ({error}); choose another one with -o") from error


def _labeled(loaded: Sequence[tuple[Path, Inspection]]) -> list[tuple[str, Inspection]]:
    """A distinct name for each capture."""
    names = [item.name for item, _ in loaded]
    if len(set(names)) < len(names):
        names = [str(item) for item, _ in loaded]
    return [(name, inspection) for name, (_, inspection) in zip(names, loaded, strict=True)]


def _write(path: Path, page: str) -> None:
    """Write the page atomically; through a symbolic link, write its target."""
    path = path.resolve()
    partial = path.with_name(f".{os.getpid()}.writing")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    except (OSError, ValueError) as error:
        raise InspectError(f"the page cannot be written to {path}: {error}; choose another name with -o") from error
    finally:
        partial.unlink(missing_ok=True)
