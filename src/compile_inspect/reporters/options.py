"""Options of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class ShowOptions:
    """Options that apply to every section.

    `all` shows entries that are otherwise folded, `compilation` selects the records of one compile id (such as `0/1`),
    and `limit` is the largest number of entries in any one list.
    """

    all: bool = False
    compilation: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, not {self.limit}")

    def first(self, items: Sequence[Item], default: int | None = None) -> Sequence[Item]:
        """The entries of a list to show; `default` is the limit if the reader set none.

        >>> ShowOptions(limit=2).first("abc")
        'ab'
        >>> ShowOptions(all=True).first("abc", default=1)
        'abc'
        """
        if self.limit is not None:
            return items[: self.limit]
        return items if self.all or default is None else items[:default]
