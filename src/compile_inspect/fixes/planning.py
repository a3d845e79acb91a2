"""All causes of a target at once: advice for each, trials of what is proposed, and what can be applied together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from compile_inspect.advice.cost import break_cost
from compile_inspect.fixes import advise
from compile_inspect.fixes.proving import Laboratory
from compile_inspect.records import Inspection
from compile_inspect.records.fixes import Finding, Proof, Proposal, Replacement, by_cost

MOST_TRIALS = 4
"""Proposals of one cause that are tried."""


def advised(inspection: Inspection, *, disk: bool = False) -> tuple[Finding, ...]:
    """Advice for every cause of a capture, from what was recorded alone; with `disk`, from the files as they are.

    What torch met only because of another break is gone with that one, and needs no advice.
    """
    sources = inspection.sources
    return by_cost(
        tuple(
            Finding(cause, advise(cause, sources, disk=disk), cost=break_cost(inspection, cause))
            for cause in inspection.leading_breaks
        )
    )


def treated(laboratory: Laboratory, *, on_trial: Callable[[str], object] = lambda _: None) -> tuple[Finding, ...]:
    """Advice for every cause, each proposal tried; `on_trial` is told what is being tried."""
    findings = []
    for finding in advised(laboratory.inspection, disk=True):
        trials: list[tuple[Proposal, Proof]] = []
        for proposal in finding.advice.proposals[:MOST_TRIALS]:
            on_trial(proposal.title)
            trials.append((proposal, laboratory.prove(finding.cause, proposal)))
        findings.append(replace(finding, trials=tuple(trials)))
    return by_cost(tuple(findings))


@dataclass(frozen=True)
class Treatment:
    """The chosen proposals of several causes as one, and what a trial of it has shown."""

    proposal: Proposal
    proof: Proof
    findings: tuple[Finding, ...]
    """Those whose proposals are part of it."""
    left: tuple[Finding, ...]
    """Those that are not: nothing was proven for them, or it overlaps with what is."""


def together(laboratory: Laboratory, findings: Iterable[Finding], *, unreached: bool = True) -> Treatment | None:
    """The chosen proposals of all findings in one, tried once more; None where nothing was proven.

    Without `unreached`, proposals that change lines which no input reaches are left out.
    """
    taken: list[Finding] = []
    left: list[Finding] = []
    replacements: list[Replacement] = []
    for finding in findings:
        chosen = finding.chosen
        if chosen is not None and not unreached and dict(finding.trials)[chosen].unreached:
            chosen = None
        if chosen is None or any(_overlap(new, old) for new in chosen.replacements for old in replacements):
            left.append(finding)
            continue
        taken.append(finding)
        replacements += [item for item in chosen.replacements if item not in replacements]
    if not taken:
        return None
    settings = tuple(dict.fromkeys(item for finding in taken if finding.chosen for item in finding.chosen.settings))
    causes = [finding.cause for finding in taken]
    proposal = Proposal("together", "all proven fixes at once", tuple(replacements), settings)
    proof = laboratory.prove_together(causes, proposal)
    for setting in settings if replacements else ():  # a change of the code for one cause may do for another
        fewer = replace(proposal, settings=tuple(item for item in proposal.settings if item != setting))
        without = laboratory.prove_together(causes, fewer)
        if without.holds:
            proposal, proof = fewer, without
    return Treatment(proposal, proof, tuple(taken), tuple(left))


def _overlap(one: Replacement, other: Replacement) -> bool:
    """Whether two replacements touch the same text; two that insert the same thing at one place do not."""
    if one.file != other.file or one == other:
        return False
    return one.start < other.end and other.start < one.end
