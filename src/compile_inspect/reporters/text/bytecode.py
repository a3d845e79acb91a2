"""The bytecode of each frame, before and after Dynamo rewrote it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.locations import place
from compile_inspect.wording.plain import clean
from compile_inspect.wording.quantities import count

_MAX_FRAMES = 4


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print both listings of every frame; `--compilation` selects one."""
    if not inspection.bytecode:
        print_empty(console, inspection, "No bytecode: Dynamo rewrote no frame, or it was not recorded.")
        return
    visible = options.first(inspection.bytecode, _MAX_FRAMES)
    for item in visible:
        label = f"Compilation {item.compilation}  " if item.compilation is not None else ""
        print_heading(console, f"{label}{function_name(item.function)}", place(item.file, item.line))
        _print_listing(console, "Original", item.original)
        _print_listing(console, "Rewritten", item.rewritten)
        console.print()
    if len(visible) < len(inspection.bytecode):
        print_folded(console, len(inspection.bytecode) - len(visible), "frame", indent="")
        console.print()


def _print_listing(console: Console, label: str, listing: str) -> None:
    lines = [line.rstrip() for line in clean(listing).expandtabs(8).strip("\n").split("\n")]
    instructions = sum(bool(line.strip()) for line in lines)
    heading = Text(f"  {label}", style="bold").append(f"  {count(instructions, 'line')}", style="not bold dim")
    console.print(heading, soft_wrap=True)
    console.print(Text("\n".join(f"    {line}".rstrip() for line in lines)), soft_wrap=True)
