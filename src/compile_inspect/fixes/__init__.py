"""What can be done about a graph break: one module per kind, and trials of what they propose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compile_inspect.errors import InspectError
from compile_inspect.fixes.allocation import Allocation
from compile_inspect.fixes.attributes import Attributes
from compile_inspect.fixes.base import Fixer, Place
from compile_inspect.fixes.branches import Branches
from compile_inspect.fixes.builtins import Builtins
from compile_inspect.fixes.contexts import Contexts
from compile_inspect.fixes.foreign import Foreign
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
    Foreign(),
)
"""All kinds, those that know more about a line before those that know less."""


def advise(cause: GraphBreak, sources: Mapping[str, str], *, disk: bool = False) -> Advice:
    """Why a break is one, and what to try; `sources` are the texts of files as they were recorded.

    With `disk`, the files themselves are read, so that what is proposed fits them byte by byte.
    """
    place = Place.of(cause, sources, disk=disk)
    concerned = [fixer for fixer in FIXERS if fixer.concerns(place)]
    if not concerned:
        return Advice(cause.explanation or cause.kind, (), cause.hints)
    proposals = [proposal for fixer in concerned for proposal in fixer.proposals(place)]
    first = concerned[0]
    texts = {} if place.source is None else {place.source.file: place.source.text}
    return Advice(first.why(place), distinct(proposals, texts), first.hints(place))


def distinct(proposals: Iterable[Proposal], texts: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Proposals that change something, without those that lead to what an earlier one leads to, whatever they are called.

    `texts` are the files as they are.
    """
    found: dict[object, Proposal] = {}
    for item in proposals:
        outcome = {_outcome(file, item, texts) for file in {change.file for change in item.replacements}}
        outcome -= set(texts.items())
        if outcome or item.settings:
            found.setdefault((frozenset(outcome), frozenset(item.settings)), item)
    return tuple(found.values())


def _outcome(file: str, proposal: Proposal, texts: Mapping[str, str]) -> tuple[str, object]:
    """A file, and its text after the changes of a proposal, or the changes themselves where the text is not known."""
    changes = [change for change in proposal.replacements if change.file == file]
    if file not in texts:
        return file, frozenset(changes)
    try:
        return file, apply(texts[file], changes)
    except InspectError:
        return file, frozenset(changes)
