"""The verdict in a sentence, and all counts in a compact table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import CacheOutcome, CompiledShare, Inspection
from compile_inspect.reporters.counts import Counts, total
from compile_inspect.reporters.counts import count as count_records
from compile_inspect.reporters.text.messages import print_folded
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import count, seconds

_HEADINGS = ("Compilations", "Graphs", "Graph breaks", "Recompiles", "Time", "Kernels", "Cache")
_RIGHT_HEADINGS = tuple(f">{heading}" for heading in _HEADINGS[:-1]) + _HEADINGS[-1:]
_MAX_PROCESSES = 16
_MIN_TABLE_WIDTH = 78
_MIN_WIDTH_FOR_CACHE = 100


def render_overview(inspections: Sequence[Inspection], console: Console) -> None:
    """Print the verdict over all processes and a table with one row per process."""
    counts = [count_records(inspection) for inspection in inspections]
    together = total(counts)
    sentence, style = verdict(together, all(item.complete and not item.missing for item in inspections))
    console.print(Text(sentence, style=f"bold {style}"), soft_wrap=True)
    if inspections:
        _print_origin(inspections[0], console)
    console.print()
    if not together.compilations and not together.kernels:
        return
    if len(inspections) > 1:
        _print_processes(inspections, counts, console)
    elif console.width < _MIN_TABLE_WIDTH:
        width = max(map(len, _HEADINGS))
        for heading, cell in zip(_HEADINGS, _cells(together), strict=True):
            console.print(Text.assemble((f"  {heading:<{width}}  ", "dim"), cell), soft_wrap=True)
    else:
        table = new_table(*_RIGHT_HEADINGS)
        add_row(table, *_cells(together))
        print_table(console, table)
    console.print()


def _print_processes(inspections: Sequence[Inspection], counts: Sequence[Counts], console: Console) -> None:
    """One row per process; without enough room, the cache column is dropped."""
    columns = len(_RIGHT_HEADINGS) if console.width >= _MIN_WIDTH_FOR_CACHE else len(_RIGHT_HEADINGS) - 1
    table = new_table("Process", *_RIGHT_HEADINGS[:columns])
    for inspection, own in list(zip(inspections, counts, strict=True))[:_MAX_PROCESSES]:
        add_row(table, inspection.process.label, *_cells(own)[:columns])
    add_row(table, "total", *_cells(total(counts))[:columns])
    print_table(console, table)
    print_folded(console, len(inspections) - _MAX_PROCESSES, "process", "processes")


def verdict(counts: Counts, all_evidence: bool = True) -> tuple[str, str]:
    """One sentence on the outcome, and its color; makes no claim that missing evidence could contradict.

    >>> verdict(Counts(compilations=1, graphs=1))
    ('No graph breaks and no recompiles.', 'green')
    >>> verdict(Counts(compilations=3, graphs=2, breaks=2, recompiles=1))[0]
    '2 graph breaks, 1 recompile.'
    >>> verdict(Counts(compilations=2, breaks=1))[0]
    'Nothing runs compiled: torch traced 2 frames and built no graph; 1 graph break.'
    >>> verdict(Counts(compilations=2, graphs=1, breaks=1, share=CompiledShare(1, 39)))[0]
    'Almost nothing runs compiled: 2 % of the operations that torch traced run compiled (1 of 40); 1 graph break.'
    >>> verdict(Counts(kernels=3))[0]
    'torch.compile compiled nothing; 3 kernels generated outside of it.'
    """
    if not counts.compilations:
        if counts.raised:
            return "The run ended with an exception before anything was compiled.", "red"
        if counts.kernels:  # AOTInductor, say
            return f"torch.compile compiled nothing; {count(counts.kernels, 'kernel')} generated outside of it.", "green"
        if counts.measurements:
            return "No compilation was recorded: this capture contains measurements only.", "yellow"
        return "Nothing was compiled during the recording.", "yellow"
    findings = []
    if counts.failed:
        findings.append(f"{count(counts.failed, 'compilation')} failed")
    if counts.limits:
        findings.append(f"torch gave up on {count(counts.limits, 'function')}")
    if counts.breaks:
        findings.append(count(counts.breaks, "graph break"))
    if counts.skipped:
        findings.append(f"{count(counts.skipped, 'frame')} left in eager mode")
    if counts.unfinished:
        findings.append(f"{count(counts.unfinished, 'compilation')} unfinished")
    captured_fully = not findings
    if counts.recompiles:
        findings.append(count(counts.recompiles, "recompile"))
    details = ", ".join(findings) or "no graph breaks and no recompiles"
    share = share_words(counts.share) if all_evidence else ""
    if not counts.graphs and not counts.failed and all_evidence:
        return (
            f"Nothing runs compiled: torch traced {count(counts.compilations, 'frame')} and built no graph; {details}.",
            "red",
        )
    if counts.raised and not counts.failed:
        return f"The run ended with an exception. Before that: {details}.", "red"
    if share and counts.share is not None and counts.share.is_near_zero:
        return f"Almost nothing runs compiled: {share}; {details}.", "red"
    if not captured_fully:
        tail = f" {share[:1].upper()}{share[1:]}." if share else ""
        return f"{details}.{tail}", "red" if counts.failed or counts.limits else "yellow"
    if not all_evidence:
        return f"{details[:1].upper()}{details[1:]}, as far as recorded.", "yellow"
    if findings:
        return f"No graph breaks, but {details}.", "yellow"
    return "No graph breaks and no recompiles.", "green"


def share_words(share: CompiledShare | None) -> str:
    """The share of traced operations that run compiled; empty if all do, or if that is unknown.

    >>> share_words(CompiledShare(9, 3)), share_words(CompiledShare(9, 0))
    ('75 % of the operations that torch traced run compiled (9 of 12)', '')
    """
    if share is None or share.fraction is None or not share.eager:
        return ""
    numbers = f"{share.compiled:,} of {share.traced:,}"
    return f"{percent(share.fraction)} of the operations that torch traced run compiled ({numbers})"


def percent(fraction: float) -> str:
    """A share as a percentage; 0 and 100 are exact.

    >>> percent(0.0), percent(0.002), percent(0.75), percent(0.999), percent(1.0)
    ('0 %', '1 %', '75 %', '99 %', '100 %')
    """
    return f"{fraction:.0%}".replace("%", " %") if fraction in (0.0, 1.0) else f"{min(99, max(1, round(100 * fraction)))} %"


def cache_result(cache: Mapping[CacheOutcome, int]) -> str:
    """The outcomes of cache lookups.

    >>> cache_result({CacheOutcome.HIT: 2, CacheOutcome.MISS: 1})
    '2 hits, 1 miss'
    """
    nouns = {CacheOutcome.HIT: ("hit", "hits"), CacheOutcome.MISS: ("miss", "misses")}
    parts = []
    for outcome in CacheOutcome:
        if cache.get(outcome):
            singular, plural = nouns.get(outcome, (outcome.value, outcome.value))
            parts.append(count(cache[outcome], singular, plural))
    return ", ".join(parts) or "not used"


def _cells(counts: Counts) -> tuple[Text, ...]:
    return (
        Text(f"{counts.compilations:,}"),
        Text(f"{counts.graphs:,}"),
        Text(f"{counts.breaks:,}", style="bold yellow" if counts.breaks else ""),
        Text(f"{counts.recompiles:,}", style="bold yellow" if counts.recompiles else ""),
        Text(seconds(counts.compile_seconds)),
        Text(f"{counts.kernels:,}"),
        Text(cache_result(counts.cache)),
    )


def _print_origin(inspection: Inspection, console: Console) -> None:
    environment = inspection.environment
    program, *arguments = inspection.process.command or ("",)
    # The full path of the interpreter would crowd out the arguments, which distinguish programs.
    parts = [shorten(" ".join([re.split(r"[/\\]", program)[-1], *arguments]), 60)]
    parts += [f"torch {environment.torch}" if environment.torch else ""]
    parts += [f"Python {environment.python.split()[0]}" if environment.python.strip() else ""]
    parts += [", ".join(dict.fromkeys(environment.devices)) or environment.cpu or environment.platform]
    line = " · ".join(one_line(part) for part in parts if part)
    if line:
        console.print(plain(line, "dim"), soft_wrap=True)
