"""What ended a compilation or the program: the exception, its innermost cause, and the line."""

from __future__ import annotations

from rich.console import Console

from compile_inspect.records import Failure, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_paragraph
from compile_inspect.reporters.text.source import print_excerpt
from compile_inspect.reporters.text.stacks import print_stack
from compile_inspect.wording.failures import headline
from compile_inspect.wording.locations import stack_at, where
from compile_inspect.wording.plain import one_line

_HANDLED = (
    "While torch traces, an operation that fails ends the compilation, even if the program handles the exception in "
    "eager mode. In that case, check the condition beforehand with an `if`."
)


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print one block for every failure, those of compilations first."""
    if not inspection.failures:
        print_empty(console, inspection, "No compilation failed, and the run ended without an exception.")
        return
    visible = options.first(inspection.failures)
    for failure in visible:
        _print_failure(failure, inspection, console, options)
        console.print()
    print_folded(console, len(inspection.failures) - len(visible), "failure", indent="")


def _print_failure(failure: Failure, inspection: Inspection, console: Console, options: ShowOptions) -> None:
    print_heading(console, headline(failure, inspection))
    print_paragraph(console, failure.told, indent="  ")
    stack = stack_at(inspection, failure.stack)
    line = None if stack is None else stack.own_line or stack.user_line
    if line is not None:
        print_heading(console, f"Line  {where(line)}", f"in {line.function}" if line.function else "", indent="  ")
        print_excerpt(console, line, inspection.sources)
    if failure.error == "TorchRuntimeError":
        print_paragraph(console, _HANDLED, indent="  ")
    if options.all:
        if stack is not None and stack.locations:
            print_heading(console, "Stack", indent="  ")
            print_stack(console, stack, whole=True)
        print_heading(console, f"Message of the {one_line(failure.error)}", indent="  ")
        print_paragraph(console, failure.message, indent="    ", style="dim")
