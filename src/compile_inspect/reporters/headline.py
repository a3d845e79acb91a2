"""The most important fact about a capture, followed by others.

Every possible headline is a `Statement` about a `Topic`. Topics are declared in order of importance: the most important
statement comes first, and a good one never comes before a bad one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from compile_inspect.advice.speedups import SpeedComparison, speed_comparison
from compile_inspect.records import Compilation, CompilationOutcome, Inspection, Stage
from compile_inspect.records.agreement import VariantAgreement, Verdict
from compile_inspect.records.failures import Failure
from compile_inspect.reporters.counts import Counts, total
from compile_inspect.reporters.counts import count as counted
from compile_inspect.reporters.text.summary import share_words
from compile_inspect.wording.failures import headline as failed_part
from compile_inspect.wording.failures import sentence as failure_sentence
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import TIMES, count

_MAX_REASON_CHARACTERS = 220


class Topic(Enum):
    """What a statement is about, in order of importance."""

    FAILURE = "the program or a compilation failed"
    WRONG_RESULTS = "a variant does not agree with eager"
    NOT_COMPILED = "nothing, or less than half, runs compiled"
    SLOWER = "compiled code is slower than eager"
    GIVEN_UP = "torch stopped compiling a function"
    BREAKS = "graph breaks, or frames left in eager mode"
    UNFINISHED = "a compilation was under way when the recording ended"
    RECOMPILES = "functions were compiled again"
    UNCOMPARED = "no variant could be compared with eager"
    SAME_SPEED = "compiled code is about as fast as eager"
    EVIDENCE = "some evidence is missing"
    FASTER = "compiled code is faster than eager"
    FULL_GRAPHS = "every frame was captured as one graph"
    AGREES = "all variants agree with eager"
    OUTSIDE = "kernels were generated outside of torch.compile"
    NO_RECORD = "no compilation was recorded"


_IMPORTANCE = {topic: rank for rank, topic in enumerate(Topic)}


@dataclass(frozen=True)
class Statement:
    """One fact in a sentence; `tone` is `good`, `warn`, `bad` or `plain`."""

    topic: Topic
    sentence: str
    tone: str


def statements(inspections: Sequence[Inspection]) -> tuple[Statement, ...]:
    """All statements about the processes of one program, the most important first; never empty.

    >>> statements([Inspection()])[0].sentence
    'Nothing was compiled during the recording.'
    """
    counts = total(counted(inspection) for inspection in inspections)
    every_statement = [
        *_failures(inspections, counts),
        *_agreement(inspections),
        *_capture(inspections, counts),
        *_speed(inspections),
    ]
    return tuple(sorted(every_statement, key=lambda statement: _IMPORTANCE[statement.topic]))


def _failures(inspections: Sequence[Inspection], counts: Counts) -> Iterator[Statement]:
    failures = [(failure, inspection) for inspection in inspections for failure in inspection.failures]
    of_runs = [(failure, inspection) for failure, inspection in failures if failure.compilation is None]
    of_compilations = [(failure, inspection) for failure, inspection in failures if failure.compilation is not None]
    for failure, inspection in of_runs[:1]:
        # The exception of a compilation may also end the run: that is one failure, not two.
        source = next((item for item in inspection.failures if item.compilation and item.summary == failure.summary), None)
        yield Statement(Topic.FAILURE, _ending(failure, source, inspection), "bad")
        of_compilations = [item for item in of_compilations if item[0] is not source]
    failed = max(counts.failed - sum(item.compilation is not None for item, _ in failures) + len(of_compilations), 0)
    if of_compilations:
        sentence = failure_sentence(*of_compilations[0])
        more = f" {failed - 1} more failed." if failed > 1 else ""
        yield Statement(Topic.FAILURE, f"{shorten(sentence, _MAX_REASON_CHARACTERS)}{more}", "bad")
    elif failed:
        yield Statement(Topic.FAILURE, f"{count(failed, 'compilation')} failed.", "bad")


def _ending(failure: Failure, source: Failure | None, inspection: Inspection) -> str:
    if source is None:
        return shorten(failure_sentence(failure, inspection), _MAX_REASON_CHARACTERS)
    details = failure_sentence(source, inspection).removeprefix(failed_part(source, inspection))
    return shorten(f"{failed_part(source, inspection)}, which ended the run{details}", _MAX_REASON_CHARACTERS)


def _agreement(inspections: Sequence[Inspection]) -> Iterator[Statement]:
    compared_variants = [
        item for inspection in inspections for agreement in inspection.agreements for item in agreement.variants
    ]
    mismatches = [item for item in compared_variants if item.verdict is Verdict.DISAGREES]
    ran = [item for item in compared_variants if item.verdict is not Verdict.REFUSED]
    if mismatches:
        reason = shorten(one_line(mismatches[0].reason).rstrip("."), _MAX_REASON_CHARACTERS)
        verb = "does" if len(_names(mismatches)) == 1 else "do"
        claim = f"{', '.join(_names(mismatches))} {verb} not agree with eager"
        yield Statement(Topic.WRONG_RESULTS, f"Incorrect results: {claim}{f' ({reason})' if reason else ''}.", "bad")
    elif compared_variants and not ran:
        reason = shorten(one_line(compared_variants[0].reason).rstrip("."), _MAX_REASON_CHARACTERS)
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
    """What was compiled, and into how many graphs; makes no claim that missing evidence could contradict."""
    if not counts.compilations:
        yield from _nothing_recorded(inspections, counts)
        return
    all_evidence = all(item.complete and not item.missing_evidence for item in inspections)
    eager, frames = _frames(inspections)
    # A failure already explains why nothing runs compiled, and unrecorded parts may have been compiled.
    if not any(map(_runs_compiled, inspections)) and all_evidence and not counts.failed and not counts.unfinished:
        traced = f"{count(counts.compilations, 'frame')} traced, but no graph contains an operation"
        yield Statement(Topic.NOT_COMPILED, f"Nothing runs compiled: {traced}.", "bad")
    elif counts.share is not None and counts.share.is_near_zero and all_evidence and not counts.failed:
        yield Statement(Topic.NOT_COMPILED, f"Almost nothing runs compiled: {share_words(counts.share)}.", "bad")
    elif 2 * eager > frames:
        yield Statement(
            Topic.NOT_COMPILED, f"Less than half runs compiled: {eager} of {frames} frames stay in eager mode.", "bad"
        )
    if counts.limits:
        functions = count(counts.limits, "function")
        sentence = f"torch stopped compiling {functions}: calls that match no version run in eager mode."
        yield Statement(Topic.GIVEN_UP, sentence, "bad")
    interruptions = [count(counts.breaks, "graph break")] if counts.breaks else []
    interruptions += [f"{count(counts.skipped, 'frame')} left in eager mode"] if counts.skipped and 2 * eager <= frames else []
    if interruptions:
        share = share_words(counts.share) if all_evidence else ""
        tail = f" {share[:1].upper()}{share[1:]}." if share else ""
        yield Statement(Topic.BREAKS, f"{', '.join(interruptions)}.{tail}", "warn")
    if counts.unfinished:
        sentence = f"{count(counts.unfinished, 'compilation')} was not finished when the recording ended."
        sentence = sentence.replace(" was ", " were ", 1) if counts.unfinished > 1 else sentence
        yield Statement(Topic.UNFINISHED, sentence, "warn")
    if counts.recompiles:
        incomplete = interruptions or counts.failed or counts.limits or counts.unfinished
        prefix = "" if incomplete else "No graph breaks, but "
        sentence = f"{prefix}{count(counts.recompiles, 'recompile')}."
        yield Statement(Topic.RECOMPILES, sentence, "warn")
    nothing_else = not (
        interruptions or counts.failed or counts.raised or counts.limits or counts.unfinished or counts.recompiles
    )
    if nothing_else and not all_evidence:
        sentence = "No graph breaks and no recompiles, as far as recorded."
        yield Statement(Topic.EVIDENCE, sentence, "warn")
    elif nothing_else and any(map(_runs_compiled, inspections)) and 2 * eager <= frames:
        yield Statement(Topic.FULL_GRAPHS, "No graph breaks and no recompiles: every frame was captured as one graph.", "good")


def _nothing_recorded(inspections: Sequence[Inspection], counts: Counts) -> Iterator[Statement]:
    if counts.kernels:  # AOTInductor, say
        sentence = f"torch.compile compiled nothing; {count(counts.kernels, 'kernel')} generated outside of it."
        yield Statement(Topic.OUTSIDE, sentence, "good")
    elif any(inspection.agreements or inspection.timings for inspection in inspections):
        yield Statement(
            Topic.NO_RECORD, "No compilation was recorded: this capture contains comparisons and timings only.", "plain"
        )
    else:
        end = " before the run ended" if counts.raised else ""
        yield Statement(Topic.NOT_COMPILED, f"Nothing was compiled during the recording{end}.", "warn")


def _runs_compiled(inspection: Inspection) -> bool:
    """Whether there is any sign of a compiled operation."""
    if not inspection.nothing_compiled or any(lowering.kernels for lowering in inspection.lowerings):
        return True
    graphs = inspection.graphs_at(Stage.DYNAMO)
    if not graphs:  # the compilations know the size of their graphs, but not the contents
        return any(item.outcome is CompilationOutcome.COMPILED and item.graph_nodes > 0 for item in inspection.compilations)
    return any(node.is_call for graph in graphs for node in graph.nodes)


def _frames(inspections: Sequence[Inspection]) -> tuple[int, int]:
    """Frames whose last compilation left them in eager mode, and all frames; those with nothing to compile do not count."""
    last: dict[tuple[int, str], Compilation] = {}
    for number, inspection in enumerate(inspections):
        for item in inspection.compilations:
            if item.outcome not in (CompilationOutcome.NOTHING_TO_COMPILE, CompilationOutcome.UNFINISHED):
                base, _, reset = item.id.partition("@")
                last[number, f"{base.rpartition('/')[0] or base}@{reset}"] = item
    return sum(item.outcome is CompilationOutcome.SKIPPED for item in last.values()), len(last)


def _speed(inspections: Sequence[Inspection]) -> Iterator[Statement]:
    comparison = next((item for inspection in inspections if (item := speed_comparison(inspection)) is not None), None)
    if comparison is None:
        return
    slower, faster, sizes = comparison.slower, comparison.faster, comparison.sizes
    no_payback = ", and the build never pays back" if comparison.never_pays_back else ""
    alternative = "" if comparison.fastest is None or comparison.fastest.speedup is None else _alternative(comparison)
    if slower:
        share = "every size" if len(slower) == len(sizes) else f"{len(slower)} of {len(sizes)} sizes"
        at = "" if len(sizes) < 2 else f" at {share}"
        worst = min(slower, key=lambda item: item.speed.ratio)
        yield Statement(Topic.SLOWER, f"Slower than eager{at}: {worst}{no_payback}.{alternative}", "bad")
    elif faster and len(faster) == len(sizes):
        at = "" if len(sizes) < 2 else " at every size"
        yield Statement(Topic.FASTER, f"Faster than eager{at}: {faster[-1]}.{alternative}", "good")
    elif faster:
        best = max(faster, key=lambda item: item.speed.ratio)
        at = f"{len(faster)} of {count(len(sizes), 'size')}"
        sentence = f"Faster than eager at {at}: {best}; no measurable difference at the others."
        yield Statement(Topic.SAME_SPEED, f"{sentence}{alternative}", "warn")
    elif sizes:
        yield Statement(Topic.SAME_SPEED, f"No measurable gain over eager: {sizes[-1]}.{alternative}", "warn")


def _alternative(comparison: SpeedComparison) -> str:
    assert comparison.fastest is not None and comparison.fastest.speedup is not None
    return f" With {one_line(comparison.fastest.variant)}: {comparison.fastest.speedup.ratio:.2f}{TIMES}."
