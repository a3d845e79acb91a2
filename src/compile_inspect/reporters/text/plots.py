"""Plots made of characters: bars, and lines over a size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

from compile_inspect.reporters.text.quantities import seconds

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHT = 12


@dataclass(frozen=True)
class Line:
    """A named line through (size, seconds)."""

    name: str
    points: tuple[tuple[int, float], ...]


def bar(share: float, width: int, encoding: str) -> str:
    """A bar for a share of 1, to an eighth of a character where the terminal knows them.

    >>> bar(0.5, 4, "utf-8"), bar(0.3, 4, "utf-8"), bar(0.5, 4, "ascii")
    ('██', '█▎', '##')
    """
    share = min(max(share, 0.0), 1.0)
    if not encoding.lower().startswith("utf"):
        return "#" * round(share * width)
    whole, rest = divmod(round(share * width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def line_plot(lines: Sequence[Line], *, width: int, label: str) -> list[str]:
    """Rows of a plot with both axes logarithmic; every line is drawn with a letter, `*` where several meet.

    >>> for row in line_plot([Line("eager", ((1, 1e-3), (100, 0.1)))], width=24, label="batch"):
    ...     print(row.rstrip())
    100.0 ms │            a
             │           a
             │          a
             │         a
             │        a
             │      aa
     10.0 ms │     a
             │    a
             │   a
             │  a
             │ a
      1.0 ms │a
             └─────────────
              1         100
              batch
    a eager
    """
    drawn = [line for line in lines if line.points]
    if not drawn:
        return []
    xs = sorted({size for line in drawn for size, _ in line.points})
    ys = [value for line in drawn for _, value in line.points]
    gutter = 9
    columns = max(width - gutter - 2, 8)
    across = _scale(math.log(max(1, xs[0])), math.log(max(1, xs[-1])), columns - 1)
    up = _scale(math.log(min(ys)), math.log(max(ys)), _HEIGHT - 1)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for letter, line in zip(_letters(len(drawn)), drawn, strict=True):
        _draw(grid, [(across(math.log(max(1, size))), up(math.log(value))) for size, value in sorted(line.points)], letter)
    low, high = min(ys), max(ys)
    ticks = {_HEIGHT - 1: high, _HEIGHT // 2 - 1: math.sqrt(low * high), 0: low}
    rows = [
        f"{seconds(ticks[row]) if row in ticks else '':>{gutter - 1}} │{''.join(grid[row])}" for row in reversed(range(_HEIGHT))
    ]
    rows.append(" " * gutter + "└" + "─" * columns)
    rows.append(" " * (gutter + 1) + _tick_line({across(math.log(max(1, size))): f"{size:,}" for size in xs}, columns))
    rows.append(" " * (gutter + 1) + label)
    return rows + [f"{letter} {line.name}" for letter, line in zip(_letters(len(drawn)), drawn, strict=True)]


def _letters(count: int) -> str:
    return (ascii_letters * (count // len(ascii_letters) + 1))[:count]


def _scale(low: float, high: float, last: int) -> _Scale:
    return _Scale(low, high - low, last)


@dataclass(frozen=True)
class _Scale:
    low: float
    span: float
    last: int

    def __call__(self, value: float) -> int:
        return round((value - self.low) / self.span * self.last) if self.span > 0 else 0


def _draw(grid: list[list[str]], places: Sequence[tuple[int, int]], letter: str) -> None:
    for index, (column, row) in enumerate(places):
        next_column, next_row = places[min(index + 1, len(places) - 1)]
        for step in range(max(1, next_column - column)):
            part = step / max(1, next_column - column)
            cell = grid[round(row + (next_row - row) * part)]
            cell[column + step] = letter if cell[column + step] in (" ", letter) else "*"


def _tick_line(ticks: dict[int, str], columns: int) -> str:
    """Labels at their columns, those left out that would touch their neighbour."""
    line = [" "] * columns
    free = 0
    for column, text in sorted(ticks.items()):
        start = min(column, columns - len(text))
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 1
    return "".join(line).rstrip()
