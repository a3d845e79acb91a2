"""Guards: the conditions under which each compiled frame is reused, by kind."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Guard, Inspection, Specialization
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.reporters.text.tables import print_listing
from compile_inspect.wording.compilations import by_identifier, grouped, title
from compile_inspect.wording.locations import user_line, where
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import count

# Guards on tensors and their sizes are the ones that fail in practice.
_FIRST_KINDS = ("TENSOR_MATCH", "SHAPE_ENV")
_MAX_PER_KIND = 12


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print the guards of every compilation; those on the interpreter and on libraries are only counted."""
    if not inspection.guards:
        print_empty(console, inspection, "No guards: the compiled code depends on no condition.")
        return
    compilations = by_identifier(inspection)
    for identifier, guards in grouped(inspection.guards, lambda guard: guard.compilation).items():
        print_heading(console, *title(identifier, compilations, inspection), count(len(guards), "guard"))
        _print_guards(guards, inspection, console, options)
        _print_specializations([item for item in inspection.specializations if item.compilation == identifier], console)
        console.print()


def _print_guards(guards: list[Guard], inspection: Inspection, console: Console, options: ShowOptions) -> None:
    useful = [guard for guard in guards if options.all or not guard.noise]
    kinds = grouped(useful, lambda guard: guard.kind)
    for kind in sorted(kinds, key=lambda kind: kind not in _FIRST_KINDS):
        members = kinds[kind]
        visible = options.first(members, _MAX_PER_KIND)
        print_heading(console, kind or "other", f"{len(members):,}", indent="  ")
        print_listing(
            console,
            (),
            [
                (
                    guard.variable or guard.source or "-",
                    _condition(guard),
                    where(guard.location or user_line(inspection, guard.stack)),
                )
                for guard in visible
            ],
            styles=("bold", "", "cyan"),
            indent="    ",
            keep_ends=(0, 2),
            whole=options.all,
        )
        print_folded(console, len(members) - len(visible), "of this kind", "of this kind", indent="    ")
    folded = len(guards) - len(useful)
    if folded:
        console.print(
            Text(f"  + {folded:,} on the interpreter, torch and other libraries (use --all)", style="dim"), soft_wrap=True
        )


def _print_specializations(specializations: Sequence[Specialization], console: Console) -> None:
    """Print symbolic sizes that a line of code specialized to a number."""
    if not specializations:
        return
    print_heading(console, "sizes specialized to a number", f"{len(specializations):,}", indent="  ")
    rows = [
        (item.variable, f"= {one_line(item.value)}: {one_line(item.reason)}", where(item.location)) for item in specializations
    ]
    print_listing(console, (), rows, styles=("bold", "", "cyan"), indent="    ", keep_ends=(0, 2), whole=True)


def _condition(guard: Guard) -> str:
    condition = one_line(guard.condition)
    variable = one_line(guard.variable)
    # Most conditions begin with the variable, which already has its own column.
    if variable and condition.startswith(f"{variable} "):
        condition = condition[len(variable) + 1 :]
    return condition or "-"
