"""The interface that all fixers share."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from compile_inspect.fixes.source import SourceFile, read
from compile_inspect.records import GraphBreak, Location
from compile_inspect.records.fixes import Proposal, Replacement, Setting


@dataclass(frozen=True)
class BreakSite:
    """Where a graph break occurs: the user's own line, in the file as it was recorded."""

    cause: GraphBreak
    location: Location | None
    source: SourceFile | None
    """None if the file is unavailable or belongs to an installed package; then no line of it is rewritten."""
    in_library: bool = False
    """Whether the break itself is inside an installed package that the user's line calls."""

    @classmethod
    def of(cls, cause: GraphBreak, sources: Mapping[str, str], *, disk: bool = False) -> BreakSite:
        """The site of a cause in the recorded text; with `disk`, in the file itself if it has not changed."""
        location = cause.own_location or cause.location
        library = cause.location is not None and cause.location.in_library and not cause.location.in_torch
        deeper = library and cause.location != location
        if location is None or location.in_library:
            return cls(cause, location, None, True)
        return cls(cause, location, read(location.file, sources.get(location.file), disk=disk), deeper)

    @cached_property
    def statement(self) -> ast.stmt | None:
        """The statement that breaks the graph."""
        if self.source is None or self.location is None:
            return None
        return self.source.statement_at(self.location.line)

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """All statements on the line: usually only the one that breaks the graph."""
        if self.source is None or self.location is None:
            return []
        return self.source.statements_at(self.location.line)

    @property
    def line(self) -> int:
        """The line number; 0 if there is none."""
        return 0 if self.location is None else self.location.line

    def calls(self, *names: str) -> list[ast.Call]:
        """Calls in the statement to functions or methods with one of these names, outer ones first."""
        if self.source is None or self.statement is None:
            return []
        heads = self.source.head(self.statement)
        return [node for node in heads if isinstance(node, ast.Call) and (not names or last_name(node.func) in names)]

    def mentions(self, *words: str) -> bool:
        """Whether torch's own message for the break contains one of these."""
        text = "\n".join((self.cause.kind, self.cause.explanation, self.cause.context, self.cause.text))
        return any(word in text for word in words)


class Fixer(ABC):
    """One kind of graph break: why it occurs, and what to write instead."""

    name: ClassVar[str]
    """Its name, such as `prints`."""

    @abstractmethod
    def matches(self, site: BreakSite) -> bool:
        """Whether the break is of this kind."""

    @abstractmethod
    def why(self, site: BreakSite) -> str:
        """Why the graph breaks, in a sentence or two for someone who does not know Dynamo."""

    @abstractmethod
    def proposals(self, site: BreakSite) -> list[Proposal]:
        """What to try, the best first. Each proposal is proven before it is recommended, so it may turn out not to work."""

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What helps beyond the proposals; torch's own hints unless the fixer has better ones."""
        return site.cause.hints

    def rewrite(
        self, title: str, *replacements: Replacement | None, changes: str = "", where: str = "", settings: tuple[str, ...] = ()
    ) -> Proposal:
        """A proposal that changes lines; replacements that are None (an import that exists already) are skipped."""
        edits = tuple(item for item in replacements if item is not None)
        return Proposal(self.name, title, edits, tuple(Setting(code) for code in settings), changes, where)

    def setting(self, title: str, *codes: str, changes: str = "", where: str = "") -> Proposal:
        """A proposal that changes settings and leaves the code as it is."""
        return Proposal(self.name, title, (), tuple(Setting(code) for code in codes), changes, where)


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name: `item` for `loss.item`, `print` for `print`; empty for any other node.

    >>> last_name(ast.parse("a.b.c", mode="eval").body)
    'c'
    """
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """A dotted name as it is written; empty for any other node.

    >>> dotted(ast.parse("np.random.rand", mode="eval").body)
    'np.random.rand'
    """
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""
