"""Recommendations: what to do about a capture, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from compile_inspect.advice.speedups import speed_comparison
from compile_inspect.advice.wrappers import wrapper_remedies
from compile_inspect.records import BreakEffect, CudaGraphOutcome, Inspection
from compile_inspect.records.accidental_guards import AccidentalGuard, FailureEvidence
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.fixes import Finding
from compile_inspect.records.recompile_causes import RecompileCause
from compile_inspect.wording.causes import cause
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.failures import headline
from compile_inspect.wording.failures import sentence as failure_sentence
from compile_inspect.wording.locations import where
from compile_inspect.wording.plain import shorten
from compile_inspect.wording.quantities import TIMES, count, seconds


class Subject(Enum):
    """What a recommendation is about."""

    AGREEMENT = "agreement with eager"
    COMPILATIONS = "compilations"
    RECOMPILES = "recompiles"
    BREAKS = "graph breaks"
    GUARDS = "guards"
    SPEED = "speed"
    CACHES = "caches and CUDA graphs"


class Basis(Enum):
    """The evidence for a recommendation."""

    PROVEN = "a trial proved it on a copy"
    MEASURED = "it follows from what was recorded"
    SUGGESTED = "it usually helps and was not tried here"


@dataclass(frozen=True)
class Recommendation:
    """One thing to do and why; `number` is that of the break or compilation it is about, from 1, where there is one."""

    title: str
    reason: str
    subject: Subject
    basis: Basis
    number: int | None = None


def recommendations(
    inspection: Inspection,
    findings: Sequence[Finding],
    accidents: Sequence[AccidentalGuard],
    causes: Sequence[RecompileCause] = (),
) -> Iterator[Recommendation]:
    """Yield mismatches first, then failed compilations, fixes of graph breaks, faster variants, and causes of recompiles.

    >>> list(recommendations(Inspection(), (), ()))
    []
    """
    yield from _about_mismatches(inspection)
    failed = {failure.compilation for failure in inspection.failures if failure.compilation is not None}
    yield from _about_failures(inspection)
    yield from _about_limits(inspection)
    for sentence in wrapper_remedies(inspection):
        yield Recommendation("Compile the inner module, then wrap it", sentence, Subject.BREAKS, Basis.SUGGESTED)
    yield from _about_breaks(findings, failed)
    yield from _about_speed(inspection)
    yield from _about_recompiles(inspection, causes)
    for accident in accidents:
        title = f"{accident.guard.variable} is compiled in as {accident.value}"
        basis = Basis.MEASURED if accident.evidence is FailureEvidence.FAILED_BEFORE else Basis.SUGGESTED
        yield Recommendation(title, accident.remedy, Subject.GUARDS, basis)
    for event in inspection.cuda_graphs:
        if event.outcome is CudaGraphOutcome.SKIPPED:
            title = "CUDA graphs were requested and skipped"
            yield Recommendation(title, event.reason, Subject.CACHES, Basis.MEASURED)


def _about_mismatches(inspection: Inspection) -> Iterator[Recommendation]:
    for agreement in inspection.agreements:
        for item in agreement.variants:
            if item.verdict is Verdict.DISAGREES:
                blame = f" {item.blame.message}" if item.blame is not None else ""
                title = f"Do not use {item.name} here"
                yield Recommendation(title, f"{item.reason}{blame}", Subject.AGREEMENT, Basis.MEASURED)


def _about_failures(inspection: Inspection) -> Iterator[Recommendation]:
    numbers = {compilation.id: number for number, compilation in enumerate(inspection.compilations, 1)}
    for failure in inspection.failures:
        number = None
        if failure.compilation is not None:
            number = numbers.get(failure.compilation)
        elif any(other.summary == failure.summary for other in inspection.failures if other is not failure):
            continue  # the exception of a compilation, on its way out of the program
        reason = failure_sentence(failure, inspection)
        yield Recommendation(headline(failure, inspection), reason, Subject.COMPILATIONS, Basis.MEASURED, number)


def _about_limits(inspection: Inspection) -> Iterator[Recommendation]:
    for limit in inspection.limits:
        recompiles = [item for item in inspection.recompiles if item.function == limit.function]
        reason = cause(recompiles[-1].latest_failure) if recompiles else limit.last_reason
        title = f"Stop {function_name(limit.function)} from being compiled again and again"
        yield Recommendation(title, reason, Subject.RECOMPILES, Basis.MEASURED)


def _about_breaks(findings: Sequence[Finding], failed: set[str]) -> Iterator[Recommendation]:
    for number, finding in enumerate(findings, 1):
        chosen = finding.best_proposal
        if finding.cause.effect is BreakEffect.RAISED and failed & set(finding.cause.compilations) and chosen is None:
            continue  # the failure has a recommendation of its own
        place = where(finding.cause.own_location or finding.cause.location)
        if chosen is None:
            title = f"Remove the graph break at {place}: {shorten(finding.cause.kind, 60)}"
            yield Recommendation(title, finding.advice.reason, Subject.BREAKS, Basis.SUGGESTED, number)
            continue
        reason = finding.advice.reason
        if finding.gain and finding.gain > 0:
            reason += f" It saves {seconds(finding.gain)} per call."
        unreached = dict(finding.trials)[chosen].unreached_lines
        if unreached:  # no trial compared these lines
            reason += f" No input reaches line {unreached[0]}, so nothing is proven about it."
        basis = Basis.SUGGESTED if unreached else Basis.PROVEN
        yield Recommendation(f"{chosen.title} ({place})", reason, Subject.BREAKS, basis, number)


def _about_recompiles(inspection: Inspection, causes: Sequence[RecompileCause]) -> Iterator[Recommendation]:
    limited_functions = {limit.function for limit in inspection.limits}
    limited = {item.compilation for item in inspection.recompiles if item.function in limited_functions}
    for item in causes:
        if not limited.isdisjoint(item.recompiles):
            continue  # the limit has a recommendation of its own
        times = count(len(item.recompiles), "recompile")
        if item.remedies:
            yield Recommendation(f"{item.remedies[0].title} ({times})", item.reason, Subject.RECOMPILES, Basis.SUGGESTED)
        else:
            yield Recommendation(f"See what led to {times}", item.reason, Subject.RECOMPILES, Basis.MEASURED)


def _about_speed(inspection: Inspection) -> Iterator[Recommendation]:
    comparison = speed_comparison(inspection)
    if comparison is None or comparison.primary.speedup is None:
        return
    primary, fastest, speed = comparison.primary, comparison.fastest, comparison.primary.speedup
    if fastest is not None and fastest.speedup is not None and fastest.speedup.low > speed.high:
        ratios = f"{fastest.speedup.ratio:.2f}{TIMES} with {fastest.variant}, {speed.ratio:.2f}{TIMES} with {primary.variant}"
        reason = (
            f"Speedup over eager on {comparison.workload}: {ratios}. "
            "compile_inspect.tune returns it after checking that it agrees with eager."
        )
        title = "Use a faster variant: compile_inspect.tune(function, …)"
        yield Recommendation(title, reason, Subject.SPEED, Basis.MEASURED)
    elif speed.high < 1 and fastest is None:
        pays = ", and the build never pays back" if primary.payback is not None and primary.payback.never_pays else ""
        reason = f"Speedup over eager with {primary.variant}: {speed.ratio:.2f}{TIMES}{pays}."
        yield Recommendation(f"Leave it in eager mode: {comparison.workload}", reason, Subject.SPEED, Basis.MEASURED)
