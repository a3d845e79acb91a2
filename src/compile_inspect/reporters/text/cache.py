"""Lookups in torch's compile caches: hits, misses, and why a cache was bypassed."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from compile_inspect.records import CacheEvent, CacheOutcome, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.compilations import by_identifier, function_name
from compile_inspect.wording.plain import shorten
from compile_inspect.wording.quantities import seconds

_MAX_LOOKUPS = 30
_KEY_WIDTH = 12
_STYLES = {CacheOutcome.HIT: "green", CacheOutcome.MISS: "yellow", CacheOutcome.BYPASS: "red"}


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print totals for each cache, then every lookup."""
    if not inspection.caches:
        sentence = "No cache lookups: torch's compile caches are disabled, or there was nothing to look up."
        print_empty(console, inspection, sentence)
        return
    _print_totals(inspection, console)
    compilations = by_identifier(inspection)
    visible = options.first(inspection.caches, _MAX_LOOKUPS)
    print_heading(console, "Lookups")
    table = new_table("Id", "Function", "Cache", "Outcome", "Reason", ">Saved", "Key")
    for event in visible:
        compilation = compilations.get(event.compilation or "")
        add_row(
            table,
            event.compilation or "-",
            function_name(compilation.function) if compilation else "-",
            event.cache,
            Text(event.outcome.value, style=_STYLES[event.outcome]),
            event.reason or "-",
            seconds(_saved(event)),
            plain((event.key if options.all else shorten(event.key, _KEY_WIDTH)) or "-", "dim"),
        )
    print_table(console, table)
    print_folded(console, len(inspection.caches) - len(visible), "lookup")
    console.print()


def _saved(event: CacheEvent) -> float | None:
    # On a miss, the number is what the next lookup will save.
    return event.seconds_saved if event.outcome is CacheOutcome.HIT else None


def _print_totals(inspection: Inspection, console: Console) -> None:
    events: dict[str, list[CacheEvent]] = {}
    for event in inspection.caches:
        events.setdefault(event.cache, []).append(event)
    print_heading(console, "Caches")
    table = new_table("Cache", ">Hits", ">Misses", ">Bypassed", ">Time saved")
    for cache, members in events.items():
        outcomes = Counter(event.outcome for event in members)
        saved = [seconds_saved for event in members if (seconds_saved := _saved(event)) is not None]
        add_row(
            table,
            cache,
            *(f"{outcomes[outcome]:,}" for outcome in (CacheOutcome.HIT, CacheOutcome.MISS, CacheOutcome.BYPASS)),
            seconds(sum(saved) if saved else None),
        )
    print_table(console, table)
    console.print()
