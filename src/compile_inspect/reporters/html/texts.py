"""Texts of somebody else's program for a page: without control characters, and never endless."""

from __future__ import annotations

from compile_inspect.wording import plain

MOST_CHARACTERS = 20_000


def paragraph(value: object) -> str:
    """A text that may have several lines.

    >>> paragraph("a\\x1b[31mb\\nc")
    'ab\\nc'
    """
    return _bounded(plain.clean(value))


def words(value: object) -> str:
    """A text on one line.

    >>> words("a\\nb")
    'a b'
    >>> len(words("a" * 10**6)) < 20_100
    True
    """
    return _bounded(plain.one_line(value))


def _bounded(text: str) -> str:
    more = len(text) - MOST_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CHARACTERS]} … {more:,} more characters"
