"""Guards: the conditions under which each compiled frame is reused, sorted by kind."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Compilation, Guard, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.compilations import by_identifier, grouped, title
from compile_inspect.reporters.text.locations import user_line, where
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.reporters.text.quantities import count, seconds
from compile_inspect.reporters.text.tables import print_listing


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print the guards of every compilation; those that no one can act on are only counted."""
    if not inspection.guards:
        print_empty(console, inspection, "No guards: nothing that was compiled depends on a condition.")
        return
    known = by_identifier(inspection)
    for identifier, guards in grouped(inspection.guards, lambda guard: guard.compilation).items():
        compilation = known.get(identifier) if identifier is not None else None
        print_heading(console, *title(identifier, known), *_cost(guards, compilation))
        _print_guards(guards, inspection, console, options)
        console.print()


def _cost(guards: list[Guard], compilation: Compilation | None) -> tuple[str, ...]:
    told: tuple[str, ...] = (count(len(guards), "guard"),)
    if compilation is not None and compilation.guard_check_microseconds is not None:
        told += (f"{seconds(compilation.guard_check_microseconds / 1e6)} to check them on a call",)
    return told


def _print_guards(guards: list[Guard], inspection: Inspection, console: Console, options: ShowOptions) -> None:
    useful = [guard for guard in guards if options.all or not guard.noise]
    shown = options.first(useful)
    for kind, members in grouped(shown, lambda guard: guard.kind).items():
        print_heading(console, kind or "other", f"{len(members):,}", indent="  ")
        print_listing(
            console,
            (),
            [
                (
                    guard.variable or guard.source or "-",
                    guard.condition or "-",
                    where(guard.location or user_line(inspection, guard.stack)),
                )
                for guard in members
            ],
            styles=("bold", "", "cyan"),
            indent="    ",
            whole=options.all,
        )
    print_folded(console, len(useful) - len(shown), "guard")
    folded = len(guards) - len(useful)
    if folded:
        console.print(Text(f"  + {folded:,} that no one can act on (use --all)", style="dim"), soft_wrap=True)
