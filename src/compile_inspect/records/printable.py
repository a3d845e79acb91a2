"""A mixin for records that notebooks show as text."""

from __future__ import annotations

from html import escape


class Printable:
    """A record whose `str` is written for people."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The same text, instead of the repr, in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"
