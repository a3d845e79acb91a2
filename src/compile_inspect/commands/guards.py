"""`compile-inspect guards`: what compiled code depends on, and what further inputs would make torch compile again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, NoGradOption, TargetOrCaptureArgument
from compile_inspect.commands.following import grad_mode
from compile_inspect.commands.progress import VerboseOption, working
from compile_inspect.commands.status import status_of
from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.records.forecast import Comparison, Forecast, Treatment
    from compile_inspect.target import Target


def guards(
    target: TargetOrCaptureArgument,
    inputs: InputsOption = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="SIZES",
            help="Foretell compilations: batch=1..64, seq=16..512:16, n=1,2,8, NAME=ARGUMENT:DIMENSION=SIZES; may be repeated.",
        ),
    ] = None,
    check: Annotated[
        str | None, typer.Option("--check", metavar="BACKEND", help="Also run these inputs for real, with this backend.")
    ] = None,
    dynamic: Annotated[
        bool | None, typer.Option("--dynamic/--static", help="Symbolic or fixed sizes. Default: torch decides.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--recompile-limit", min=1, help="Instead of torch's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show what is folded otherwise.")] = False,
    no_color: NoColorOption = False,
    no_grad: NoGradOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what compiled code depends on, and foretell recompiles.

    Without --what-if: the guards of every frame with their lines, and those on numbers that will
    change. With it: how many graphs torch.compile makes for these inputs, which guard fails for which, and remedies that were
    tried. Exit status 1: a compilation or one of these calls failed, or nothing was compiled.
    """
    from compile_inspect.commands.show import make_console

    console = make_console(no_color)
    if Path(target).is_file() and ":" not in Path(target).name:
        if inputs is not None or what_if or check:
            raise InspectError(f"{target} is a capture: to run something for --inputs, --what-if or --check, name the target")
        from compile_inspect.capture_file import load_together

        for _, inspection in load_together([Path(target)]):
            _depends(inspection, console, everything=everything, as_json=as_json)
        return
    from compile_inspect.eager import require_eager
    from compile_inspect.target import find_target
    from compile_inspect.wording.quantities import seconds

    if check is not None and not what_if:
        raise InspectError("--check needs inputs to run: add --what-if, for example --what-if batch=1..64")
    if not what_if:
        from compile_inspect.capture.api import inspect

        with working(f"capturing {target} …", verbose=verbose):
            found = require_eager(find_target(target, inputs, no_grad=no_grad))
            inspection = inspect(found, backend="eager", dynamic=dynamic)
        _depends(inspection, console, everything=everything, as_json=as_json)
        sys.exit(status_of([inspection]))
    with working(f"capturing {target} …", verbose=verbose) as say, grad_mode(no_grad):
        found = require_eager(find_target(target, inputs, no_grad=no_grad))
        started = perf_counter()
        forecast, treatments, comparison = _foretell(found, what_if, dynamic, limit, check, say)
        spent = perf_counter() - started
    _tell_forecast(forecast, treatments, comparison, console, as_json)
    if treatments and not as_json:
        told = f"All of this took {seconds(spent)}, {seconds(forecast.seconds)} of it for the prediction."
        console.print(told, style="dim")
    sys.exit(int(bool(forecast.failed)))


def _depends(inspection: Any, console: Any, *, everything: bool, as_json: bool) -> None:
    from compile_inspect.advice.accidental_guards import accidental_guards
    from compile_inspect.recompiles.remedies import remedies_from_capture
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.serialization import to_data

    accidents, treatments = accidental_guards(inspection), remedies_from_capture(inspection)
    if as_json:
        data = {"guards": inspection.guards, "accidental": accidents, "recompiles": treatments}
        console.out(json.dumps({name: [to_data(item) for item in items] for name, items in data.items()}), highlight=False)
        return
    from compile_inspect.reporters.text.accidents import render as render_accidents
    from compile_inspect.reporters.text.forecast import render_treatments
    from compile_inspect.reporters.text.guards import render
    from compile_inspect.wording.failures import sentence

    for failure in inspection.failures:
        console.print(sentence(failure, inspection), markup=False, soft_wrap=True)
    if inspection.nothing_compiled:
        if not inspection.failures:
            console.print("Nothing was compiled, so there is nothing that depends on a guard.")
        return
    render(inspection, console, ShowOptions(all=everything))
    if accidents or not treatments:
        render_accidents(accidents, console)
    render_treatments(treatments, console)


def _foretell(
    target: Target,
    texts: list[str],
    dynamic: bool | None,
    limit: int | None,
    check: str | None,
    say: Callable[[str], object],
) -> tuple[Forecast, tuple[Treatment, ...], Comparison | None]:
    from compile_inspect.recompiles import calls_from_ranges, compare, find_remedies, observe, predict

    def telling(what: str) -> Callable[[int, int], object]:
        return lambda number, count: say(f"{what} (call {number + 1} of {count}) …")

    calls = calls_from_ranges(target, texts)
    forecast = predict(target, calls, dynamic=dynamic, limit=limit, on_call=telling("capturing"))
    treatments = find_remedies(
        target,
        calls,
        forecast,
        dynamic=dynamic,
        limit=limit,
        on_trial=lambda title: telling(f"trying: {title}"),
    )
    if check is None:
        return forecast, treatments, None
    seen = observe(target, calls, backend=check, dynamic=dynamic, limit=limit, on_call=telling(f"running with {check}"))
    return forecast, treatments, compare(forecast, seen)


def _tell_forecast(
    forecast: Forecast, treatments: tuple[Treatment, ...], comparison: Comparison | None, console: Any, as_json: bool
) -> None:
    if as_json:
        from compile_inspect.serialization import to_data

        data = {"forecast": to_data(forecast), "remedies": [to_data(item) for item in treatments]}
        if comparison is not None:
            data["agrees"], data["differences"] = comparison.agrees, list(comparison.differences)
        console.out(json.dumps(data), highlight=False)
        return
    from compile_inspect.reporters.text.forecast import render, render_comparison, render_treatments

    render(forecast, console)
    if comparison is not None:
        render_comparison(comparison, console)
    render_treatments(treatments, console)
