"""All causes of a target: advice for each, trials of the proposals, and one combined fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from compile_inspect.advice.cost import break_cost
from compile_inspect.fixes import advise
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records import Inspection
from compile_inspect.records.fixes import Finding, Proof, Proposal, Replacement, sort_by_cost
from compile_inspect.wording.quantities import count

MAX_TRIALS_PER_CAUSE = 4
"""How many proposals of one cause are tried."""


def advise_breaks(inspection: Inspection, *, disk: bool = False) -> tuple[Finding, ...]:
    """Advice for every cause of a capture, from the recorded text alone; with `disk`, from the current files.

    Breaks that occur only because of another break disappear with it and get no advice.
    """
    sources = inspection.sources
    return sort_by_cost(
        tuple(
            Finding(cause, advise(cause, sources, disk=disk), cost=break_cost(inspection, cause))
            for cause in inspection.root_breaks
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
    return sort_by_cost(tuple(findings))


@dataclass(frozen=True)
class CombinedFix:
    """The chosen proposals of several causes as one proposal, and the proof of a trial of it."""

    proposal: Proposal
    proof: Proof
    findings: tuple[Finding, ...]
    """The findings whose proposals are part of it."""
    remaining: tuple[Finding, ...]
    """The other findings: they have no proven proposal, or it overlaps with one that is included."""


def combine_fixes(runner: TrialRunner, findings: Iterable[Finding], *, unreached: bool = True) -> CombinedFix | None:
    """Combine the chosen proposals of all findings and try the result; None if nothing was proven.

    Without `unreached`, proposals that change lines which no input reaches are left out.
    """
    included: list[Finding] = []
    remaining: list[Finding] = []
    replacements: list[Replacement] = []
    for finding in findings:
        chosen = finding.best_proposal
        if chosen is not None and not unreached and dict(finding.trials)[chosen].unreached_lines:
            chosen = None
        if chosen is None or any(_overlap(new, old) for new in chosen.replacements for old in replacements):
            remaining.append(finding)
            continue
        included.append(finding)
        replacements += [item for item in chosen.replacements if item not in replacements]
    if not included:
        return None
    settings = tuple(
        dict.fromkeys(item for finding in included if finding.best_proposal for item in finding.best_proposal.settings)
    )
    causes = [finding.cause for finding in included]
    proposal = Proposal("combined", "all proven fixes at once", tuple(replacements), settings)
    proof = runner.prove_all(causes, proposal)
    for setting in settings if replacements else ():  # a code change for one cause may make the setting for another unnecessary
        smaller_proposal = replace(proposal, settings=tuple(item for item in proposal.settings if item != setting))
        smaller_proof = runner.prove_all(causes, smaller_proposal)
        if smaller_proof.holds:
            proposal, proof = smaller_proposal, smaller_proof
    return CombinedFix(proposal, proof, tuple(included), tuple(remaining))


def fullgraph_sentence(runner: TrialRunner, findings: Sequence[Finding]) -> str:
    """A sentence on what remains to be done before `fullgraph=True` works."""
    if not findings:
        failure = runner.fullgraph_failure()
        return "fullgraph=True works as it is." if failure is None else f"fullgraph=True does not work: {failure}"
    combined = combine_fixes(runner, findings)
    causes = count(len(findings), "cause")
    if combined is None or not combined.proof.holds:
        return f"For fullgraph=True, you must remove {causes} by hand: all that are listed here."
    failure = runner.fullgraph_failure(combined.proposal)
    fix_count = len(combined.findings)
    if failure is None:
        fixes = "this fix" if fix_count == 1 else f"these {fix_count} fixes"
        return f"A trial confirmed that fullgraph=True works with {fixes}."
    if combined.remaining:
        remaining = len(combined.remaining)
        return f"With {fix_count} of {causes} fixed, you must remove {remaining} by hand before fullgraph=True works."
    return f"Even with all fixes, fullgraph=True does not work: {failure}"


def _overlap(one: Replacement, other: Replacement) -> bool:
    """Whether two replacements touch the same text; identical replacements do not overlap."""
    if one.file != other.file or one == other:
        return False
    return one.start < other.end and other.start < one.end
