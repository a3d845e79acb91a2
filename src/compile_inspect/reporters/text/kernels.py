"""Kernels: the kernels of each graph, what each computes, and what was not fused."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Fate, Inspection, KernelKind, Lowering, NotFused
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.compilations import by_identifier, title
from compile_inspect.wording.locations import kernel_places
from compile_inspect.wording.plain import enumerate_some, one_line
from compile_inspect.wording.quantities import count, size

_MAX_KERNELS = 40
_MAX_NODES = 8
_MAX_LINES = 3
_MAX_PAIRS = 3
_MAX_REASONS = 10


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print a table of kernels for every graph that was lowered, forward and backward."""
    if not inspection.lowerings:
        print_empty(
            console,
            inspection,
            "No kernels: Inductor lowered no graph. Another backend was used, or nothing needed a kernel.",
        )
        return
    compilations = by_identifier(inspection)
    for lowering in inspection.lowerings:
        heading = title(lowering.compilation, compilations, inspection)
        print_heading(console, *heading, lowering.direction.value, *_facts(lowering))
        _print_kernels(lowering, inspection, console, options)
        _print_not_fused(lowering, console, options)
        _print_unplaced(lowering, console, options)
        console.print()


def _facts(lowering: Lowering) -> list[str]:
    facts = [count(len(lowering.kernels), "kernel launch", "kernel launches")]
    fused = sum(kernel.is_fused for kernel in lowering.kernels)
    if fused:
        facts.append(f"{fused:,} fused")
    if lowering.memory is not None:
        facts.append(f"peak memory {size(lowering.memory.peak_bytes)} by Inductor's estimate")
    if lowering.from_cache:
        has_nodes = any(kernel.nodes for kernel in lowering.kernels)
        facts.append("from torch's cache" + ("" if has_nodes else ": record with --fresh to see nodes, lines and fusion"))
    return facts


def _print_kernels(lowering: Lowering, inspection: Inspection, console: Console, options: ShowOptions) -> None:
    if not lowering.kernels:
        console.print(Text("  No kernel: the wrapper does all the work.", style="dim"), soft_wrap=True)
        return
    visible = options.first(lowering.kernels, _MAX_KERNELS)
    table = new_table(">#", "Kernel", "Kind", ">Nodes", "Computes", "Lines")
    for number, kernel in enumerate(visible, 1):
        add_row(
            table,
            str(number),
            plain(kernel.name, "bold" if kernel.is_fused else ""),
            plain(kernel.kind.value, "yellow" if kernel.kind is KernelKind.EXTERN else "green"),
            f"{len(kernel.nodes):,}",
            enumerate_some(kernel.nodes, None if options.all else _MAX_NODES),
            plain(kernel_places(inspection, kernel, None if options.all else _MAX_LINES), "cyan"),
        )
    print_table(console, table)
    print_folded(console, len(lowering.kernels) - len(visible), "kernel")


def _print_not_fused(lowering: Lowering, console: Console, options: ShowOptions) -> None:
    if not lowering.not_fused:
        return
    numbers = _numbers(lowering)
    reasons: dict[str, list[NotFused]] = {}
    for item in lowering.not_fused:
        reasons.setdefault(item.reason, []).append(item)
    ranked = sorted(reasons.items(), key=lambda entry: -sum(item.times for item in entry[1]))
    visible = options.first(ranked, _MAX_REASONS)
    console.print(Text("  Not fused", style="bold"), soft_wrap=True)
    table = new_table(">Times", "Reason", "Neighbors")
    for reason, items in visible:
        pairs = list(dict.fromkeys(_pair(item, numbers) for item in items))
        add_row(
            table,
            f"{sum(item.times for item in items):,}",
            reason or "no reason was given",
            plain(enumerate_some(pairs, None if options.all else _MAX_PAIRS), "dim"),
        )
    print_table(console, table, indent=4)
    print_folded(console, len(ranked) - len(visible), "reason", indent="    ")


def _numbers(lowering: Lowering) -> dict[str, str]:
    """Kernels by their numbers in the table above; a kernel with many launches keeps its name."""
    launches: dict[str, list[str]] = {}
    for number, kernel in enumerate(lowering.kernels, 1):
        launches.setdefault(kernel.name, []).append(f"#{number}")
    return {name: "/".join(numbers) for name, numbers in launches.items() if len(numbers) <= 4}


def _pair(item: NotFused, numbers: dict[str, str]) -> str:
    first, second = item.first_kernel or item.first, item.second_kernel or item.second
    return f"{numbers.get(first, first)} + {numbers.get(second, second)}"


def _print_unplaced(lowering: Lowering, console: Console, options: ShowOptions) -> None:
    if not lowering.unplaced:
        return
    names: dict[Fate, list[str]] = {}
    for node in lowering.unplaced:
        names.setdefault(node.fate, []).append(one_line(node.name))
    console.print(
        Text("  In no kernel", style="bold").append(f"  {count(len(lowering.unplaced), 'node')}", style="not bold dim"),
        soft_wrap=True,
    )
    for fate in Fate:
        if fate in names:
            listed = f": {', '.join(names[fate])}" if options.all else ""
            console.print(Text(f"    {len(names[fate]):>5,}  {fate.value}{listed}"), soft_wrap=True)
