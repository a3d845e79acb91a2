"""`compile-inspect inspect`: compile one target and record it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, NoGradOption, TargetArgument
from compile_inspect.commands.exit_status import exit_status
from compile_inspect.commands.next_commands import named_target
from compile_inspect.commands.progress import VerboseOption, working
from compile_inspect.errors import TargetError


def inspect(
    target: TargetArgument,
    inputs: InputsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The capture file. Default: ATTRIBUTE.inspection")
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="torch.compile's backend.")] = "inductor",
    mode: Annotated[str | None, typer.Option("--mode", help="torch.compile's mode.")] = None,
    dynamic: Annotated[
        bool | None,
        typer.Option("--dynamic/--static", help="torch.compile's dynamic: symbolic or fixed sizes. Default: torch decides."),
    ] = None,
    fullgraph: Annotated[
        bool, typer.Option("--fullgraph", help="torch.compile's fullgraph=True: most graph breaks become errors.")
    ] = False,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the backend; can be repeated.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the file given with -o. Without -o, an earlier capture is replaced."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Recompile graphs instead of loading them from torch's on-disk caches.")
    ] = False,
    no_grad: NoGradOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compile a target, run it forward and backward, and record the compilation.

    TARGET is a Target, a callable that needs no arguments, or a callable or module whose inputs --inputs names.
    """
    path = output or Path(target.rpartition(":")[2].rpartition(".")[2] + ".inspection")
    from compile_inspect.capture_file import refuse_to_overwrite, replaceable, save

    # Checked before torch is imported and the model is built.
    force = force or (output is None and replaceable(path))
    refuse_to_overwrite(path, force=force)
    options = dict(_parse_option(item) for item in option or [])
    from compile_inspect.capture.api import inspect as inspect_target
    from compile_inspect.eager import require_eager
    from compile_inspect.target import find_target

    with working(f"compiling {target} …", verbose=verbose):
        checked_target = require_eager(find_target(target, inputs, no_grad=no_grad))
        inspection = inspect_target(
            checked_target,
            backend=backend,
            mode=mode,
            dynamic=dynamic,
            fullgraph=fullgraph,
            options=options or None,
            path=path,
            force=force,
            fresh=fresh,
        )
        inspection = replace(inspection, target=named_target(target, inputs, no_grad))
        save(inspection, path, force=True)
    from compile_inspect.commands.show import show

    show([str(path)])
    sys.exit(exit_status([inspection]))


def _parse_option(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise TargetError(f"--option {text!r} is not of the form NAME=VALUE, for example max_autotune=true")
    json_text = {"True": "true", "False": "false", "None": "null"}.get(value, value)
    try:
        return name, json.loads(json_text)
    except ValueError:
        return name, value
