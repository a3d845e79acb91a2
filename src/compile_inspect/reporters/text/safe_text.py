"""Untrusted strings as rich's `Text`, without markup."""

from __future__ import annotations

from rich.text import Text

from compile_inspect.wording.plain import one_line


def plain(value: object, style: str = "") -> Text:
    """One line as a `Text`, without markup or emoji codes.

    >>> plain("[red]x[/red]").plain
    '[red]x[/red]'
    """
    return Text(one_line(value), style=style)
