"""`compile-inspect run`: record every compilation of an unmodified program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    context: typer.Context,
    program: Annotated[
        str, typer.Argument(metavar="SCRIPT [ARGS]...", help="The script (with -m, the module) to run, and its arguments.")
    ],
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The capture file. Default: SCRIPT.inspection")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the file given with -o. Without -o, an earlier capture is replaced."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Recompile graphs instead of loading them from torch's on-disk caches.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print the path of the capture.")] = False,
) -> None:
    """Run a program and record what torch.compile does in it.

    Everything after SCRIPT is passed to the program. Its output, exit status and exceptions are unchanged. After the
    program ends, the path of the capture is printed to standard error, unless --quiet.

    Child processes (DataLoader workers, torchrun ranks) get separate captures next to the first one, named by
    rank or pid; `show` reads them together.
    """
    from compile_inspect.capture.program import launch

    raise typer.Exit(launch(program, list(context.args), module=module, output=output, force=force, fresh=fresh, quiet=quiet))
