"""Fixes for graph breaks: one module per kind of break, and trials of the changes they propose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compile_inspect.errors import InspectError
from compile_inspect.fixes.allocation import Allocation
from compile_inspect.fixes.attributes import Attributes
from compile_inspect.fixes.base import BreakSite, Fixer
from compile_inspect.fixes.branches import Branches
from compile_inspect.fixes.builtins import Builtins
from compile_inspect.fixes.contexts import Contexts
from compile_inspect.fixes.foreign_calls import ForeignCalls
from compile_inspect.fixes.loops import Loops
from compile_inspect.fixes.numpy_calls import NumpyCalls
from compile_inspect.fixes.prints import Prints
from compile_inspect.fixes.scalars import Scalars
from compile_inspect.fixes.shapes import Shapes
from compile_inspect.fixes.source import apply
from compile_inspect.fixes.training import Training
from compile_inspect.records import GraphBreak
from compile_inspect.records.fixes import Advice, Proposal

FIXERS: tuple[Fixer, ...] = (
    Prints(),
    Training(),
    NumpyCalls(),
    Shapes(),
    Loops(),
    Branches(),
    Scalars(),
    Contexts(),
    Attributes(),
    Allocation(),
    Builtins(),
    ForeignCalls(),
)
"""All fixers, the more specific ones first."""


def advise(cause: GraphBreak, sources: Mapping[str, str], *, disk: bool = False) -> Advice:
    """Explain a graph break and propose changes; `sources` maps files to their recorded text.

    With `disk`, the files themselves are read, so that proposals fit them byte by byte.
    """
    site = BreakSite.of(cause, sources, disk=disk)
    fixers = [fixer for fixer in FIXERS if fixer.matches(site)]
    if not fixers:
        return Advice(cause.explanation or cause.kind, (), cause.hints)
    proposals = [proposal for fixer in fixers for proposal in fixer.proposals(site)]
    first = fixers[0]
    texts = {} if site.source is None else {site.source.file: site.source.text}
    return Advice(first.why(site), distinct(proposals, texts), first.hints(site))


def distinct(proposals: Iterable[Proposal], texts: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Drop proposals that change nothing and those with the same result as an earlier one.

    `texts` maps files to their current text.
    """
    proposals_by_outcome: dict[object, Proposal] = {}
    for item in proposals:
        outcome = {_outcome(file, item, texts) for file in {change.file for change in item.replacements}}
        outcome -= set(texts.items())
        if outcome or item.settings:
            proposals_by_outcome.setdefault((frozenset(outcome), frozenset(item.settings)), item)
    return tuple(proposals_by_outcome.values())


def _outcome(file: str, proposal: Proposal, texts: Mapping[str, str]) -> tuple[str, object]:
    """A file and its text after a proposal, or the proposal's changes if the text is unknown."""
    changes = [change for change in proposal.replacements if change.file == file]
    if file not in texts:
        return file, frozenset(changes)
    try:
        return file, apply(texts[file], changes)
    except InspectError:
        return file, frozenset(changes)
