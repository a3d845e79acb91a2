"""The top of the page: a sentence on the outcome, the key figures, and up to three recommendations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from compile_inspect.advice.recommendations import Recommendation, Subject, recommendations
from compile_inspect.advice.speedups import speed_comparison
from compile_inspect.records import Inspection
from compile_inspect.records.accidental_guards import AccidentalGuard
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.fixes import Finding
from compile_inspect.records.recompile_causes import RecompileCause
from compile_inspect.reporters import timings as timing_words
from compile_inspect.reporters.counts import count as counted
from compile_inspect.reporters.headline import statements
from compile_inspect.reporters.html.findings import standing_of
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.reporters.target_arguments import infer_target_arguments
from compile_inspect.reporters.text.summary import cache_result, percent
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.plain import shorten
from compile_inspect.wording.quantities import count, seconds

Data = dict[str, Any]

MAX_RECOMMENDATIONS = 3
_NUMBERED_ANCHORS = {Subject.BREAKS: "break", Subject.COMPILATIONS: "compilation"}


def verdict_of(
    inspection: Inspection,
    findings: Sequence[Finding],
    accidents: Sequence[AccidentalGuard],
    causes: Sequence[RecompileCause] = (),
) -> Data:
    """The verdict of one capture."""
    return {
        **headline_of([inspection]),
        "origin": _origin(inspection),
        "facts": [*_facts(inspection, findings, causes)],
        "recommendations": [
            _recommendation_data(item)
            for item in islice(recommendations(inspection, findings, accidents, causes), MAX_RECOMMENDATIONS)
        ],
    }


def _recommendation_data(item: Recommendation) -> Data:
    """A recommendation with a link to the relevant part of the page."""
    anchor = item.subject.name.lower()
    if item.number is not None:
        anchor = f"{_NUMBERED_ANCHORS[item.subject]}-{item.number}"
    basis = item.basis.name.lower()
    return {"title": words(item.title), "why": paragraph(item.reason), "link": f"#{anchor}", "standing": basis}


def headline_of(inspections: Sequence[Inspection]) -> Data:
    """The most important fact with its tone, and further facts."""
    first, *further = statements(inspections)
    return {
        "sentence": words(first.sentence),
        "tone": first.tone,
        "further": [{"sentence": words(item.sentence), "tone": item.tone} for item in further],
    }


def together_of(inspections: Sequence[tuple[str, Inspection]]) -> Data:
    """The verdict over several processes of one program, and of each process."""
    return {**headline_of([inspection for _, inspection in inspections]), "members": _members(inspections)}


def models_of(inspections: Sequence[tuple[str, Inspection]]) -> Data:
    """The models of a tour. They are independent, and some break on purpose, so there is no common verdict."""
    sentence = f"{count(len(inspections), 'model')} of the tour, each with its capture."
    return {"sentence": sentence, "tone": "plain", "further": [], "members": _members(inspections)}


def _members(inspections: Sequence[tuple[str, Inspection]]) -> list[Data]:
    return [{"label": words(label), **headline_of([inspection])} for label, inspection in inspections]


def first_of(inspections: Sequence[Inspection]) -> int:
    """The process that the page opens with: the one with the most compilations (a launcher has none), then the worst verdict.

    >>> first_of([Inspection(), Inspection()])
    0
    """
    order = ("bad", "warn", "good", "plain")
    ranks = [(-len(item.compilations), order.index(statements([item])[0].tone)) for item in inspections]
    return ranks.index(min(ranks))


def _fact(key: str, label: str, value: str, detail: str = "", tone: str = "plain", link: str = "") -> Data:
    return {"key": key, "label": label, "value": value, "detail": paragraph(detail), "tone": tone, "link": link}


def _facts(inspection: Inspection, findings: Sequence[Finding], causes: Sequence[RecompileCause]) -> Iterator[Data]:
    counts = counted(inspection)
    problems = [
        f"{number} {problem}"
        for number, problem in ((counts.failed, "failed"), (counts.skipped, "left in eager mode"))
        if number
    ]
    graphs = count(counts.graphs, "graph")
    tone = "bad" if counts.failed else "warn" if problems else "good" if counts.compilations else "plain"
    yield _fact(
        "compilations", "Compilations", f"{counts.compilations:,}", ", ".join([graphs, *problems]), tone, "#compilations"
    )
    yield from _share(inspection)
    # If nothing was compiled, or the recording is incomplete, a zero is not good news.
    zero_tone = "good" if counts.compilations and inspection.complete and not inspection.missing_evidence else "plain"
    detail = _fixes(findings) or (f"hit {count(counts.break_hits, 'time')}" if counts.breaks else "")
    yield _fact("breaks", "Graph breaks", f"{counts.breaks:,}", detail, "warn" if counts.breaks else zero_tone, "#breaks")
    tone = "bad" if counts.limits else "warn" if counts.recompiles else zero_tone
    detail = f"from {count(len(causes), 'cause')}" if causes else ""
    detail = f"torch gave up on {count(counts.limits, 'function')}" if counts.limits else detail
    yield _fact("recompiles", "Recompiles", f"{counts.recompiles:,}", detail, tone, "#recompiles")
    yield _agreement(inspection)
    yield from _speed(inspection)
    yield _fact("time", "Compile time", seconds(counts.compile_seconds), _longest(inspection), link="#time")
    fused = sum(kernel.is_fused for _, kernel in inspection.kernels())
    yield _fact("kernels", "Kernel launches", f"{counts.kernels:,}", f"{fused:,} fused", link="#explorer")
    yield _fact("cache", "Caches", cache_result(counts.cache), "", link="#caches")


def _share(inspection: Inspection) -> Iterator[Data]:
    """The share of traced operations that run compiled, if known."""
    share = inspection.compiled_share
    if share is None or share.fraction is None or not (share.eager_operations or inspection.nothing_compiled):
        return
    detail = f"{share.compiled_operations:,} of {count(share.traced_operations, 'operation')} that torch traced"
    tone = "bad" if share.is_near_zero else "warn"
    yield _fact("share", "Runs compiled", percent(share.fraction), detail, tone, "#compilations")


def _command(inspection: Inspection, name: str) -> str:
    """A command for the target of a capture, ready to type; only its name if the target is unknown."""
    target = infer_target_arguments(inspection)
    return f"compile-inspect {name}" if target is None else shlex.join(["compile-inspect", name, *target])


def _fixes(findings: Sequence[Finding]) -> str:
    """How many fixes were proven, fully or except for lines that no input reaches."""
    standings = [standing_of(dict(item.trials)[item.best_proposal]) for item in findings if item.best_proposal is not None]
    proven, partly = standings.count("proven"), standings.count("partly")
    parts = [f"{count(proven, 'fix', 'fixes')} proven"] if proven else []
    parts += [f"{partly} in part" if proven else f"{count(partly, 'fix', 'fixes')} proven in part"] if partly else []
    return ", ".join(parts)


def _longest(inspection: Inspection) -> str:
    longest = max(inspection.compilations, key=lambda item: (item.seconds or 0) + (item.backward_seconds or 0), default=None)
    if longest is None or len(inspection.compilations) < 2:
        return ""
    return f"{seconds((longest.seconds or 0) + (longest.backward_seconds or 0))} for {function_name(longest.function)}"


def _agreement(inspection: Inspection) -> Data:
    compared_variants = [item for agreement in inspection.agreements for item in agreement.variants]
    if not compared_variants:
        detail = f"{_command(inspection, 'verify')} compares values and gradients"
        return _fact("agreement", "Agreement", "not checked", detail, "plain", "#agreement")
    mismatches = [item for item in compared_variants if item.verdict is Verdict.DISAGREES]
    ran = [item for item in compared_variants if item.verdict is not Verdict.REFUSED]
    if mismatches:
        return _fact(
            "agreement", "Agreement", f"{len(mismatches)} of {len(ran)} differ", mismatches[0].reason, "bad", "#agreement"
        )
    if not ran:
        return _fact(
            "agreement",
            "Agreement",
            "not comparable",
            f"no variant could run: {compared_variants[0].reason}",
            "warn",
            "#agreement",
        )
    names = ", ".join(dict.fromkeys(words(item.function) for item in inspection.agreements))
    compared = "values and gradients" if all(item.gradients for item in inspection.agreements) else "values"
    points = sum(len(item.points) for item in inspection.agreements)
    tone = "good" if all(item.agrees for item in ran) else "warn"
    agreeing = sum(item.agrees for item in ran)
    detail = f"{shorten(names, 60)}: {compared}, {count(points, 'input')}"
    return _fact("agreement", "Agreement", f"{agreeing} of {len(ran)} agree", detail, tone, "#agreement")


def _speed(inspection: Inspection) -> Iterator[Data]:
    comparison = speed_comparison(inspection)
    if comparison is None or comparison.primary.speedup is None:
        yield _fact(
            "speed", "Speedup over eager", "not measured", f"{_command(inspection, 'bench')} measures it", "plain", "#speed"
        )
        return
    primary, fastest, speed = comparison.primary, comparison.fastest, comparison.primary.speedup
    detail = f"{primary.variant}, 95 % interval {speed.low:.2f}–{speed.high:.2f}; {comparison.workload}"
    if fastest is not None and fastest.speedup is not None:
        detail += f"; {fastest.variant} {timing_words.speedup(fastest.speedup)}"
    tone = "good" if speed.low > 1 else "bad" if speed.high < 1 else "warn"
    yield _fact("speed", "Speedup over eager", timing_words.speedup(speed), detail, tone, "#speed")
    if primary.payback is not None:
        pays = primary.payback
        value = "never" if pays.never_pays else "unclear" if pays.is_unclear else count(pays.calls or 0, "call")
        # If the interval contains 1, another measurement may give a different result.
        tone = "bad" if comparison.never_pays_back else "warn" if pays.never_pays else "plain"
        yield _fact(
            "payback",
            "Pays back after",
            value,
            f"{timing_words.payback_text(pays)}, {primary.variant}, cold build",
            tone,
            "#speed",
        )


def _origin(inspection: Inspection) -> str:
    environment = inspection.environment
    program, *arguments = inspection.process.command or ("",)
    parts = [shorten(" ".join([re.split(r"[/\\]", program)[-1], *arguments]), 80)]
    parts += [f"torch {environment.torch}" if environment.torch else ""]
    parts += [f"Python {environment.python.split()[0]}" if environment.python.strip() else ""]
    parts += [", ".join(dict.fromkeys(environment.devices)) or environment.cpu or environment.platform]
    return " · ".join(words(part) for part in parts if part)
