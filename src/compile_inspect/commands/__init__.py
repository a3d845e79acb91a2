"""The command line.

Each command lives in a module of its own and imports what it needs when it runs, so that `--help` and the commands
that only read a capture never load torch.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from compile_inspect import __version__
from compile_inspect.commands.bench import bench
from compile_inspect.commands.breaks import breaks, fix
from compile_inspect.commands.guards import guards
from compile_inspect.commands.inspect import inspect
from compile_inspect.commands.report import report
from compile_inspect.commands.run import run
from compile_inspect.commands.show import show
from compile_inspect.commands.tour import tour
from compile_inspect.commands.verify import verify
from compile_inspect.errors import InspectError

app = typer.Typer(
    name="compile-inspect",
    help="See what torch.compile did with your code: graphs, graph breaks, guards, recompiles, kernels, time.",
    epilog="Start with:  compile-inspect run script.py   then   compile-inspect show script.inspection",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)(run)
app.command()(inspect)
app.command()(breaks)
app.command()(fix)
app.command()(guards)
app.command()(verify)
app.command()(bench)
app.command()(show)
app.command()(report)
app.command()(tour)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"compile-inspect {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; errors a user can act on are printed as one sentence, with exit status 2."""
    try:
        app(prog_name="compile-inspect")
    except InspectError as error:
        typer.echo(f"compile-inspect: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        # Otherwise Python prints a second error when it closes a stdout that cannot be written.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader (head, less) stopped reading
            sys.exit(141)
        typer.echo(f"compile-inspect: {error.strerror or error}", err=True)
        sys.exit(2)
