"""Graph breaks with their fixes, guards by variable, recompiles and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compile_inspect.records import BreakEffect, Inspection
from compile_inspect.records.accidents import Accident
from compile_inspect.records.fixes import Finding, Proof, Proposal, Standing
from compile_inspect.reporters.html.highlighting import highlighted
from compile_inspect.reporters.html.places import Places
from compile_inspect.reporters.text.causes import limit_sentence
from compile_inspect.reporters.text.compilations import function_name
from compile_inspect.reporters.text.plain import clean, one_line

Data = dict[str, Any]
Diff = Callable[[Proposal], str]

_TONES = {BreakEffect.RAISED: "bad", BreakEffect.SKIPPED: "bad", BreakEffect.SPLIT: "warn"}
_AROUND = 4


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
        "kind": one_line(cause.kind),
        "effect": cause.effect.value,
        "tone": _TONES[cause.effect],
        "identifier": one_line(cause.identifier or ""),
        # Whatever a capture says, the page links to nothing but an address of the web.
        "link": link if link.startswith("https://") and link.isprintable() and not set(link) & set("\"'<> ") else "",
        "why": clean(finding.advice.why),
        "explanation": clean(cause.explanation),
        "hints": [clean(hint) for hint in finding.advice.hints],
        "place": places.of(place),
        "inside": places.of(cause.location) if cause.location != place else None,
        "excerpt": None if place is None else _excerpt(inspection, place.file, place.line),
        "stack": cause.stack if cause.stack is not None and 0 <= cause.stack < len(inspection.stacks) else None,
        "compilations": list(cause.compilations),
        "hits": cause.hits,
        "cost": str(finding.cost),
        "proposals": [_proposal(item, proofs.get(item), diff) for item in ordered],
    }


def _excerpt(inspection: Inspection, file: str, line: int) -> Data | None:
    text = inspection.sources.get(file)
    if text is None:
        return None
    lines = highlighted(text)
    if not 1 <= line <= len(lines):
        return None
    first = max(1, line - _AROUND)
    return {"first": first, "lines": lines[first - 1 : line + _AROUND], "marked": line}


def _proposal(proposal: Proposal, proof: Proof | None, diff: Diff) -> Data:
    patch = clean(diff(proposal)) if proposal.replacements else ""
    lines = patch.split("\n")
    standing = "untried"
    if proof is not None and proof.standing is not Standing.UNTRIED:
        standing = "proven" if proof.holds else "withdrawn"
    return {
        "title": clean(proposal.title),
        "diff": [[line[:1], line[1:]] for line in lines if line and not line.startswith(("---", "+++"))],
        "patch": patch,
        "settings": [clean(item.code) for item in proposal.settings],
        "changes": clean(proposal.changes),
        "where": clean(proposal.where),
        "standing": standing,
        "reason": "" if proof is None else _sentences(proof),
        "seconds": None if proof is None or proof.seconds is None else list(proof.seconds),
    }


def _sentences(proof: Proof) -> str:
    """What a trial has shown, each part as a sentence."""
    parts = (proof.standing.value.removeprefix("withdrawn: "), proof.reason)
    return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in map(clean, parts) if part)


def guards_of(inspection: Inspection, places: Places) -> list[Data]:
    """Guards by compilation and variable, those that a user can act on first."""
    groups: dict[tuple[str, str, bool], Data] = {}
    for guard in inspection.guards:
        key = (guard.compilation or "", guard.variable, guard.noise)
        group = groups.setdefault(
            key,
            {
                "compilation": key[0],
                "variable": one_line(guard.variable or guard.source),
                "noise": guard.noise,
                "place": places.of(guard.location),
                "conditions": [],
            },
        )
        group["conditions"].append([one_line(guard.kind), one_line(guard.condition)])
    return sorted(groups.values(), key=lambda group: group["noise"])


def accidents_of(accidents: Sequence[Accident], places: Places) -> list[Data]:
    """Guards on numbers that will change."""
    return [
        {
            "compilation": item.guard.compilation or "",
            "variable": one_line(item.guard.variable),
            "value": one_line(item.value),
            "holder": item.holder.value,
            "suspicion": item.suspicion.value,
            "degree": item.suspicion.name.lower(),
            "remedy": item.remedy,
            "place": places.of(item.changed_at or item.guard.location),
        }
        for item in accidents
    ]


def specializations_of(inspection: Inspection, places: Places) -> list[Data]:
    """Sizes that were pinned, and the lines that pinned them."""
    return [
        {
            "compilation": item.compilation or "",
            "variable": one_line(item.variable),
            "value": one_line(item.value),
            "reason": one_line(item.reason),
            "place": places.of(item.location),
        }
        for item in inspection.specializations
    ]


def recompiles_of(inspection: Inspection, places: Places) -> list[Data]:
    """Every recompile with the guards that failed."""
    return [
        {
            "compilation": item.compilation,
            "name": function_name(item.function),
            "place": places.place(item.file, item.line, item.function),
            "failures": [
                {
                    "against": failure.against or "",
                    "variable": one_line(failure.variable),
                    "reason": one_line(failure.reason),
                    "expected": one_line(failure.expected or ""),
                    "actual": one_line(failure.actual or ""),
                    "place": places.of(failure.location),
                }
                for failure in item.failures
            ],
        }
        for item in inspection.recompiles
    ]


def limits_of(inspection: Inspection, places: Places) -> list[Data]:
    """Functions that torch gave up on."""
    return [
        {
            "compilation": item.compilation or "",
            "name": function_name(item.function),
            "place": places.place(item.file, item.line, item.function),
            "sentence": limit_sentence(item),
        }
        for item in inspection.limits
    ]
