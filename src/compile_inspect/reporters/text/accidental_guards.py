"""Guards that look accidental: on which variable, why they are likely to fail, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records.accidents import Accident
from compile_inspect.reporters.text.messages import print_heading, print_paragraph
from compile_inspect.wording.locations import where
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import count


def render(accidents: Sequence[Accident], console: Console) -> None:
    """Print the guards, the most certain first."""
    if not accidents:
        print_paragraph(console, "No guard depends on a number that the program changes.")
        console.print()
        return
    print_heading(console, f"{count(len(accidents), 'guard')} on numbers that change")
    for accident in accidents:
        guard = accident.guard
        line = Text(f"  {one_line(guard.variable)} == {one_line(accident.value)}", style="bold")
        line.append(f"  {accident.holder.value}, {where(guard.location)}", style="not bold")
        console.print(line, soft_wrap=True)
        reason = accident.suspicion.value
        if accident.changed_at is not None:
            reason += f": {where(accident.changed_at)} {one_line(accident.changed_at.code)}"
        print_paragraph(console, reason[:1].upper() + reason[1:], indent="    ")
        print_paragraph(console, accident.remedy, indent="    ", style="dim")
    console.print()
