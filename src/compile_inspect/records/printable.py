"""Records that people print: one screen in a terminal, and the same in a notebook."""

from __future__ import annotations

from html import escape


class Printable:
    """Something whose `str` is made for reading."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The same text where a notebook would show the repr."""
        return f"<pre>{escape(str(self))}</pre>"
