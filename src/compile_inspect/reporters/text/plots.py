"""Plots made of characters: bars, and lines over a size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from compile_inspect.wording.quantities import seconds

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BRAILLE = 0x2800
# The dots of a braille character by column and row, rows from the bottom up.
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
_COLORS = ("cyan", "yellow", "magenta", "green", "blue", "red")
_HEIGHT = 12
_GUTTER = 10


@dataclass(frozen=True)
class Line:
    """A named line through (size, seconds)."""

    name: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class _Glyphs:
    """The characters of a plot: markers of measured points, a marker for several at one place, and axes."""

    markers: str
    shared: str
    axes: tuple[str, str, str, str, str]
    """The vertical axis and its tick, the corner, the horizontal axis's tick and the axis itself."""
    across: int = 1
    """Horizontal dots per character."""
    up: int = 1
    path: str = ""
    """The character of a line between points; empty: braille dots."""


_UNICODE = _Glyphs("●▲■◆▼★○△□◇▽☆", "✱", ("│", "┤", "└", "┬", "─"), across=2, up=4)
_ASCII = _Glyphs("ox+#@%&$=~^v", "*", ("|", "+", "+", "+", "-"), path=".")


def encoding_of(console: Console) -> str:
    """The encoding of a console's output; rich itself assumes UTF-8 on standard output."""
    return getattr(console.file, "encoding", None) or "utf-8"


def bar(share: float, width: int, encoding: str) -> str:
    """A bar for a fraction, to an eighth of a character where the terminal supports it.

    >>> bar(0.5, 4, "utf-8"), bar(0.3, 4, "utf-8"), bar(0.5, 4, "ascii")
    ('██', '█▎', '##')
    """
    share = min(max(share, 0.0), 1.0)
    if not _can_encode(_EIGHTHS, encoding):
        return "#" * round(share * width)
    whole, rest = divmod(round(share * width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def line_plot(lines: Sequence[Line], *, width: int, label: str, encoding: str = "utf-8") -> list[Text]:
    """Rows of a log-log plot: a marker at every measured size, dots in between.

    >>> for row in line_plot([Line("eager", ((1, 1e-3), (100, 0.1)))], width=24, label="batch", encoding="ascii"):
    ...     print(row.plain.rstrip())
    100.0 ms +            o
             |           .
             |          .
             |         .
             |        .
             |      ..
      8.1 ms +     .
             |    .
             |   .
             |  .
             | .
      1.0 ms +o
             ++-----------+
              1         100
              batch
    o eager
    """
    nonempty_lines = [line for line in lines if line.points]
    if not nonempty_lines:
        return []
    glyphs = _UNICODE if _can_encode("".join((_UNICODE.markers, _UNICODE.shared, *_UNICODE.axes, "⣿")), encoding) else _ASCII
    columns = max(width - _GUTTER - 1, 8)
    xs = sorted({size for line in nonempty_lines for size, _ in line.points})
    ys = [value for line in nonempty_lines for _, value in line.points]
    low, high = min(ys), max(ys)
    across = _Scale(math.log(max(1, xs[0])), math.log(max(1, xs[-1])), columns)
    up = _Scale(math.log(low), math.log(high), _HEIGHT)
    canvas = _Canvas(columns, glyphs)
    for index, line in enumerate(nonempty_lines):
        canvas.draw([(across(math.log(max(1, size))), up(math.log(value))) for size, value in sorted(line.points)], index)
    bar_glyph, tick, corner, mark, dash = glyphs.axes
    labels = {0: low}
    if high > low:
        for row in (_HEIGHT // 2 - 1, _HEIGHT - 1):
            labels[row] = low * (high / low) ** (row / (_HEIGHT - 1))
    rows = []
    for row in reversed(range(_HEIGHT)):
        label_text = seconds(labels[row]) if row in labels else ""
        rows.append(Text(f"{label_text:>{_GUTTER - 2}} {tick if label_text else bar_glyph}").append_text(canvas.row(row)))
    ticks = {across.cell(math.log(max(1, size))): f"{size:,}" for size in xs}
    rows.append(Text(" " * (_GUTTER - 1) + corner + "".join(mark if at in ticks else dash for at in range(columns))))
    rows.append(Text(" " * _GUTTER + _tick_line(ticks, columns)))
    rows.append(Text(" " * _GUTTER + label))
    for index, line in enumerate(nonempty_lines):
        rows.append(Text(_marker(glyphs, index), style=_color(index)).append(f" {line.name}", style="default"))
    if canvas.shared:
        rows.append(Text(f"{glyphs.shared} several points"))
    return rows


@dataclass(frozen=True)
class _Scale:
    """Map values to positions; whole numbers are the centers of characters."""

    low: float
    high: float
    cells: int

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return (value - self.low) / span * (self.cells - 1) if span > 0 else 0.0

    def cell(self, value: float) -> int:
        return round(self(value))


class _Canvas:
    """A grid of characters, each with dots of several lines or a marker."""

    def __init__(self, columns: int, glyphs: _Glyphs) -> None:
        self._glyphs = glyphs
        self._dots = [[0] * columns for _ in range(_HEIGHT)]
        self._owners = [[-1] * columns for _ in range(_HEIGHT)]
        self._markers = [[""] * columns for _ in range(_HEIGHT)]
        self.shared = False

    def draw(self, positions: Sequence[tuple[float, float]], index: int) -> None:
        """Draw a line: dots from place to place, then a marker at each."""
        for (left, bottom), (right, top) in itertools.pairwise(positions):
            steps = max(1, round(max((right - left) * self._glyphs.across, abs(top - bottom) * self._glyphs.up)))
            for step in range(steps + 1):
                self._dot(left + (right - left) * step / steps, bottom + (top - bottom) * step / steps, index)
        for across, up in positions:
            cell = self._markers[round(up)]
            occupied = bool(cell[round(across)])
            cell[round(across)] = self._glyphs.shared if occupied else _marker(self._glyphs, index)
            self._owners[round(up)][round(across)] = -1 if occupied else index
            self.shared |= occupied

    def _dot(self, across: float, up: float, index: int) -> None:
        wide, high = self._glyphs.across, self._glyphs.up
        column, row = (math.floor((across + 0.5) * wide), math.floor((up + 0.5) * high))
        at, over = min(column // wide, len(self._dots[0]) - 1), min(row // high, _HEIGHT - 1)
        self._dots[over][at] |= _DOTS[column % wide][row % high]
        if not self._markers[over][at]:
            self._owners[over][at] = index if self._owners[over][at] in (-1, index) else self._owners[over][at]

    def row(self, number: int) -> Text:
        """One row, each character in the color of its line."""
        text = Text()
        for marker, dots, owner in zip(self._markers[number], self._dots[number], self._owners[number], strict=True):
            character = marker or (self._glyphs.path or chr(_BRAILLE + dots) if dots else " ")
            text.append(character, style=_color(owner) if owner >= 0 else "")
        return text


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def _marker(glyphs: _Glyphs, index: int) -> str:
    return glyphs.markers[index % len(glyphs.markers)]


def _color(index: int) -> str:
    return _COLORS[index % len(_COLORS)]


def _tick_line(ticks: dict[int, str], columns: int) -> str:
    """Labels at their columns, without those that would touch their neighbor."""
    line = [" "] * columns
    free = 0
    for column, text in sorted(ticks.items()):
        start = min(column, columns - len(text))
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 1
    return "".join(line).rstrip()
