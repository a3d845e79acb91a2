"""How often torch.compile will compile for a sequence of calls, and what would reduce that."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records.forecast import Comparison, Forecast, ForecastCall, ForecastCompilation, Remedy, Treatment
from compile_inspect.reporters.text.messages import print_folded, print_heading, print_paragraph
from compile_inspect.reporters.text.tables import print_listing
from compile_inspect.wording.causes import cause
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.locations import place
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import count, seconds

_MAX_REMEDIES = 3
_MAX_LABELS = 4


def render(forecast: Forecast, console: Console, *, limit: int | None = None) -> None:
    """Print how many graphs are compiled, for which calls, and why."""
    title = f"{count(len(forecast.calls), 'call')}: {count(forecast.count, 'graph')} compiled"
    print_heading(console, title, f"predicted in {seconds(forecast.seconds)} by tracing alone, without a backend")
    visible = forecast.graphs if limit is None else forecast.graphs[:limit]
    rows = [
        (_label(forecast, item), function_name(item.function), place(item.file, item.line), _why(forecast, item))
        for item in visible
    ]
    print_listing(console, ("For", "Function", "Line", "Reason"), rows, indent="  ", keep_ends=(0, 2), whole=True)
    print_folded(console, len(forecast.graphs) - len(visible), "graph")
    for item in forecast.limits:
        label = _call(forecast, item.call)
        value = "" if item.value is None else f" = {item.value}"
        reached = f"At {label} {function_name(item.function)} reaches {item.limit}{value}"
        sentence = f"{reached}: calls that need another version run in eager mode."
        console.print(Text("  Warning: ", style="bold yellow").append(one_line(sentence), style="not bold"), soft_wrap=True)
    for (error, in_eager), calls in _failures(forecast).items():
        how = "in eager mode too" if in_eager else "only when compiled"
        sentence = f"{_listed([_call(forecast, call.index) for call in calls])} {'fails' if len(calls) == 1 else 'fail'} {how}"
        print_paragraph(console, f"{sentence}: {error}", indent="  ", style="bold red")
    for note in forecast.notes:
        print_paragraph(console, note, indent="  ", style="dim")
    console.print()


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Print whether the real run matched the prediction."""
    observed = comparison.observed
    if comparison.agrees:
        sentence = f"Real run with {observed.backend}: {count(observed.count, 'graph')} compiled, as predicted"
        print_paragraph(console, f"{sentence}, in {seconds(observed.seconds)}.", style="green")
    for difference in comparison.differences:
        print_paragraph(console, f"Different from the prediction: {difference}", style="bold yellow")
    console.print()


def render_treatments(treatments: Sequence[Treatment], console: Console) -> None:
    """Print each cause of recompiles with its remedies, the best first."""
    for treatment in treatments:
        times = f"{count(treatment.times, 'time')}"
        print_heading(
            console, f"{one_line(treatment.variable) or 'something'} changes", times, function_name(treatment.function)
        )
        print_paragraph(console, treatment.why, indent="  ")
        best = treatment.best
        others = [item for item in treatment.remedies if item is not best]
        useful = [item for item in others if item.proven is None or item.proven.holds]
        for remedy in ([best] if best is not None else []) + useful[: _MAX_REMEDIES - 1]:
            _print_remedy(remedy, console)
        if best is None:
            print_paragraph(console, "No remedy that was tried reduces the number of compilations.", indent="  ", style="dim")
        console.print()


def _print_remedy(remedy: Remedy, console: Console) -> None:
    console.print(Text("  Remedy  ", style="bold").append(one_line(remedy.title), style="not bold"), soft_wrap=True)
    for line in filter(None, remedy.code.split("\n")):
        console.print(Text(f"    {line}", style="green"), soft_wrap=True)
    if remedy.buckets is not None:
        sizes = ", ".join(map(str, remedy.buckets.sizes))
        sentence = f"Sizes {sizes}; {remedy.buckets.waste:.0f} % of the computation is then padding."
        print_paragraph(console, sentence, indent="    ", style="dim")
    if remedy.changes:
        print_paragraph(console, remedy.changes, indent="    ", style="dim")
    proof = remedy.proven
    if proof is not None:
        before, after = proof.compilations
        result = (
            f"Tried: {count(after, 'graph')} instead of {before}." if proof.holds else f"Tried without success: {proof.reason}"
        )
        print_paragraph(console, result, indent="    ", style="bold green" if proof.holds else "yellow")
    else:
        print_paragraph(console, "Not tried.", indent="    ", style="dim")


def _label(forecast: Forecast, item: ForecastCompilation) -> str:
    return _call(forecast, item.call)


def _call(forecast: Forecast, index: int) -> str:
    call = forecast.calls[index] if index < len(forecast.calls) else None
    return one_line(call.label) if call is not None and call.label else f"call {index + 1}"


def _why(forecast: Forecast, item: ForecastCompilation) -> str:
    """What changed since an earlier version; failed calls leave no version."""
    frame = item.id.partition("/")[0]
    earlier = next(other for other in forecast.compilations if other.id.partition("/")[0] == frame)
    return "first compilation" if earlier is item else cause(item.cause)


def _failures(forecast: Forecast) -> dict[tuple[str, bool], list[ForecastCall]]:
    groups: dict[tuple[str, bool], list[ForecastCall]] = {}
    for call in forecast.failed:
        groups.setdefault((call.error or "", call.fails_in_eager), []).append(call)
    return groups


def _listed(labels: Sequence[str]) -> str:
    """Labels joined for a sentence; of many, the first few.

    >>> _listed(["n=1"]), _listed(["n=1", "n=2"]), _listed([f"n={n}" for n in range(9)])
    ('n=1', 'n=1 and n=2', 'n=0, n=1, n=2 and 6 more')
    """
    visible = (
        list(labels) if len(labels) <= _MAX_LABELS else [*labels[: _MAX_LABELS - 1], f"{len(labels) - _MAX_LABELS + 1} more"]
    )
    return visible[0] if len(visible) == 1 else f"{', '.join(visible[:-1])} and {visible[-1]}"
