"""Graph breaks with fixes that were tried, and the proven fixes as one change, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console

from compile_inspect.records.break_reports import BreakReport, FixReport
from compile_inspect.records.fixes import Finding, Proof, Proposal
from compile_inspect.reporters.text.breaks import no_breaks
from compile_inspect.reporters.text.findings import proof_details
from compile_inspect.reporters.text.findings import render as render_findings
from compile_inspect.wording.failures import sentence
from compile_inspect.wording.locations import where
from compile_inspect.wording.quantities import count

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def render_breaks(
    report: BreakReport, console: Console, diff: Callable[[Proposal], str], *, tried: bool = True, limit: int | None = None
) -> None:
    """Print every cause with its advice, and what remains before `fullgraph=True` works."""
    inspection = report.inspection
    if not report.findings:
        console.print(no_breaks(inspection), markup=False, soft_wrap=True)
    elif inspection.failures:
        failure = sentence(inspection.failures[0], inspection)
        console.print(f"{failure} Breaks after that were not reached.", markup=False, soft_wrap=True)
    elif inspection.nothing_compiled:
        console.print("Nothing runs compiled: no graph contains an operation.", soft_wrap=True)
    render_findings(report.findings, console, inspection.sources, diff, tried=tried, limit=limit)
    if report.fullgraph:
        if report.findings and report.backend != "inductor":
            console.print(backend_sentence(report.backend), soft_wrap=True)
        console.print(report.fullgraph, markup=False, soft_wrap=True)


def render_change(report: FixReport, console: Console) -> None:
    """Print the change as a diff, the settings, what the change assumes, and its proof."""
    for line in report.diff.split("\n"):
        console.print(line, style=_DIFF_STYLES.get(line[:1], ""), markup=False, soft_wrap=True)
    for setting in report.settings:
        console.print(f"Before anything is compiled, run:  {setting}", markup=False, soft_wrap=True)
    chosen = [item.best_proposal for item in report.included if item.best_proposal is not None]
    for label, notes in (
        ("Note", [item.behavior_change for item in chosen]),
        ("Assumed", [item.applicability for item in chosen]),
    ):
        for note in dict.fromkeys(filter(None, notes)):
            console.print(f"{label}: {note}", markup=False, soft_wrap=True)
    if report.proof is not None:
        console.print(f"{standing(report.proof)}. {proof_details(report.proof)}", markup=False, soft_wrap=True)
    if report.backend != "inductor":
        console.print(backend_sentence(report.backend), markup=False, soft_wrap=True)


def render_fix(report: FixReport, console: Console) -> None:
    """Print a change with what was written and what remains."""
    if report.proof is None:
        console.print(no_change(report), markup=False, soft_wrap=True)
    else:
        render_change(report, console)
        if not report.holds:
            console.print("Each fix was proven separately, but together they do not hold. Nothing was written.", soft_wrap=True)
        for message in report.messages or (
            ("Nothing was written. To write it, pass write=True.",) if report.texts and report.holds else ()
        ):
            console.print(message, markup=False, soft_wrap=True)
    for text in left_out(report):
        console.print(f"{text} Pass inputs that reach it, or unreached=True.", markup=False, soft_wrap=True)
    if report.remaining:
        console.print(remaining(report), markup=False, soft_wrap=True)


def no_change(report: FixReport) -> str:
    """Why there is no change: there is nothing to fix, or no fix was proven."""
    if not report.findings:
        text = no_breaks(report.inspection)
        return f"{text} There is nothing to fix." if report.inspection.is_fullgraph else text
    if any(finding.best_proposal is not None for finding in report.findings):
        return "Nothing was written: the fixes that hold change lines that no input reaches."
    return "No fix was proven." if len(report.findings) == 1 else f"No fix was proven for any of {len(report.findings)} causes."


def left_out(report: FixReport) -> Iterator[str]:
    """A sentence for each proven fix that is left out because it changes lines that no input reaches."""
    for finding in report.unreached:
        line = _trial(finding).unreached_lines[0]
        place = where(finding.cause.own_location or finding.cause.location)
        yield f"Left out: the fix for {place} changes line {line}, which no input reaches, so nothing is proven about it."


def remaining(report: FixReport) -> str:
    """How many causes remain."""
    return f"{len(report.remaining)} of {count(len(report.findings), 'cause')} left."


def backend_sentence(backend: str) -> str:
    """What a trial with another backend than Inductor does not prove."""
    return f"Compiled with the backend {backend}: this proves nothing about Inductor, which is the default backend."


def standing(proof: Proof) -> str:
    """How far several fixes together were proven, with how many breaks they remove.

    >>> standing(Proof.of(breaks=(3, 1), inputs=4, values=1))
    '2 of 3 breaks are gone, and the results agree with eager'
    """
    before, after = proof.breaks
    text = proof.status.value
    if proof.holds and before > 1 and not proof.revealed_breaks:
        removal = f"all {before} breaks are gone" if not after else f"{before - after} of {before} breaks are gone"
        text = text.replace("the break is gone", removal, 1)
    return f"{text[:1].upper()}{text[1:]}"


def _trial(finding: Finding) -> Proof:
    assert finding.best_proposal is not None
    return dict(finding.trials)[finding.best_proposal]
