"""`compile-inspect run`: record every compilation of an unmodified program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    context: typer.Context,
    program: Annotated[
        str, typer.Argument(metavar="SCRIPT [ARGS]...", help="The script, or with -m the module, to run, and its arguments.")
    ],
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The capture file. Default: SCRIPT.inspection")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the file that -o names. Without -o an earlier capture is replaced.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Compile graphs anew instead of loading them from torch's caches on disk.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say where the capture is.")] = False,
) -> None:
    """Run a program and record what torch.compile does in it.

    Everything after SCRIPT is passed to the program. Its output, exit status and exceptions are its own; where the
    capture is, is said on standard error after the program has ended, unless --quiet.

    Processes it starts (DataLoader workers, torchrun ranks) get captures of their own next to the first, named by
    rank or pid: show takes them together.
    """
    from compile_inspect.capture.launcher import launch

    raise typer.Exit(launch(program, list(context.args), module=module, output=output, force=force, fresh=fresh, quiet=quiet))
