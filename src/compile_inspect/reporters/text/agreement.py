"""Comparisons with eager: one line per variant, with details for a variant that does not agree."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.reporters import conclusions
from compile_inspect.reporters.text.messages import print_heading, print_line, print_paragraph
from compile_inspect.wording.locations import where
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import count

_STYLES = {
    Verdict.AGREES: "green",
    Verdict.ASSUMES: "green",
    Verdict.RANDOM: "yellow",
    Verdict.NONDETERMINISTIC: "yellow",
    Verdict.DISAGREES: "bold red",
    Verdict.REFUSED: "dim",
}
_MAX_DIFFERENCES = 3


def render(agreement: Agreement, console: Console) -> None:
    """Print every variant of one comparison."""
    compared = "values and gradients" if agreement.gradients else "values"
    print_heading(console, one_line(agreement.function), f"{compared} at {count(len(agreement.points), 'input')}")
    for item in agreement.variants:
        _print_variant(item, console)
    if not agreement.reference:
        print_paragraph(console, "There is no float64 reference: variants were compared with eager itself.", indent="  ")
    for note in agreement.notes:
        print_paragraph(console, note, indent="  ", bullet="- ")
    console.print()
    disagrees = not agreement.agrees or not any(item.agrees for item in agreement.variants)
    print_paragraph(console, conclusions.conclude_agreement(agreement), style="bold red" if disagrees else "bold")


def _print_variant(item: VariantAgreement, console: Console) -> None:
    print_line(
        console, Text.assemble("  ", (one_line(item.name), "bold"), ": ", (one_line(item.reason), _STYLES[item.verdict]))
    )
    for difference in item.differences[:_MAX_DIFFERENCES]:
        if str(difference) not in item.reason:
            print_paragraph(console, str(difference), indent="    ")
    for assumption in item.assumptions:
        print_paragraph(console, f"as long as {assumption}", indent="    ")
    if item.blame is not None:
        place = f" ({where(item.blame.location)})" if item.blame.location is not None else ""
        print_paragraph(console, f"blame: {item.blame.message}{place}", indent="    ")
        for sentence in item.blame.evidence:
            print_paragraph(console, f"- {sentence}", indent="      ")
    if item.eager_because is not None:
        print_paragraph(console, f"note: {item.eager_because.value}", indent="    ")
    for note in item.notes:
        print_paragraph(console, f"note: {note}", indent="    ")
    if item.not_probed:
        print_paragraph(console, f"not probed: {'; '.join(item.not_probed)}", indent="    ")
