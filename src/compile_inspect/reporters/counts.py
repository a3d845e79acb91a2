"""The counts that text and JSON summaries share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compile_inspect.records import CacheOutcome, CompiledShare, Inspection, Outcome


@dataclass(frozen=True)
class Counts:
    """The counts of one process, or of several together."""

    compilations: int = 0
    failed: int = 0
    raised: int = 0
    """Programs that ended with an exception."""
    skipped: int = 0
    unfinished: int = 0
    graphs: int = 0
    share: CompiledShare | None = None
    """Operations that run compiled, of those that torch traced; None if that is unknown for any process."""
    breaks: int = 0
    """Graph breaks that do not follow from another one."""
    break_hits: int = 0
    recompiles: int = 0
    limits: int = 0
    compile_seconds: float = 0.0
    kernels: int = 0
    measurements: int = 0
    """Timings and comparisons in the capture."""
    cache: Mapping[CacheOutcome, int] = field(default_factory=dict)


def count(inspection: Inspection) -> Counts:
    """Count the records of a capture.

    >>> count(Inspection()).compilations
    0
    """
    # Either list may be incomplete where a collector failed. An id without a slash belongs to compiled
    # autograd, and does not tell whether there was an earlier version.
    recompiled = {item.compilation for item in inspection.recompiles}
    recompiled.update(item.id for item in inspection.compilations if "/" in item.id and item.is_recompile)
    # When torch gives up on a function, that attempt makes no version of it.
    abandoned = {item.compilation for item in inspection.limits}
    outcomes = Counter(item.outcome for item in inspection.compilations if item.id not in abandoned)
    return Counts(
        compilations=len(inspection.compilations),
        failed=outcomes[Outcome.FAILED],
        raised=int(inspection.raised is not None),
        skipped=outcomes[Outcome.SKIPPED],
        unfinished=outcomes[Outcome.UNFINISHED],
        graphs=inspection.graph_count,
        share=inspection.share,
        breaks=len(inspection.leading_breaks),
        break_hits=sum(item.hits for item in inspection.leading_breaks),
        recompiles=len(recompiled - abandoned),
        limits=len(inspection.limits),
        compile_seconds=inspection.compile_seconds,
        kernels=sum(len(lowering.kernels) for lowering in inspection.lowerings),
        measurements=len(inspection.timings) + len(inspection.agreements),
        cache=Counter(event.outcome for event in inspection.caches),
    )


def total(parts: Iterable[Counts]) -> Counts:
    """The counts of several processes together.

    >>> total([Counts(compilations=1), Counts(compilations=2)]).compilations
    3
    """
    parts = list(parts)
    cache: Counter[CacheOutcome] = Counter()
    for part in parts:
        cache.update(part.cache)
    return Counts(
        compilations=sum(part.compilations for part in parts),
        failed=sum(part.failed for part in parts),
        raised=sum(part.raised for part in parts),
        skipped=sum(part.skipped for part in parts),
        unfinished=sum(part.unfinished for part in parts),
        graphs=sum(part.graphs for part in parts),
        share=_share([part.share for part in parts if part.compilations]),
        breaks=sum(part.breaks for part in parts),
        break_hits=sum(part.break_hits for part in parts),
        recompiles=sum(part.recompiles for part in parts),
        limits=sum(part.limits for part in parts),
        compile_seconds=sum(part.compile_seconds for part in parts),
        kernels=sum(part.kernels for part in parts),
        measurements=sum(part.measurements for part in parts),
        cache=cache,
    )


def _share(shares: Sequence[CompiledShare | None]) -> CompiledShare | None:
    known = [item for item in shares if item is not None]
    if not known or len(known) < len(shares):
        return None
    return CompiledShare(sum(item.compiled for item in known), sum(item.eager for item in known))
