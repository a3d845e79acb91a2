"""Print docs/reference/commands.md: every command with its arguments and options, generated from the code.

    python docs/generate_commands.py             # print the page
    python docs/generate_commands.py --update    # write it

`EXIT_STATUSES` below describes the exit statuses; a command without an entry, or an entry without a command, is an
error. tests/docs/test_reference.py runs this.
"""

from __future__ import annotations

import argparse
import inspect
import typing
from pathlib import Path
from typing import Any

import typer

from compile_inspect.commands import app

PAGE = Path(__file__).parent / "reference" / "commands.md"

EXIT_STATUSES = {
    "run": "the exit status of the program; 128 plus the number of the signal if a signal ended it, as in a shell. 2 also if "
    "`run` cannot start, for example because the capture already exists; the program then does not run.",
    "inspect": "1 if a compilation failed or nothing was compiled; the capture is written all the same. With `--fullgraph`, "
    "most kinds of graph breaks raise an error, but not all: `.item()`, for example, is captured then, and breaks the graph "
    "otherwise.",
    "breaks": "1 if a compilation failed or nothing was compiled. Graph breaks have no effect; use `--json` in scripts.",
    "fix": "1 if some breaks must still be fixed by hand.",
    "guards": "1 if a compilation or one of the calls failed, or nothing was compiled. The prediction has no effect.",
    "verify": "1 if a variant does not agree with eager, no variant could run, or eager returns a different result when it "
    "runs again. A variant that cannot run next to others that do has no effect; `--json` names it.",
    "bench": "1 if nothing could be timed, not even eager; 130 if Ctrl-C ended it. Speed has no effect.",
    "show": "0.",
    "report": "0.",
    "tour": "1 if a lesson failed; 130 if Ctrl-C ended it.",
}

INTRODUCTION = """\
# Commands

<!-- Written by docs/generate_commands.py; do not edit. -->

`python -m compile_inspect` is the same as `compile-inspect`. `-h` and `--help` print the texts of this page.

A TARGET is `module:attribute` or `file.py:attribute`: a function, a module (`torch.nn.Module`) or a
[`Target`](compile_inspect.md), which includes inputs. For a target without inputs, use `--inputs`.

Every command exits with status 0 after it has done its work, and with 2 if it cannot: for an unknown option, a file that
already exists, or a capture that cannot be read. The reason is then printed to standard error. Other exit statuses are listed
with each command.
"""


def page() -> str:
    """The whole page."""
    functions = {_name(command): command.callback for command in app.registered_commands}
    assert set(functions) == set(EXIT_STATUSES), set(functions) ^ set(EXIT_STATUSES)
    return "\n".join([INTRODUCTION, *(section(name, function) for name, function in functions.items())])


def _name(command: Any) -> str:
    return str(command.name or command.callback.__name__)


def section(name: str, function: Any) -> str:
    """The section of one command, from the signature of its function."""
    hints = typing.get_type_hints(function, include_extras=True)
    usage, rows = ["compile-inspect", name, "[OPTIONS]"], []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "context":
            continue
        kind, info = typing.get_args(hints[parameter.name])[:2]
        if isinstance(info, typer.models.ArgumentInfo):
            syntax = f"{info.metavar}{'...' if typing.get_origin(kind) is list else ''}"
            usage.append(syntax)
        else:
            syntax = _flags(info, kind)
        rows.append(f"| {_code(syntax)} | {_default(parameter, info)} | {str(info.help).replace('|', chr(92) + '|')} |")
    table = ["| | Default | Meaning |", "|---|---|---|", *rows]
    exit_status = f"Exit status: {EXIT_STATUSES[name]}"
    parts = [f"## {name}", f"`{' '.join(usage)}`", inspect.getdoc(function), "\n".join(table), exit_status]
    return "\n\n".join(map(str, parts)) + "\n"


def _flags(option: Any, kind: Any) -> str:
    """The names of an option, with a placeholder for its value."""
    names = _names(option)
    inner = [item for item in (typing.get_args(kind) or (kind,)) if item is not type(None)]
    value = (
        "" if bool in inner else f" {option.metavar or {int: 'INTEGER', float: 'NUMBER', str: 'TEXT'}.get(inner[0], 'VALUE')}"
    )
    return ", ".join(f"{name}{value}" for name in names)


def _names(option: Any) -> list[str]:
    # Inside Annotated, typer stores the first name in the place of a default.
    names = (name.strip() for item in (option.default, *(option.param_decls or ())) for name in str(item).split("/"))
    return [name for name in names if name]


def _code(syntax: str) -> str:
    return ", ".join(f"`{item}`" for item in syntax.split(", "))


def _default(parameter: inspect.Parameter, info: Any) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    if parameter.default is True:
        return f"`{_names(info)[0]}`"
    return "" if parameter.default in (None, False, "") else f"`{parameter.default}`"


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true", help="write docs/reference/commands.md")
    if parser.parse_args().update:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
