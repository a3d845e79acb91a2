"""Tables: rich's for short lists, a faster one for lists of thousands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from compile_inspect.wording.plain import one_line, shorten

_GAP = "  "


def new_table(*columns: str) -> Table:
    """An empty table; a column whose name starts with `>` is aligned to the right."""
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
        border_style="dim",
    )
    for column in columns:
        heading = column.removeprefix(">")
        # Cells can be folded anywhere, but not the words of a heading.
        longest = max(map(len, heading.split()), default=0)
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        table.add_column(Text(heading), justify=justify, overflow="fold", min_width=longest)
    return table


def add_row(table: Table, *cells: str | Text) -> None:
    """Add a row; strings are taken literally, never as markup."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in cells))


def print_table(console: Console, table: Table, indent: int = 2) -> None:
    """Print an indented table."""
    console.print(Padding(table, (0, 0, 0, indent), expand=False))


def print_listing(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    styles: Sequence[str] = (),
    indent: str = "  ",
    keep_ends: Sequence[int] = (),
    whole: bool = False,
) -> None:
    """Print columns of plain strings, one line per row.

    Cells are cut to make a row fit the screen, the widest column first, unless `whole`. The columns `keep_ends` are
    cut at their beginning: the end of a location or a long variable name is the informative part.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    table = [list(headings), *cells] if headings else cells
    if not table:
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if not whole:
        widths = fit(widths, console.width - len(indent) - len(_GAP) * (len(widths) - 1))
        table = [
            [
                cell if len(cell) <= width else shorten(cell, width, keep_end=column in keep_ends)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in table
        ]
    lines = []
    for position, row in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        pieces = [*padded, row[-1]]
        if position == 0 and headings:
            lines.append(Text(indent + _GAP.join(pieces), style="dim"))
        elif console.color_system is None:
            lines.append(Text((indent + _GAP.join(pieces)).rstrip()))
        else:
            lines.append(_styled(pieces, styles, indent))
    console.print(Text("\n").join(lines), soft_wrap=True)


def _styled(pieces: Sequence[str], styles: Sequence[str], indent: str) -> Text:
    line = Text(indent)
    for index, piece in enumerate(pieces):
        line.append(piece, style=styles[index] if index < len(styles) else "")
        line.append(_GAP if index + 1 < len(pieces) else "")
    return line


def fit(widths: Sequence[int], available: int, min_width: int = 8) -> list[int]:
    """Cut the widest columns until all fit into `available`; none below `min_width`.

    >>> fit([10, 50, 20], 60)
    [10, 30, 20]
    """
    cap = max(widths, default=0)
    while cap > min_width and sum(min(width, cap) for width in widths) > available:
        cap -= 1
    return [min(width, cap) for width in widths]
