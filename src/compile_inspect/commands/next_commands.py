"""The next command to suggest, ready to type; and the record of a command's target, which captures store for that."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from compile_inspect.records import NamedTarget
    from compile_inspect.records.timing import Doubt


def grad_mode(no_grad: bool) -> AbstractContextManager[Any]:
    """The context for `--no-grad`, which covers everything that a command runs."""
    if not no_grad:
        return nullcontext()
    import torch

    return torch.no_grad()


def named_target(specification: str, inputs: str | None, no_grad: bool = False) -> NamedTarget:
    """A command's target as the user specified it, for captures."""
    from compile_inspect.records import NamedTarget

    return NamedTarget(specification, inputs, str(Path.cwd()), no_grad)


def target_arguments(target: str, inputs: str | None, no_grad: bool = False) -> tuple[str, ...]:
    """The arguments that name a target, as the user typed them.

    >>> target_arguments("a.py:f", "a.py:inputs")
    ('a.py:f', '--inputs', 'a.py:inputs')
    """
    return (target, *(["--inputs", inputs] if inputs is not None else []), *(["--no-grad"] if no_grad else []))


def command_line(command: str, arguments: Sequence[str], *options: str) -> str:
    """A command, quoted for a shell.

    >>> command_line("verify", ("a.py:f", "--inputs", "float32[4]"))
    "compile-inspect verify a.py:f --inputs 'float32[4]'"
    """
    return shlex.join(["compile-inspect", command, *arguments, *options])


def command_explaining_eager(doubts: Iterable[Doubt | None], arguments: Sequence[str]) -> str:
    """The command that explains why a compiled variant runs in eager mode; empty where none does."""
    from compile_inspect.records.timing import Doubt

    reasons = set(doubts)
    if Doubt.RECOMPILE_LIMIT in reasons:
        return command_line("guards", arguments)
    return command_line("breaks", arguments) if Doubt.NO_GRAPH in reasons else ""


def print_next_command(console: Console, command: str) -> None:
    """Print the command to type next."""
    from rich.text import Text

    console.print(Text("Next: ", style="dim").append(command, style="bold not dim"), soft_wrap=True)
