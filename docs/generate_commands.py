"""Print docs/reference/commands.md: every command with its arguments and options, from the commands themselves.

    python docs/generate_commands.py             # print the page
    python docs/generate_commands.py --update    # write it

`STATUSES` below describes the exit statuses. A command without an entry, or an entry without a command, is an error.
tests/docs/test_reference.py runs this.
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

STATUSES = {
    "run": "The status of the program; 128 plus the number of the signal if one ended it, as in a shell. 2 also if `run` "
    "cannot start, for instance because the capture exists already; the program is then not run.",
    "inspect": "1 if a compilation failed or nothing was compiled; the capture is written anyway. With `--fullgraph`, most "
    "kinds of graph breaks make the compilation fail, but not all: `.item()`, for example, is captured then, and breaks the "
    "graph otherwise.",
    "breaks": "0, with or without breaks. Programs that need a decision can read `--json`.",
    "fix": "1 if something is left for you to do by hand.",
    "guards": "0; 1 if a compilation or a predicted call failed, or if nothing was compiled.",
    "verify": "1 if a variant does not agree with eager, if none could run, or if eager gives a different result when it runs "
    "again. A variant that cannot run does not count if others run; `--json` names it.",
    "bench": "1 if nothing could be timed, not even eager; 130 if Ctrl-C ended the run. Speed does not affect the status.",
    "show": "0.",
    "report": "0.",
    "tour": "0.",
}

INTRODUCTION = """\
# Commands

<!-- Written by docs/generate_commands.py; do not edit. -->

`python -m compile_inspect` is the same as `compile-inspect`. `-h` and `--help` print the information on this page.

A TARGET is `module:attribute` or `file.py:attribute`: a function, a module (`torch.nn.Module`) or a
[`Target`](compile_inspect.md), which includes inputs. If it has no inputs, `--inputs` says where they are.

Every command ends with status 0 if it succeeds and with 2 if it cannot work: an option that does not exist, a file that
exists already, a capture that cannot be read. It then prints the reason on standard error. Other statuses are described with
each command.
"""


def page() -> str:
    """The whole page."""
    functions = {_name(command): command.callback for command in app.registered_commands}
    assert set(functions) == set(STATUSES), set(functions) ^ set(STATUSES)
    return "\n".join([INTRODUCTION, *(section(name, function) for name, function in functions.items())])


def _name(command: Any) -> str:
    return str(command.name or command.callback.__name__)


def section(name: str, function: Any) -> str:
    """One command, from the signature of its function."""
    hints = typing.get_type_hints(function, include_extras=True)
    usage, rows = ["compile-inspect", name, "[OPTIONS]"], []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "context":
            continue
        kind, described = typing.get_args(hints[parameter.name])[:2]
        if isinstance(described, typer.models.ArgumentInfo):
            shown = f"{described.metavar}{'...' if typing.get_origin(kind) is list else ''}"
            usage.append(shown)
        else:
            shown = _flags(described, kind)
        rows.append(
            f"| {_code(shown)} | {_default(parameter, described)} | {str(described.help).replace('|', chr(92) + '|')} |"
        )
    table = ["| | Default | Meaning |", "|---|---|---|", *rows]
    parts = [f"## {name}", f"`{' '.join(usage)}`", inspect.getdoc(function), "\n".join(table), f"Exit status: {STATUSES[name]}"]
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
    # Inside Annotated, typer keeps the first name where a default would be otherwise.
    return [name for item in (option.default, *(option.param_decls or ())) for name in str(item).split("/")]


def _code(shown: str) -> str:
    return ", ".join(f"`{item}`" for item in shown.split(", "))


def _default(parameter: inspect.Parameter, described: Any) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    if parameter.default is True:
        return f"`{_names(described)[0]}`"
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
