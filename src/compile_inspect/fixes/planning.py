"""All causes of a target: advice for each, trials of the proposals, and one combined fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from compile_inspect.advice.cost import break_cost
from compile_inspect.fixes import advise
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records import Inspection
from compile_inspect.records.fixes import Finding, Proof, Proposal, Replacement, by_cost

MAX_TRIALS_PER_CAUSE = 4
"""How many proposals of one cause are tried."""


def advise_breaks(inspection: Inspection, *, disk: bool = False) -> tuple[Finding, ...]:
    """Advice for every cause of a capture, from the recorded text alone; with `disk`, from the current files.

    Breaks that occur only because of another break disappear with it and get no advice.
    """
    sources = inspection.sources
    return by_cost(
        tuple(
            Finding(cause, advise(cause, sources, disk=disk), cost=break_cost(inspection, cause))
            for cause in inspection.leading_breaks
        )
    )


def try_proposals(runner: TrialRunner, *, on_trial: Callable[[str], object] = lambda _: None) -> tuple[Finding, ...]:
    """Advice for every cause, with each proposal tried; `on_trial` is called with the title of each trial."""
    findings = []
    for finding in advise_breaks(runner.inspection, disk=True):
        trials: list[tuple[Proposal, Proof]] = []
        for proposal in finding.advice.proposals[:MAX_TRIALS_PER_CAUSE]:
            on_trial(proposal.title)
            trials.append((proposal, runner.prove(finding.cause, proposal)))
        findings.append(replace(finding, trials=tuple(trials)))
    return by_cost(tuple(findings))


@dataclass(frozen=True)
class CombinedFix:
    """The chosen proposals of several causes as one proposal, and the proof of a trial of it."""

    proposal: Proposal
    proof: Proof
    findings: tuple[Finding, ...]
    """The findings whose proposals are part of it."""
    left: tuple[Finding, ...]
    """The other findings: nothing was proven for them, or their proposal overlaps with one that is included."""


def combine_fixes(runner: TrialRunner, findings: Iterable[Finding], *, unreached: bool = True) -> CombinedFix | None:
    """Combine the chosen proposals of all findings and try the result; None if nothing was proven.

    Without `unreached`, proposals that change lines which no input reaches are left out.
    """
    included: list[Finding] = []
    remaining: list[Finding] = []
    replacements: list[Replacement] = []
    for finding in findings:
        chosen = finding.chosen
        if chosen is not None and not unreached and dict(finding.trials)[chosen].unreached:
            chosen = None
        if chosen is None or any(_overlap(new, old) for new in chosen.replacements for old in replacements):
            remaining.append(finding)
            continue
        included.append(finding)
        replacements += [item for item in chosen.replacements if item not in replacements]
    if not included:
        return None
    settings = tuple(dict.fromkeys(item for finding in included if finding.chosen for item in finding.chosen.settings))
    causes = [finding.cause for finding in included]
    proposal = Proposal("together", "all proven fixes at once", tuple(replacements), settings)
    proof = runner.prove_all(causes, proposal)
    for setting in settings if replacements else ():  # a code change for one cause may make the setting for another unnecessary
        fewer = replace(proposal, settings=tuple(item for item in proposal.settings if item != setting))
        without = runner.prove_all(causes, fewer)
        if without.holds:
            proposal, proof = fewer, without
    return CombinedFix(proposal, proof, tuple(included), tuple(remaining))


def _overlap(one: Replacement, other: Replacement) -> bool:
    """Whether two replacements touch the same text; identical replacements do not overlap."""
    if one.file != other.file or one == other:
        return False
    return one.start < other.end and other.start < one.end
