"""Graph breaks and their fixes: the line, the reason, the fix as a diff, and how far it was proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Location
from compile_inspect.records.fixes import Finding, Proof, Proposal, Standing
from compile_inspect.reporters.text.messages import print_heading, print_line, print_paragraph
from compile_inspect.reporters.text.source import print_excerpt
from compile_inspect.wording.locations import where
from compile_inspect.wording.plain import clean, enumerate_some, one_line
from compile_inspect.wording.quantities import count, seconds

Diff = Callable[[Proposal], str]
_COLORS = {"+": "green", "-": "red", "@": "cyan"}


def render(
    findings: Sequence[Finding], console: Console, sources: Mapping[str, str], diff: Diff, *, tried: bool, limit: int | None
) -> None:
    """Print one block for every cause, the most expensive first."""
    visible = findings if limit is None else findings[:limit]
    for number, finding in enumerate(visible, 1):
        _print_finding(finding, number, len(findings), console, sources, diff, tried)
        console.print()
    if len(visible) < len(findings):
        print_paragraph(console, f"… {count(len(findings) - len(visible), 'more cause')} (use a larger --limit)", style="dim")
        console.print()


def _print_finding(
    finding: Finding, number: int, total: int, console: Console, sources: Mapping[str, str], diff: Diff, tried: bool
) -> None:
    cause, advice = finding.cause, finding.advice
    identifier = (cause.identifier,) if cause.identifier else ()
    print_heading(console, f"Graph break {number} of {total}: {one_line(cause.kind)}", *identifier)
    effect = cause.effect.value[:1].upper() + cause.effect.value[1:]
    facts = [effect, count(cause.hits, "hit"), *([str(finding.cost)] if str(finding.cost) else [])]
    print_line(console, Text("  " + " · ".join(facts)))
    _print_place(console, sources, cause.own_location or cause.location)
    if cause.own_location is not None and cause.location is not None and cause.own_location != cause.location:
        _print_label(console, "In library line", where(cause.location))
    _print_label(console, "Why")
    print_paragraph(console, advice.why, indent="    ")
    proofs = dict(finding.trials)
    chosen = finding.chosen
    ordered = sorted(advice.proposals, key=lambda item: item is not chosen)
    for proposal in ordered:
        proof = proofs.get(proposal)
        if proof is not None and not proof.holds and chosen is not None:
            continue  # another proposal works
        _print_proposal(console, proposal, proof, diff, tried)
    withdrawn = [(item, proofs[item]) for item in ordered if item in proofs and not proofs[item].holds]
    if chosen is not None and withdrawn:
        titles = "; ".join(f"{item.title} ({_short(proof)})" for item, proof in withdrawn)
        _print_label(console, "Tried and withdrawn")
        print_paragraph(console, titles, indent="    ", style="dim")
    if chosen is None:
        _print_hints(console, finding)
    if cause.link:
        _print_label(console, "Read more", cause.link)


def _print_place(console: Console, sources: Mapping[str, str], location: Location | None) -> None:
    if location is None:
        return
    function = f" in {location.function}" if location.function else ""
    _print_label(console, "In library line" if location.in_library else "Your line", where(location) + function)
    print_excerpt(console, location, sources)


def _print_proposal(console: Console, proposal: Proposal, proof: Proof | None, diff: Diff, tried: bool) -> None:
    _print_label(console, "Fix", one_line(proposal.title))
    for setting in proposal.settings:
        console.print(Text(f"    {one_line(setting.code)}", style="green"), soft_wrap=True)
    for line in clean(diff(proposal)).split("\n"):
        if line.strip() and not line.startswith(("---", "+++")):
            console.print(Text(f"    {line}", style=_COLORS.get(line[:1], "")), soft_wrap=True)
    for sentence in (proposal.changes, f"Assumption: {proposal.where}" if proposal.where else ""):
        if sentence:
            print_paragraph(console, sentence, indent="    ", style="dim")
    if proof is None:
        if not tried:
            print_paragraph(
                console, "Not tried: a trial needs the target, which a capture does not contain.", indent="    ", style="dim"
            )
        return
    style = "bold green" if proof.holds else "bold yellow"
    print_paragraph(console, f"{_capital(proof.standing.value)}. {proof_details(proof)}", indent="    ", style=style)


def _print_hints(console: Console, finding: Finding) -> None:
    hints = finding.advice.hints
    _print_label(console, "Fix by hand" if hints else "No fix is known")
    for hint in hints:
        print_paragraph(console, hint, indent="    ", bullet="- ")


def proof_details(proof: Proof) -> str:
    """The numbers behind a verdict, in sentences.

    >>> proof_details(Proof.of(breaks=(2, 1), graphs=(3, 2), inputs=4, values=1, gradients=1))
    'Causes of breaks 2 → 1, graphs 3 → 2. One result and 1 gradient compared at 4 inputs, in eager mode and compiled.'
    """
    reason = f"{_capital(one_line(proof.reason))}. " if proof.reason else ""
    if proof.standing is Standing.FAILED:
        return reason.strip()
    parts = [f"Causes of breaks {proof.breaks[0]} → {proof.breaks[1]}", f"graphs {proof.graphs[0]} → {proof.graphs[1]}"]
    if proof.seconds is not None:
        parts.append(f"a call {seconds(proof.seconds[0])} → {seconds(proof.seconds[1])}")
    return " ".join(filter(None, [f"{reason}{', '.join(parts)}.", comparison(proof), not_compared(proof)]))


def comparison(proof: Proof) -> str:
    """What was compared with the original, in a sentence; empty if nothing was."""
    if not proof.inputs or proof.standing is Standing.DISAGREES:
        return ""
    compared = f"{'One result' if proof.values == 1 else f'{proof.values} results'}"
    if proof.gradients:
        compared += f" and {count(proof.gradients, 'gradient')}"
    error = "" if proof.largest_error is None else f", largest difference {proof.largest_error:.2g}"
    sentence = f"{compared} compared at {count(proof.inputs, 'input')}, in eager mode and compiled{error}"
    return f"{sentence}." if proof.gradients else f"{sentence}; there are no gradients to compare."


def not_compared(proof: Proof) -> str:
    """What was not compared, and why; empty if everything was."""
    sentences = []
    if proof.unsteady:
        names = enumerate_some(proof.unsteady)
        sentences.append(f"Not compared: {names}, which differs between two runs of the unchanged program.")
    if proof.unreached:
        sentences.append(
            f"No input reaches line {proof.unreached[0]}, so nothing is proven about it: add inputs that reach it."
        )
    return " ".join(sentences)


def _short(proof: Proof) -> str:
    outcome = proof.standing.value.removeprefix("withdrawn: ")
    return one_line(f"{outcome}: {proof.reason}" if proof.reason else outcome)[:160]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _print_label(console: Console, label: str, value: str = "") -> None:
    line = Text(f"  {label}", style="bold")
    if value:
        line.append(f"  {one_line(value)}", style="not bold")
    print_line(console, line)
