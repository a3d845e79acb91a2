"""Graph breaks with their fixes, guards by variable, recompiles and limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from compile_inspect.records import BreakEffect, GraphBreak, Inspection
from compile_inspect.records.accidents import Accident
from compile_inspect.records.fixes import Finding, Proof, Proposal, Standing
from compile_inspect.records.recompile_causes import RecompileCause
from compile_inspect.reporters.html.highlighting import highlighted
from compile_inspect.reporters.html.measurements import number
from compile_inspect.reporters.html.places import Places
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.reporters.text.breaks import FOLLOWING_BREAKS, following_break_lines
from compile_inspect.reporters.text.findings import comparison, not_compared
from compile_inspect.wording.causes import limit_sentence
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.plain import enumerate_some

Data = dict[str, Any]
Diff = Callable[[Proposal], str]

_TONES = {BreakEffect.RAISED: "bad", BreakEffect.SKIPPED: "bad", BreakEffect.MIXED: "bad", BreakEffect.SPLIT: "warn"}
_CONTEXT_LINES = 4
_MAX_REMEDIES = 3
_TORCH_PAGE = re.compile(r"https://(meta-pytorch\.github\.io|(docs\.|dev-discuss\.)?pytorch\.org)/[\w./#%?=&-]*", re.ASCII)


def breaks_of(inspection: Inspection, findings: Sequence[Finding], diff: Diff, places: Places) -> list[Data]:
    """One entry for every cause, in the order of the findings."""
    return [_break(inspection, finding, diff, places) for finding in findings]


def _break(inspection: Inspection, finding: Finding, diff: Diff, places: Places) -> Data:
    cause = finding.cause
    place = cause.own_location or cause.location
    proofs = dict(finding.trials)
    ordered = sorted(finding.advice.proposals, key=lambda item: item is not finding.chosen)
    link = cause.link or ""
    return {
        "kind": words(cause.kind),
        "effect": cause.effect.value,
        "tone": _TONES[cause.effect],
        "identifier": words(cause.identifier or ""),
        # The page only links to torch's own pages, whatever URL the capture contains.
        "link": link if _TORCH_PAGE.fullmatch(link) else "",
        "why": paragraph(finding.advice.why + _following_breaks(inspection, cause)),
        "explanation": paragraph(cause.explanation),
        "hints": [paragraph(hint) for hint in finding.advice.hints],
        "place": places.of(place),
        "inside": places.of(cause.location) if cause.location != place else None,
        "excerpt": None if place is None else _excerpt(inspection, place.file, place.line),
        "stack": cause.stack if cause.stack is not None and 0 <= cause.stack < len(inspection.stacks) else None,
        "compilations": [words(item) for item in cause.compilations],
        "hits": cause.hits,
        "cost": str(finding.cost),
        "proposals": [_proposal(item, proofs.get(item), diff) for item in ordered],
    }


def _following_breaks(inspection: Inspection, cause: GraphBreak) -> str:
    """The breaks that follow from a break, in a sentence; a finding from another trial has its own cause record."""
    recorded = next((item for item in inspection.breaks if item == cause), cause)
    lines = following_break_lines(recorded, inspection)
    return f" {FOLLOWING_BREAKS}: {enumerate_some(lines)}." if lines else ""


def _excerpt(inspection: Inspection, file: str, line: int) -> Data | None:
    text = inspection.sources.get(file)
    if text is None:
        return None
    lines = highlighted(text)
    if not 1 <= line <= len(lines):
        return None
    first = max(1, line - _CONTEXT_LINES)
    return {"first": first, "lines": lines[first - 1 : line + _CONTEXT_LINES], "marked": line}


def _proposal(proposal: Proposal, proof: Proof | None, diff: Diff) -> Data:
    patch = paragraph(diff(proposal)) if proposal.replacements else ""
    lines = patch.split("\n")
    # The trial used another version of the file, so this proposal counts as untried.
    stale = bool(proposal.replacements) and not patch
    standing = "untried" if stale else standing_of(proof)
    return {
        "title": paragraph(proposal.title),
        "diff": [[line[:1], line[1:]] for line in lines if line and not line.startswith(("---", "+++"))],
        "patch": patch,
        "settings": [paragraph(item.code) for item in proposal.settings],
        "changes": paragraph(proposal.changes),
        "where": paragraph(proposal.where),
        "standing": standing,
        "reason": "" if proof is None or stale else _sentences(proof),
        "seconds": None if proof is None or stale else _seconds(proof),
    }


def standing_of(proof: Proof | None) -> str:
    """How far a proposal was proven, in a word; `partly` means that no input reached some lines.

    >>> proven = Proof.of(breaks=(1, 0), inputs=1, values=1)
    >>> partly = Proof.of(breaks=(1, 0), inputs=1, values=1, unreached=(7,))
    >>> standing_of(None), standing_of(proven), standing_of(partly)
    ('untried', 'proven', 'partly')
    """
    if proof is None or proof.standing is Standing.UNTRIED:
        return "untried"
    if not proof.holds:
        return "withdrawn"
    return "partly" if proof.unreached else "proven"


def _seconds(proof: Proof) -> list[float] | None:
    values = [number(value) for value in proof.seconds or ()]
    return [value for value in values if value is not None] if len(values) == 2 and None not in values else None


def _sentences(proof: Proof) -> str:
    """The result of a trial, in sentences."""
    change = f"causes of breaks {proof.breaks[0]} → {proof.breaks[1]}, graphs {proof.graphs[0]} → {proof.graphs[1]}"
    counts = change if proof.breaks != (0, 0) and proof.standing is not Standing.FAILED else ""
    parts = (proof.standing.value.removeprefix("withdrawn: "), proof.reason, counts, comparison(proof), not_compared(proof))
    return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in map(paragraph, parts) if part)


def guards_of(inspection: Inspection, places: Places) -> list[Data]:
    """Guards by compilation and variable, those that a user can act on first."""
    groups: dict[tuple[str, str, bool], Data] = {}
    for guard in inspection.guards:
        key = (words(guard.compilation or ""), guard.variable, guard.noise)
        group = groups.setdefault(
            key,
            {
                "compilation": key[0],
                "variable": words(guard.variable or guard.source),
                "noise": guard.noise,
                "place": places.of(guard.location),
                "conditions": [],
            },
        )
        group["conditions"].append([words(guard.kind), words(guard.condition)])
    return sorted(groups.values(), key=lambda group: group["noise"])


def accidents_of(accidents: Sequence[Accident], places: Places) -> list[Data]:
    """Guards on numbers that are likely to change."""
    return [
        {
            "compilation": words(item.guard.compilation or ""),
            "variable": words(item.guard.variable),
            "value": words(item.value),
            "holder": item.holder.value,
            "suspicion": item.suspicion.value,
            "remedy": item.remedy,
            "place": places.of(item.changed_at or item.guard.location),
        }
        for item in accidents
    ]


def specializations_of(inspection: Inspection, places: Places) -> list[Data]:
    """Sizes that were specialized to a number, and the lines that caused it."""
    return [
        {
            "compilation": words(item.compilation or ""),
            "variable": words(item.variable),
            "value": words(item.value),
            "reason": words(item.reason),
            "place": places.of(item.location),
        }
        for item in inspection.specializations
    ]


def recompiles_of(inspection: Inspection, places: Places) -> list[Data]:
    """Every recompile with the guards that failed."""
    return [
        {
            "compilation": words(item.compilation),
            "name": function_name(item.function),
            "place": places.place(item.file, item.line, item.function),
            "failures": [
                {
                    "against": words(failure.against or ""),
                    "variable": words(failure.variable),
                    "reason": words(failure.reason),
                    "expected": words(failure.expected or ""),
                    "actual": words(failure.actual or ""),
                    "place": places.of(failure.location),
                }
                for failure in item.failures
            ],
        }
        for item in inspection.recompiles
    ]


def recompile_causes_of(causes: Sequence[RecompileCause]) -> list[Data]:
    """Causes of recompiles, each with its first remedies, which change the program least."""
    return [
        {
            "why": paragraph(cause.why),
            "variable": words(cause.variable),
            "values": [words(value) for value in cause.values],
            "compilations": [words(item) for item in cause.recompiles],
            "remedies": [
                {"title": paragraph(item.title), "code": paragraph(item.code), "changes": paragraph(item.changes)}
                for item in cause.remedies[:_MAX_REMEDIES]
            ],
        }
        for cause in causes
    ]


def limits_of(inspection: Inspection, places: Places) -> list[Data]:
    """Functions that torch gave up on."""
    return [
        {
            "compilation": words(item.compilation or ""),
            "name": function_name(item.function),
            "place": places.place(item.file, item.line, item.function),
            "sentence": limit_sentence(item),
        }
        for item in inspection.limits
    ]
