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
        typer.Option("-o", "--output", metavar="FILE", help="The page. Default: the first capture's name, as .html"),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Hold two captures against each other, the earlier one first.")
    ] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Leave nothing out of large captures.")] = False,
    title: Annotated[str, typer.Option("--title", help="What the page is called. Default: the names of the captures.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the file that -o names. Without -o an earlier page is replaced.")
    ] = False,
) -> None:
    """Write captures as one HTML file: source, graphs and kernels side by side, linked, with all that was found.

    The file holds everything it shows, loads nothing and needs no network: mail it, attach it, keep it. Captures of other
    processes of the same program are included.
    """
    if compare and len(files) != 2:
        raise InspectError(f"--compare takes two captures, the earlier one first, not {len(files)}")
    # A name that nobody chose is the command's own: what it wrote there before, it may replace.
    path = output if output is not None else Path(files[0].name or "report").with_suffix(".html")
    _refuse(path, files, force or (output is None and _is_own_page(path)))

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
            f"{names} holds something that cannot be shown ({type(error).__name__}: {error}): it may be damaged"
        ) from error
    _write(path, page)
    typer.echo(f"Wrote {shlex.quote(str(path))} ({len(page.encode()) / 1e6:.1f} MB). Open it in a browser.")


def _is_own_page(path: Path) -> bool:
    """Whether a file is a page that this command wrote: only those hold their data in this way."""
    try:
        return path.is_file() and _DATA in path.read_bytes()
    except OSError:
        return False


def _refuse(path: Path, files: Sequence[Path], force: bool) -> None:
    """Said before captures are read and the page is made, not after."""
    try:
        if path.is_dir():
            raise InspectError(f"{path} is a directory; name a file in it, for example {path / 'report.html'}")
        if path.exists() and not path.is_file():
            raise InspectError(f"{path} is a device or a pipe; name a regular file with -o")
        if any(path.exists() and item.exists() and path.samefile(item) for item in files):
            raise InspectError(f"{path} is one of the captures; give the page another name with -o")
        if path.exists() and not force:
            raise InspectError(f"{path} exists already; choose another name with -o, or add --force to overwrite it")
        parent = path.absolute().parent
        if parent.exists() and not parent.is_dir():
            raise InspectError(f"{path.parent} is a file, not a directory; choose another name with -o")
        if not parent.is_dir():
            raise InspectError(f"the directory {path.parent} does not exist; create it first")
    except (OSError, ValueError) as error:
        raise InspectError(f"{path} cannot be the name of a page ({error}); choose another one with -o") from error


def _labeled(loaded: Sequence[tuple[Path, Inspection]]) -> list[tuple[str, Inspection]]:
    """A name for each capture, such that no two are the same."""
    names = [item.name for item, _ in loaded]
    if len(set(names)) < len(names):
        names = [str(item) for item, _ in loaded]
    return [(name, inspection) for name, (_, inspection) in zip(names, loaded, strict=True)]


def _write(path: Path, page: str) -> None:
    """The page appears whole or not at all; a link stays a link: what it points to is written."""
    path = path.resolve()
    partial = path.with_name(f".{os.getpid()}.writing")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    except (OSError, ValueError) as error:
        raise InspectError(f"the page cannot be written to {path}: {error}; choose another name with -o") from error
    finally:
        partial.unlink(missing_ok=True)
