"""Make strings from another program safe to print.

A capture may come from anywhere. Nothing in it may move the cursor, color the screen, set the window title, or
make a line read differently from what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colors, cursor
    # OSC and others: titles, links. Bounded, so that many unterminated sequences do not each cause a search to the end.
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9b-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
)
# Control characters except tab and newline; marks that reverse the direction of text or break lines; unpaired
# surrogates, which no terminal encoding accepts.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_BREAKS = re.compile(r"[\n\t]+")


def clean(value: object) -> str:
    r"""Remove escape sequences and control characters, but keep newlines and tabs.

    >>> clean("\x1b[31mred\x1b[0m\x00\n")
    'red\n'
    """
    string = str(value)
    if string.isascii() and string.isprintable():  # nearly always true, and much faster to check
        return string
    return _FORBIDDEN.sub("", _ESCAPE_SEQUENCE.sub("", string))


def one_line(value: object) -> str:
    r"""Clean a string and join its lines.

    >>> one_line("a\n  b\x07")
    'a b'
    """
    string = clean(value)
    if "\n" in string or "\t" in string:
        string = " ".join(piece.strip() for piece in _BREAKS.split(string))
    return string.strip()


def shorten(value: object, width: int, *, keep_end: bool = False) -> str:
    """Clean a string and shorten it to at most `width` characters.

    >>> shorten("abcdefgh", 5), shorten("package/model.py:17", 12, keep_end=True)
    ('abcd…', '…model.py:17')
    """
    line = one_line(value)
    if len(line) <= width:
        return line
    return "…" + line[len(line) - width + 1 :] if keep_end else line[: width - 1] + "…"


def enumerate_some(names: Iterable[object], limit: int | None = None) -> str:
    """Several names on one line; those beyond `limit` are only counted.

    >>> enumerate_some(["a", "b", "c"], limit=2)
    'a, b, + 1'
    """
    all_names = [one_line(name) for name in names]
    listed = all_names if limit is None else all_names[:limit]
    more = [f"+ {len(all_names) - len(listed)}"] if len(listed) < len(all_names) else []
    return ", ".join([*listed, *more]) or "-"
