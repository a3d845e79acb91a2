"""`compile-inspect tour`: the recorder at work on a built-in model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

SECTIONS = ("breaks", "recompiles", "kernels", "time", "summary")


def tour(
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Keep the capture here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the capture file if it exists.")] = False,
) -> None:
    """Record a small built-in model with three graph breaks and a recompile, and show what was found."""
    from compile_inspect.capture.inspecting import inspect
    from compile_inspect.commands.show import show
    from compile_inspect.examples import branching_target

    typer.echo("A small model with a print, an .item() and an `if` on a tensor, called with batches of 4 and 5.")
    typer.echo("Compiling it (some 30 s the first time) …\n")
    with tempfile.TemporaryDirectory() as folder:
        path = output or Path(folder) / "tour.inspection"
        inspect(branching_target(), path=path, force=force)
        for section in SECTIONS:
            show([str(path), section])
            typer.echo()
    if output is None:
        typer.echo("To keep the capture and look further: compile-inspect tour -o tour.inspection")
