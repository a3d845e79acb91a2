"""Graph breaks: where, why, their effect, and what to do about them."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import GraphBreak, Inspection, Location, Outcome
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_line, print_paragraph
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.source import print_excerpt
from compile_inspect.reporters.text.stacks import print_stack
from compile_inspect.wording.failures import sentence as failure_sentence
from compile_inspect.wording.locations import stack_at, where
from compile_inspect.wording.plain import enumerate_some, one_line
from compile_inspect.wording.quantities import count

FOLLOWING_BREAKS = "Further graph breaks, in the code that this one left to Python"


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print one block for every cause."""
    if not inspection.breaks:
        print_empty(console, inspection, no_breaks(inspection), no_breaks(inspection))
        return
    leading = inspection.leading_breaks
    visible = options.first(leading)
    for number, item in enumerate(visible, 1):
        _print_break(item, number, len(leading), inspection, console, options)
        console.print()
    if len(visible) < len(leading):
        print_folded(console, len(leading) - len(visible), "graph break", indent="")
        console.print()


def no_breaks(inspection: Inspection) -> str:
    """A sentence for a capture without graph breaks; it says that frames are one graph only if all were compiled and ran."""
    if inspection.failures:
        return f"No graph break was recorded before this. {failure_sentence(inspection.failures[0], inspection)}"
    if inspection.nothing_compiled:
        return "Nothing was compiled, so there was no graph to break."
    uncompiled = sum(item.outcome is not Outcome.COMPILED for item in inspection.compilations)
    if uncompiled:
        return f"No graph breaks, but {count(uncompiled, 'frame')} could not be compiled."
    return "No graph breaks: every frame was captured as one graph."


def following_break_lines(item: GraphBreak, inspection: Inspection) -> list[str]:
    """The breaks that follow from this one, each in a few words."""
    breaks = inspection.following_breaks(item)
    return [f"{one_line(other.kind)}, {where(other.own_location or other.location)}" for other in breaks]


def _print_break(
    item: GraphBreak, number: int, total: int, inspection: Inspection, console: Console, options: ShowOptions
) -> None:
    identifier = (item.identifier,) if item.identifier else ()
    print_heading(console, f"Graph break {number} of {total}: {one_line(item.kind)}", *identifier)
    facts = [item.effect.value[:1].upper() + item.effect.value[1:], count(item.hits, "hit")]
    if item.compilations:
        label = "compilation" if len(item.compilations) == 1 else "compilations"
        facts.append(f"{label} {enumerate_some(item.compilations, None if options.all else 8)}")
    print_line(console, Text("  " + " · ".join(facts)))
    if item.own_location is not None and item.own_location != item.location:
        _print_line(console, inspection, "Your line", item.own_location)
        _print_line(console, inspection, "In library line", item.location)
    else:
        library = item.location is not None and item.location.in_library
        _print_line(console, inspection, "In library line" if library else "Line", item.location)
    if item.explanation:
        _print_label(console, "Why")
        print_paragraph(console, item.explanation, indent="    ")
    _print_remedies(item, inspection, console)
    if item.link:
        _print_label(console, "Read more", item.link)
    lines = following_break_lines(item, inspection)
    if lines:
        _print_label(console, FOLLOWING_BREAKS)
        for line in options.first(lines):
            print_paragraph(console, line, indent="    ", bullet="- ")
        print_folded(console, len(lines) - len(options.first(lines)), "graph break", indent="    ")
    stack = stack_at(inspection, item.stack)
    if stack is not None and stack.locations:
        _print_label(console, "Stack")
        print_stack(console, stack, whole=options.all)
    if options.all:
        _print_details(item, console)


def _print_remedies(item: GraphBreak, inspection: Inspection, console: Console) -> None:
    """The fixes that were checked, if the capture contains any; otherwise torch's own hints."""
    finding = next((other for other in inspection.findings if _same_cause(other.cause, item)), None)
    if finding is None:
        if item.hints:
            _print_label(console, "Hints from torch (not tried)")
        for hint in item.hints:
            print_paragraph(console, hint, indent="    ", bullet="- ")
        return
    for proposal, proof in sorted(finding.trials, key=lambda trial: trial[0] is not finding.chosen):
        outcome = f"{proposal.title}: {proof.standing.value}"
        _print_label(
            console, "Fix" if proof.holds else "Tried and withdrawn", f"{outcome}: {proof.reason}" if proof.reason else outcome
        )
    for hint in finding.advice.hints if finding.chosen is None else ():
        print_paragraph(console, hint, indent="    ", bullet="- ")


def _same_cause(one: GraphBreak, other: GraphBreak) -> bool:
    return (one.kind, one.location, one.own_location) == (other.kind, other.location, other.own_location)


def _print_label(console: Console, label: str, value: str = "", style: str = "") -> None:
    line = Text(f"  {label}", style="bold")
    if value:
        line.append("  ").append_text(plain(value, f"not bold {style}"))
    print_line(console, line)


def _print_line(console: Console, inspection: Inspection, label: str, location: Location | None) -> None:
    if location is None:
        return
    function = f" in {location.function}" if location.function else ""
    _print_label(console, label, where(location) + function, "cyan")
    print_excerpt(console, location, inspection.sources)


def _print_details(item: GraphBreak, console: Console) -> None:
    """Details for debugging torch itself."""
    for label, value in (("Context", item.context), ("Traced instruction", item.traced_instruction)):
        if value:
            _print_label(console, label)
            print_paragraph(console, value, indent="    ")
    if item.text:
        _print_label(console, "torch's own message")
        print_paragraph(console, item.text, indent="    ", style="dim")
