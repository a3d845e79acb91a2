"""The most important fact of a capture, and the further ones below it.

Everything that a headline may say is a `Statement` of some `Topic`. Topics are declared by importance, so which statement
leads is decided in one place, and a good one never stands above a bad one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from compile_inspect.advice.speedups import SpeedComparison, speed_comparison
from compile_inspect.records import Compilation, Inspection, Outcome, Stage
from compile_inspect.records.agreement import VariantAgreement, Verdict
from compile_inspect.records.failures import Failure
from compile_inspect.reporters.counts import Counts, total
from compile_inspect.reporters.counts import count as counted
from compile_inspect.reporters.text.summary import share_words
from compile_inspect.wording.failures import headline as what_failed
from compile_inspect.wording.failures import sentence as failure_sentence
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import TIMES, count

_MOST_REASON = 220


class Topic(Enum):
    """What a statement is about, the most important first."""

    FAILURE = "the program or a compilation failed"
    WRONG_RESULTS = "a variant does not agree with eager"
    NOT_COMPILED = "nothing, or less than half, runs compiled"
    SLOWER = "compiled code is slower than eager"
    GIVEN_UP = "torch stopped compiling a function"
    BREAKS = "graph breaks, or frames left in eager mode"
    UNFINISHED = "a compilation was under way when the recording ended"
    RECOMPILES = "functions were compiled again"
    UNCOMPARED = "no variant could be compared with eager"
    SAME_SPEED = "compiled code is as fast as eager"
    EVIDENCE = "some evidence is missing"
    FASTER = "compiled code is faster than eager"
    WHOLE = "everything was captured in one graph each"
    AGREES = "all variants agree with eager"
    OUTSIDE = "kernels were made outside of torch.compile"
    NO_RECORD = "no compilation was recorded"


_IMPORTANCE = {topic: place for place, topic in enumerate(Topic)}


@dataclass(frozen=True)
class Statement:
    """One fact in a sentence; `tone` is `good`, `warn`, `bad` or `plain`."""

    topic: Topic
    sentence: str
    tone: str


def statements(inspections: Sequence[Inspection]) -> tuple[Statement, ...]:
    """All that a headline may say about the processes of one program, the most important first; never empty.

    >>> statements([Inspection()])[0].sentence
    'Nothing was compiled while this was recorded.'
    """
    counts = total(counted(inspection) for inspection in inspections)
    told = [*_failures(inspections, counts), *_agreement(inspections), *_capture(inspections, counts), *_speed(inspections)]
    return tuple(sorted(told, key=lambda statement: _IMPORTANCE[statement.topic]))


def _failures(inspections: Sequence[Inspection], counts: Counts) -> Iterator[Statement]:
    failures = [(failure, inspection) for inspection in inspections for failure in inspection.failures]
    of_runs = [(failure, inspection) for failure, inspection in failures if failure.compilation is None]
    of_compilations = [(failure, inspection) for failure, inspection in failures if failure.compilation is not None]
    for failure, inspection in of_runs[:1]:
        # The exception of a compilation may be the one that ends the run: that is one failure, not two.
        source = next((item for item in inspection.failures if item.compilation and item.told == failure.told), None)
        yield Statement(Topic.FAILURE, _ending(failure, source, inspection), "bad")
        of_compilations = [item for item in of_compilations if item[0] is not source]
    failed = max(counts.failed - sum(item.compilation is not None for item, _ in failures) + len(of_compilations), 0)
    if of_compilations:
        told = failure_sentence(*of_compilations[0])
        more = f" {failed - 1} more failed." if failed > 1 else ""
        yield Statement(Topic.FAILURE, f"{shorten(told, _MOST_REASON)}{more}", "bad")
    elif failed:
        yield Statement(Topic.FAILURE, f"{count(failed, 'compilation')} failed.", "bad")


def _ending(failure: Failure, source: Failure | None, inspection: Inspection) -> str:
    if source is None:
        return shorten(failure_sentence(failure, inspection), _MOST_REASON)
    told = failure_sentence(source, inspection).removeprefix(what_failed(source, inspection))
    return shorten(f"{what_failed(source, inspection)}, which ended the run{told}", _MOST_REASON)


def _agreement(inspections: Sequence[Inspection]) -> Iterator[Statement]:
    every = [item for inspection in inspections for agreement in inspection.agreements for item in agreement.variants]
    wrong = [item for item in every if item.verdict is Verdict.DISAGREES]
    ran = [item for item in every if item.verdict is not Verdict.REFUSED]
    if wrong:
        reason = shorten(one_line(wrong[0].reason).rstrip("."), _MOST_REASON)
        verb = "does" if len(_names(wrong)) == 1 else "do"
        named = f"{', '.join(_names(wrong))} {verb} not agree with eager"
        yield Statement(Topic.WRONG_RESULTS, f"Wrong results: {named}{f' ({reason})' if reason else ''}.", "bad")
    elif every and not ran:
        reason = shorten(one_line(every[0].reason).rstrip("."), _MOST_REASON)
        yield Statement(Topic.UNCOMPARED, f"No variant could be compared with eager{f': {reason}' if reason else ''}.", "warn")
    elif ran and not all(item.agrees for item in ran):
        unclear = next(item for item in ran if not item.agrees)
        yield Statement(Topic.UNCOMPARED, f"{_names([unclear])[0]} was not compared: {unclear.verdict.value}.", "warn")
    elif ran:
        verb = "agrees" if len(_names(ran)) == 1 else "agree"
        yield Statement(Topic.AGREES, f"{', '.join(_names(ran))} {verb} with eager.", "good")


def _names(items: Sequence[VariantAgreement]) -> list[str]:
    return list(dict.fromkeys(shorten(one_line(item.name), 60) for item in items))


def _capture(inspections: Sequence[Inspection], counts: Counts) -> Iterator[Statement]:
    """What was compiled, and into how many pieces; nothing is claimed that missing evidence could contradict."""
    if not counts.compilations:
        yield from _nothing_recorded(inspections, counts)
        return
    all_evidence = all(item.complete and not item.missing for item in inspections)
    eager, frames = _frames(inspections)
    # A failure says by itself why nothing runs, and what was not recorded may have been compiled.
    if not any(map(_runs_compiled, inspections)) and all_evidence and not counts.failed and not counts.unfinished:
        traced = f"{count(counts.compilations, 'frame')} traced, no graph with an operation made"
        yield Statement(Topic.NOT_COMPILED, f"Nothing runs compiled: {traced}.", "bad")
    elif counts.share is not None and counts.share.is_near_zero and all_evidence and not counts.failed:
        yield Statement(Topic.NOT_COMPILED, f"Next to nothing runs compiled: {share_words(counts.share)}.", "bad")
    elif 2 * eager > frames:
        yield Statement(Topic.NOT_COMPILED, f"Little runs compiled: {eager} of {frames} frames stay in eager mode.", "bad")
    if counts.limits:
        functions = count(counts.limits, "function")
        told = f"torch stopped compiling {functions}: calls that no version fits run in eager mode."
        yield Statement(Topic.GIVEN_UP, told, "bad")
    pieces = [count(counts.breaks, "graph break")] if counts.breaks else []
    pieces += [f"{count(counts.skipped, 'frame')} left in eager mode"] if counts.skipped and 2 * eager <= frames else []
    if pieces:
        share = share_words(counts.share) if all_evidence else ""
        tail = f" {share[:1].upper()}{share[1:]}." if share else ""
        yield Statement(Topic.BREAKS, f"Not captured whole: {', '.join(pieces)}.{tail}", "warn")
    if counts.unfinished:
        told = f"{count(counts.unfinished, 'compilation')} was still under way when the recording ended."
        told = told.replace(" was ", " were ") if counts.unfinished > 1 else told
        yield Statement(Topic.UNFINISHED, told, "warn")
    if counts.recompiles:
        whole = "" if pieces or counts.failed or counts.limits or counts.unfinished else "Captured whole, but compiled again: "
        told = f"{whole}{count(counts.recompiles, 'recompile')}."
        yield Statement(Topic.RECOMPILES, told, "warn")
    nothing_else = not (pieces or counts.failed or counts.raised or counts.limits or counts.unfinished or counts.recompiles)
    if nothing_else and not all_evidence:
        told = "As far as the evidence goes: no graph break and no recompile."
        yield Statement(Topic.EVIDENCE, told, "warn")
    elif nothing_else and any(map(_runs_compiled, inspections)) and 2 * eager <= frames:
        yield Statement(Topic.WHOLE, "Captured whole: no graph break and no recompile.", "good")


def _nothing_recorded(inspections: Sequence[Inspection], counts: Counts) -> Iterator[Statement]:
    if counts.kernels:  # AOTInductor, say
        told = f"Nothing was compiled by torch.compile; {count(counts.kernels, 'kernel')} made outside of it."
        yield Statement(Topic.OUTSIDE, told, "good")
    elif any(inspection.agreements or inspection.timings for inspection in inspections):
        yield Statement(Topic.NO_RECORD, "No compilation was recorded: this is what was compared and timed.", "plain")
    else:
        before = " before it ended" if counts.raised else ""
        yield Statement(Topic.NOT_COMPILED, f"Nothing was compiled while this was recorded{before}.", "warn")


def _runs_compiled(inspection: Inspection) -> bool:
    """Whether there is any sign of a compiled operation."""
    if not inspection.nothing_compiled or any(lowering.kernels for lowering in inspection.lowerings):
        return True
    graphs = inspection.graphs_at(Stage.DYNAMO)
    if not graphs:  # the compilations say how large their graphs were, and not what was in them
        return any(item.outcome is Outcome.COMPILED and item.graph_nodes > 0 for item in inspection.compilations)
    return any(node.is_call for graph in graphs for node in graph.nodes)


def _frames(inspections: Sequence[Inspection]) -> tuple[int, int]:
    """Frames whose last compilation leaves them in eager mode, and all of them; those with nothing to compile do not count."""
    last: dict[tuple[int, str], Compilation] = {}
    for number, inspection in enumerate(inspections):
        for item in inspection.compilations:
            if item.outcome not in (Outcome.NOTHING_TO_COMPILE, Outcome.UNFINISHED):
                base, _, reset = item.id.partition("@")
                last[number, f"{base.rpartition('/')[0] or base}@{reset}"] = item
    return sum(item.outcome is Outcome.SKIPPED for item in last.values()), len(last)


def _speed(inspections: Sequence[Inspection]) -> Iterator[Statement]:
    found = next((item for inspection in inspections if (item := speed_comparison(inspection)) is not None), None)
    if found is None:
        return
    slower, faster, sizes = found.slower, found.faster, found.sizes
    never = ", and the build never pays back" if found.never_pays_back else ""
    other = "" if found.fastest is None or found.fastest.speed is None else _alternative(found)
    if slower:
        share = "every size" if len(slower) == len(sizes) else f"{len(slower)} of {len(sizes)} sizes"
        at = "" if len(sizes) < 2 else f" at {share}"
        worst = min(slower, key=lambda item: item.speed.ratio)
        yield Statement(Topic.SLOWER, f"Slower than eager{at}: {worst}{never}.{other}", "bad")
    elif faster and len(faster) == len(sizes):
        at = "" if len(sizes) < 2 else " at every size"
        yield Statement(Topic.FASTER, f"Faster than eager{at}: {faster[-1]}.{other}", "good")
    elif faster:
        best = max(faster, key=lambda item: item.speed.ratio)
        at = f"{len(faster)} of {count(len(sizes), 'size')}"
        told = f"Faster than eager at {at}: {best}; no measurable difference at the others."
        yield Statement(Topic.SAME_SPEED, f"{told}{other}", "warn")
    elif sizes:
        yield Statement(Topic.SAME_SPEED, f"No measurable gain over eager: {sizes[-1]}.{other}", "warn")


def _alternative(found: SpeedComparison) -> str:
    assert found.fastest is not None and found.fastest.speed is not None
    return f" {one_line(found.fastest.variant)}: {found.fastest.speed.ratio:.2f}{TIMES}."
