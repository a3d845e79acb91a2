"""Graph breaks: where, why, what it did, and what to do about it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import GraphBreak, Inspection, Location, Outcome
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.failures import sentence as failure_sentence
from compile_inspect.reporters.text.locations import print_stack, stack_at, where
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_paragraph
from compile_inspect.reporters.text.plain import enumerate_some, one_line, plain
from compile_inspect.reporters.text.quantities import count
from compile_inspect.reporters.text.source import print_excerpt


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print one block for every cause."""
    if not inspection.breaks:
        print_empty(console, inspection, no_breaks(inspection), no_breaks(inspection))
        return
    shown = options.first(inspection.breaks)
    for number, item in enumerate(shown, 1):
        _print_break(item, number, inspection, console, options)
        console.print()
    if len(shown) < len(inspection.breaks):
        print_folded(console, len(inspection.breaks) - len(shown), "graph break", indent="")
        console.print()


def no_breaks(inspection: Inspection) -> str:
    """What can be said where no break was recorded: that frames are whole only where all of them were compiled and ran."""
    if inspection.failures:
        return f"No graph break was recorded before this. {failure_sentence(inspection.failures[0], inspection)}"
    if inspection.nothing_compiled:
        return "Nothing was compiled, so there was no graph to break."
    left = sum(item.outcome is not Outcome.COMPILED for item in inspection.compilations)
    if left:
        return f"No graph breaks, but {count(left, 'frame')} could not be compiled."
    return "No graph breaks: every frame was captured whole."


def _print_break(item: GraphBreak, number: int, inspection: Inspection, console: Console, options: ShowOptions) -> None:
    known = (item.identifier,) if item.identifier else ()
    print_heading(console, f"Graph break {number} of {len(inspection.breaks)}: {one_line(item.kind)}", *known)
    facts = [item.effect.value[:1].upper() + item.effect.value[1:], count(item.hits, "hit")]
    if item.compilations:
        label = "compilation" if len(item.compilations) == 1 else "compilations"
        facts.append(f"{label} {enumerate_some(item.compilations, None if options.all else 8)}")
    console.print(Text("  " + " · ".join(facts)), soft_wrap=True)
    if item.own_location is not None and item.own_location != item.location:
        _print_line(console, inspection, "Your line", item.own_location)
        _print_line(console, inspection, "In library line", item.location)
    else:
        library = item.location is not None and item.location.in_library
        _print_line(console, inspection, "In library line" if library else "Line", item.location)
    if item.explanation:
        _print_label(console, "Why")
        print_paragraph(console, item.explanation, indent="    ")
    if item.hints:
        _print_label(console, "What to do")
        for hint in item.hints:
            print_paragraph(console, hint, indent="    ", bullet="- ")
    if item.link:
        _print_label(console, "Read more", item.link)
    stack = stack_at(inspection, item.stack)
    if stack is not None and stack.locations:
        _print_label(console, "Stack")
        print_stack(console, stack, whole=options.all)
    if options.all:
        _print_details(item, console)


def _print_label(console: Console, label: str, value: str = "", style: str = "") -> None:
    line = Text(f"  {label}", style="bold")
    if value:
        line.append("  ").append_text(plain(value, f"not bold {style}"))
    console.print(line, soft_wrap=True)


def _print_line(console: Console, inspection: Inspection, label: str, location: Location | None) -> None:
    if location is None:
        return
    function = f" in {location.function}" if location.function else ""
    _print_label(console, label, where(location) + function, "cyan")
    print_excerpt(console, location, inspection.sources)


def _print_details(item: GraphBreak, console: Console) -> None:
    """What only someone who debugs torch itself wants to see."""
    for label, value in (("Context", item.context), ("Traced instruction", item.traced_instruction)):
        if value:
            _print_label(console, label)
            print_paragraph(console, value, indent="    ")
    if item.text:
        _print_label(console, "torch's own message")
        print_paragraph(console, item.text, indent="    ", style="dim")
