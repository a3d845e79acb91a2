"""`compile-inspect tour`: the recorder at work on a built-in model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SECTIONS = ("breaks", "recompiles", "kernels", "time", "summary")


def tour(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The capture file.")] = Path("tour.inspection"),
) -> None:
    """Record a small built-in model with three graph breaks and a recompile, and show what was found."""
    from compile_inspect.capture.inspecting import inspect
    from compile_inspect.commands.show import show
    from compile_inspect.examples import branching_target

    typer.echo("A small model with a print, an .item() and an `if` on a tensor, called with batches of 4 and 5.")
    typer.echo("Compiling it (some 30 s the first time) …\n")
    # The tour's own file may be replaced by the next tour; another name is the user's.
    inspect(branching_target(), path=output, force=output == Path("tour.inspection"), fresh=True)
    for section in SECTIONS:
        show([str(output), section])
        typer.echo()
