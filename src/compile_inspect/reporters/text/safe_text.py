"""Strings of somebody else's program as rich's `Text`, in which nothing is markup."""

from __future__ import annotations

from rich.text import Text

from compile_inspect.wording.plain import one_line


def plain(value: object, style: str = "") -> Text:
    """One line as a `Text`: never markup, never an emoji code.

    >>> plain("[red]x[/red]").plain
    '[red]x[/red]'
    """
    return Text(one_line(value), style=style)
