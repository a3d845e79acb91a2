"""What a reader should know first: how it went in a sentence, the figures, and the three things worth doing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compile_inspect.records import Inspection, Outcome
from compile_inspect.records.accidents import Accident, Suspicion
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.fixes import Finding
from compile_inspect.records.timing import Measurement, Timing
from compile_inspect.reporters import timings as words
from compile_inspect.reporters.counts import count as counted
from compile_inspect.reporters.text.causes import by_function, cause
from compile_inspect.reporters.text.compilations import function_name
from compile_inspect.reporters.text.locations import where
from compile_inspect.reporters.text.plain import clean, one_line, shorten
from compile_inspect.reporters.text.quantities import TIMES, count, seconds
from compile_inspect.reporters.text.summary import cache_result
from compile_inspect.reporters.text.summary import verdict as sentence_of

Data = dict[str, Any]

MOST_TODO = 3
_TONES = {"green": "good", "yellow": "warn", "red": "bad"}
_EAGER = "eager"


def verdict_of(inspection: Inspection, findings: Sequence[Finding], accidents: Sequence[Accident]) -> Data:
    """The verdict of one capture."""
    counts = counted(inspection)
    sentence, colour = sentence_of(counts, inspection.complete and not inspection.missing)
    wrong = [item for agreement in inspection.agreements for item in agreement.variants if item.verdict is Verdict.DISAGREES]
    if wrong:
        sentence += f" {one_line(wrong[0].name)} does not agree with eager."
    todo = [*_todo(inspection, findings, accidents)][:MOST_TODO]
    return {
        "sentence": sentence,
        "tone": "bad" if wrong else _TONES[colour],
        "origin": _origin(inspection),
        "facts": [*_facts(inspection, findings)],
        "todo": todo,
    }


def _fact(key: str, label: str, value: str, detail: str = "", tone: str = "plain", link: str = "") -> Data:
    return {"key": key, "label": label, "value": value, "detail": clean(detail), "tone": tone, "link": link}


def _facts(inspection: Inspection, findings: Sequence[Finding]) -> Iterator[Data]:
    counts = counted(inspection)
    bad = [f"{number} {word}" for number, word in ((counts.failed, "failed"), (counts.skipped, "left in eager mode")) if number]
    graphs = count(counts.graphs, "graph")
    tone = "bad" if counts.failed else "warn" if bad else "good" if counts.compilations else "plain"
    yield _fact("compilations", "Compilations", f"{counts.compilations:,}", ", ".join([graphs, *bad]), tone, "#explorer")
    proven = sum(finding.chosen is not None for finding in findings)
    detail = (
        f"{count(proven, 'fix', 'fixes')} proven"
        if proven
        else f"met {count(counts.break_hits, 'time')}"
        if counts.breaks
        else ""
    )
    yield _fact("breaks", "Graph breaks", f"{counts.breaks:,}", detail, "warn" if counts.breaks else "good", "#breaks")
    tone = "bad" if counts.limits else "warn" if counts.recompiles else "good"
    detail = f"torch gave up on {count(counts.limits, 'function')}" if counts.limits else ""
    yield _fact("recompiles", "Recompiles", f"{counts.recompiles:,}", detail, tone, "#recompiles")
    yield _agreement(inspection)
    yield from _speed(inspection.timings)
    yield _fact("time", "Compile time", seconds(counts.compile_seconds), _longest(inspection), link="#time")
    fused = sum(kernel.is_fused for _, kernel in inspection.kernels())
    yield _fact("kernels", "Kernel launches", f"{counts.kernels:,}", f"{fused:,} fused", link="#explorer")
    yield _fact("cache", "Caches", cache_result(counts.cache), "", link="#caches")


def _longest(inspection: Inspection) -> str:
    longest = max(inspection.compilations, key=lambda item: (item.seconds or 0) + (item.backward_seconds or 0), default=None)
    if longest is None or len(inspection.compilations) < 2:
        return ""
    return f"{seconds((longest.seconds or 0) + (longest.backward_seconds or 0))} for {function_name(longest.function)}"


def _agreement(inspection: Inspection) -> Data:
    every = [item for agreement in inspection.agreements for item in agreement.variants]
    if not every:
        detail = "compile-inspect verify TARGET --capture FILE compares values and gradients"
        return _fact("agreement", "Agreement", "not checked", detail, "plain", "#agreement")
    wrong = [item for item in every if item.verdict is Verdict.DISAGREES]
    ran = [item for item in every if item.verdict is not Verdict.REFUSED]
    if wrong:
        return _fact("agreement", "Agreement", f"{len(wrong)} of {len(ran)} differ", wrong[0].reason, "bad", "#agreement")
    what = "values and gradients" if any(item.gradients for item in inspection.agreements) else "values"
    points = sum(len(item.points) for item in inspection.agreements)
    tone = "good" if all(item.agrees for item in ran) else "warn"
    right = sum(item.agrees for item in ran)
    return _fact(
        "agreement", "Agreement", f"{right} of {len(ran)} agree", f"{what}, {count(points, 'input')}", tone, "#agreement"
    )


def compared(timings: Sequence[Timing]) -> tuple[Measurement, Measurement | None] | None:
    """What stands for torch.compile in the verdict, and the fastest that there is: of the last timing, at its last size.

    >>> compared(()) is None
    True
    """
    for timing in reversed(timings):
        for point in reversed(timing.points):
            ran = [item for item in point.measurements if item.speed is not None and item.variant != _EAGER]
            if ran:
                usual = next((item for item in ran if item.variant == "inductor"), None)
                fastest = max(ran, key=lambda item: item.speed.ratio if item.speed else 0.0)
                return usual or fastest, None if usual is None or fastest is usual else fastest
    return None


def _speed(timings: Sequence[Timing]) -> Iterator[Data]:
    found = compared(timings)
    if found is None:
        yield _fact("speed", "Speed", "not measured", "compile-inspect bench TARGET --capture FILE times it", "plain", "#speed")
        return
    usual, fastest = found
    speed = usual.speed
    assert speed is not None
    told = f"{usual.variant}, {speed.low:.2f} to {speed.high:.2f}"
    if fastest is not None and fastest.speed is not None:
        told += f"; {fastest.variant} {words.speed_up(fastest.speed)}"
    tone = "good" if speed.low > 1 else "bad" if speed.high < 1 else "warn"
    yield _fact("speed", "Against eager", words.speed_up(speed), told, tone, "#speed")
    if usual.payback is not None:
        pays = usual.payback
        value = "never" if pays.never else "unclear" if pays.unclear else count(pays.calls or 0, "call")
        tone = "bad" if pays.never else "plain"
        yield _fact("payback", "Pays back after", value, f"{words.payback(pays)}, {usual.variant}", tone, "#speed")


def _todo(inspection: Inspection, findings: Sequence[Finding], accidents: Sequence[Accident]) -> Iterator[Data]:
    """What is worth doing, the most worthwhile first: what is wrong, what stops compiling, what was proven, what is faster."""
    for agreement in inspection.agreements:
        for item in agreement.variants:
            if item.verdict is Verdict.DISAGREES:
                blame = f" {item.blame.message}" if item.blame is not None else ""
                yield _entry(f"Do not use {item.name} here", f"{item.reason}{blame}", "#agreement", "measured")
    for failed in (item for item in inspection.compilations if item.outcome is Outcome.FAILED):
        first = (clean(failed.failure or "") or "no message was recorded").strip().split("\n")[0]
        yield _entry(f"See why {function_name(failed.function)} failed to compile", first, "#explorer", "measured")
    for limit in inspection.limits:
        latest = [item for item in inspection.recompiles if item.function == limit.function]
        why = cause(latest[-1].latest) if latest else one_line(limit.last_reason)
        yield _entry(
            f"Stop {function_name(limit.function)} from being compiled again and again", why, "#recompiles", "measured"
        )
    yield from _break_entries(findings)
    yield from _speed_entries(inspection.timings)
    for (function, _, _), group in by_function(inspection.recompiles).items():
        if not any(limit.function == function for limit in inspection.limits):
            title = f"See what makes {function_name(function)} compile again ({count(len(group), 'time')})"
            yield _entry(title, cause(group[-1].latest), "#recompiles", "measured")
    for accident in accidents:
        if accident.suspicion is not Suspicion.NUMBER:
            title = f"{accident.guard.variable} is compiled in as {accident.value}"
            yield _entry(title, accident.remedy, "#guards", "measured" if accident.suspicion is Suspicion.SEEN else "suggested")
    for event in inspection.cuda_graphs:
        if event.outcome.name == "SKIPPED":
            yield _entry("CUDA graphs were wished for and skipped", event.reason, "#caches", "measured")


def _break_entries(findings: Sequence[Finding]) -> Iterator[Data]:
    for number, finding in enumerate(findings):
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


def _speed_entries(timings: Sequence[Timing]) -> Iterator[Data]:
    found = compared(timings)
    if found is None:
        return
    usual, fastest = found
    if fastest is not None and fastest.speed is not None and usual.speed is not None and fastest.speed.low > usual.speed.high:
        ratios = fastest.speed.ratio, usual.speed.ratio
        told = f"{fastest.variant} is {ratios[0]:.2f}{TIMES} as fast as eager, {usual.variant} {ratios[1]:.2f}{TIMES}"
        why = f"{told}; compile_inspect.tune hands it over once it is shown to agree with eager."
        yield _entry("Use a faster variant: compile_inspect.tune(function, …)", why, "#speed", "measured")
    elif usual.speed is not None and usual.speed.high < 1 and fastest is None:
        told = (
            f"{usual.variant} is {usual.speed.ratio:.2f}{TIMES} as fast as eager at this size, and the build never pays back."
        )
        yield _entry("Leave this function in eager mode", told, "#speed", "measured")


def _entry(title: str, why: str, link: str, standing: str) -> Data:
    return {"title": one_line(title), "why": clean(why), "link": link, "standing": standing}


def _origin(inspection: Inspection) -> str:
    environment = inspection.environment
    program, *arguments = inspection.process.command or ("",)
    parts = [shorten(" ".join([re.split(r"[/\\]", program)[-1], *arguments]), 80)]
    parts += [f"torch {environment.torch}" if environment.torch else ""]
    parts += [f"Python {environment.python.split()[0]}" if environment.python.strip() else ""]
    parts += [", ".join(dict.fromkeys(environment.devices)) or environment.cpu or environment.platform]
    return " · ".join(one_line(part) for part in parts if part)
