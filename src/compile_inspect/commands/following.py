"""The command to type after another one, as it can be typed; and the target of a command, kept for that in captures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from compile_inspect.records import NamedTarget
    from compile_inspect.records.timing import MeasurementWarning


def grad_mode(no_grad: bool) -> AbstractContextManager[Any]:
    """What `--no-grad` runs under, all of it: the target and whatever is made of it."""
    if not no_grad:
        return nullcontext()
    import torch

    return torch.no_grad()


def named_target(specification: str, inputs: str | None, no_grad: bool = False) -> NamedTarget:
    """What a command was told about its target, for captures."""
    from compile_inspect.records import NamedTarget

    return NamedTarget(specification, inputs, str(Path.cwd()), no_grad)


def words_of(target: str, inputs: str | None, no_grad: bool = False) -> tuple[str, ...]:
    """A target as it was named.

    >>> words_of("a.py:f", "a.py:inputs")
    ('a.py:f', '--inputs', 'a.py:inputs')
    """
    return (target, *(["--inputs", inputs] if inputs is not None else []), *(["--no-grad"] if no_grad else []))


def command_line(command: str, words: Sequence[str], *options: str) -> str:
    """A command as a shell takes it.

    >>> command_line("verify", ("a.py:f", "--inputs", "float32[4]"))
    "compile-inspect verify a.py:f --inputs 'float32[4]'"
    """
    return shlex.join(["compile-inspect", command, *words, *options])


def reasons_for_eager(doubts: Iterable[MeasurementWarning | None], words: Sequence[str]) -> str:
    """The command that tells why a compiled variant runs in eager mode; empty where none does."""
    from compile_inspect.records.timing import MeasurementWarning

    found = set(doubts)
    if MeasurementWarning.RECOMPILE_LIMIT in found:
        return command_line("guards", words)
    return command_line("breaks", words) if MeasurementWarning.NO_GRAPH in found else ""


def tell_next(console: Console, command: str) -> None:
    """Print the command to type next."""
    from rich.text import Text

    console.print(Text("Next: ", style="dim").append(command, style="bold not dim"), soft_wrap=True)
