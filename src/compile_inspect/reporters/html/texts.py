"""Untrusted texts for a page, without control characters and of limited length."""

from __future__ import annotations

from compile_inspect.wording import plain

MAX_CHARACTERS = 20_000


def paragraph(value: object) -> str:
    """A text with possibly several lines.

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
    more = len(text) - MAX_CHARACTERS
    return text if more <= 0 else f"{text[:MAX_CHARACTERS]} … {more:,} more characters"
