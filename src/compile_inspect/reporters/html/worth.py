"""What is worth doing about a capture, the most worthwhile first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compile_inspect.records import BreakEffect, Inspection
from compile_inspect.records.accidents import Accident, Suspicion
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.fixes import Finding
from compile_inspect.records.recompile_causes import RecompileCause
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.reporters.remedies import remedies
from compile_inspect.reporters.speedups import compared
from compile_inspect.reporters.text.causes import cause
from compile_inspect.reporters.text.compilations import function_name
from compile_inspect.reporters.text.failures import headline
from compile_inspect.reporters.text.failures import sentence as failure_sentence
from compile_inspect.reporters.text.locations import where
from compile_inspect.reporters.text.plain import shorten
from compile_inspect.reporters.text.quantities import TIMES, count, seconds

Data = dict[str, Any]


def worth_doing(
    inspection: Inspection, findings: Sequence[Finding], accidents: Sequence[Accident], causes: Sequence[RecompileCause] = ()
) -> Iterator[Data]:
    """What is worth doing, the most worthwhile first: what is wrong, what stops compiling, what was proven, what is faster."""
    for agreement in inspection.agreements:
        for item in agreement.variants:
            if item.verdict is Verdict.DISAGREES:
                blame = f" {item.blame.message}" if item.blame is not None else ""
                yield _entry(f"Do not use {item.name} here", f"{item.reason}{blame}", "#agreement", "measured")
    failed: set[str] = set()
    numbers = {compilation.id: number for number, compilation in enumerate(inspection.compilations, 1)}
    for failure in inspection.failures:
        link = "#compilations"
        if failure.compilation is not None:
            failed.add(failure.compilation)
            link = f"#compilation-{numbers[failure.compilation]}" if failure.compilation in numbers else link
        elif any(item.told == failure.told for item in inspection.failures if item is not failure):
            continue  # the exception of a compilation, on its way out of the program
        yield _entry(headline(failure, inspection), failure_sentence(failure, inspection), link, "measured")
    for limit in inspection.limits:
        latest = [item for item in inspection.recompiles if item.function == limit.function]
        why = cause(latest[-1].latest) if latest else words(limit.last_reason)
        yield _entry(
            f"Stop {function_name(limit.function)} from being compiled again and again", why, "#recompiles", "measured"
        )
    for sentence in remedies(inspection):
        yield _entry("Compile inside, then wrap", sentence, "#breaks", "suggested")
    yield from _break_entries(findings, failed)
    yield from _speed_entries(inspection)
    functions = {limit.function for limit in inspection.limits}
    limited = {item.compilation for item in inspection.recompiles if item.function in functions}
    for recompile_cause in causes:
        if limited.isdisjoint(recompile_cause.recompiles):  # else it was said that torch gave up
            yield _recompile_entry(recompile_cause)
    for accident in accidents:
        title = f"{accident.guard.variable} is compiled in as {accident.value}"
        yield _entry(title, accident.remedy, "#guards", "measured" if accident.suspicion is Suspicion.SEEN else "suggested")
    for event in inspection.cuda_graphs:
        if event.outcome.name == "SKIPPED":
            yield _entry("CUDA graphs were wished for and skipped", event.reason, "#caches", "measured")


def _break_entries(findings: Sequence[Finding], failed: set[str]) -> Iterator[Data]:
    for number, finding in enumerate(findings):
        if finding.cause.effect is BreakEffect.RAISED and failed & set(finding.cause.compilations) and finding.chosen is None:
            continue  # that it failed was said
        place = where(finding.cause.own_location or finding.cause.location)
        chosen = finding.chosen
        if chosen is not None:
            gain = "" if not finding.gain or finding.gain <= 0 else f" It saves {seconds(finding.gain)} of a call."
            # Lines that no input reaches were not compared by any trial.
            missed = dict(finding.trials)[chosen].unreached
            told = f" No input reaches line {missed[0]}, of which nothing is proven." if missed else ""
            standing = "suggested" if missed else "proven"
            yield _entry(f"{chosen.title} ({place})", f"{finding.advice.why}{gain}{told}", f"#break-{number + 1}", standing)
        else:
            kind = shorten(finding.cause.kind, 60)
            yield _entry(f"Remove the graph break at {place}: {kind}", finding.advice.why, f"#break-{number + 1}", "suggested")


def _recompile_entry(cause: RecompileCause) -> Data:
    times = count(len(cause.recompiles), "recompile")
    if not cause.remedies:
        return _entry(f"See what led to {times}", cause.why, "#recompiles", "measured")
    title = cause.remedies[0].title
    return _entry(f"{title} ({times})", cause.why, "#recompiles", "suggested")


def _speed_entries(inspection: Inspection) -> Iterator[Data]:
    found = compared(inspection)
    if found is None or found.usual.speed is None:
        return
    usual, fastest, speed = found.usual, found.fastest, found.usual.speed
    if fastest is not None and fastest.speed is not None and fastest.speed.low > speed.high:
        ratios = fastest.speed.ratio, speed.ratio
        told = (
            f"{found.of}: {fastest.variant} is {ratios[0]:.2f}{TIMES} as fast as eager, {usual.variant} {ratios[1]:.2f}{TIMES}"
        )
        why = f"{told}; compile_inspect.tune hands it over once it is shown to agree with eager."
        yield _entry("Use a faster variant: compile_inspect.tune(function, …)", why, "#speed", "measured")
    elif speed.high < 1 and fastest is None:
        pays = " and the build never pays back" if usual.payback is not None and usual.payback.never else ""
        told = f"{usual.variant} is {speed.ratio:.2f}{TIMES} as fast as eager there{pays}."
        yield _entry(f"Leave it in eager mode: {found.of}", told, "#speed", "measured")


def _entry(title: str, why: str, link: str, standing: str) -> Data:
    return {"title": words(title), "why": paragraph(why), "link": link, "standing": standing}
