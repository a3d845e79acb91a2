"""`compile-inspect guards`: what compiled code depends on, and what further inputs would make torch compile again."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, NoGradOption, TargetOrCaptureArgument
from compile_inspect.commands.exit_status import exit_status
from compile_inspect.commands.next_commands import grad_mode
from compile_inspect.commands.progress import VerboseOption, working
from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.records.recompile_forecast import RecompileForecast


def guards(
    target: TargetOrCaptureArgument,
    inputs: InputsOption = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="SIZES",
            help="Predict compilations: batch=1..64, seq=16..512:16, n=1,2,8, NAME=ARGUMENT:DIMENSION=SIZES. Repeatable.",
        ),
    ] = None,
    check: Annotated[
        str | None, typer.Option("--check", metavar="BACKEND", help="Also compile for these inputs with this backend.")
    ] = None,
    dynamic: Annotated[
        bool | None, typer.Option("--dynamic/--static", help="Symbolic or fixed sizes. Default: torch decides.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--recompile-limit", min=1, help="Use this limit instead of torch's own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also show what is otherwise folded.")] = False,
    no_color: NoColorOption = False,
    no_grad: NoGradOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what compiled code depends on, and predict recompiles.

    Without --what-if: the guards of every frame with their lines, and those on numbers that are likely to change. With it: how
    many graphs torch.compile makes for these inputs, which guard fails for which input, and remedies that were tried. Exit
    status 1: a compilation or one of these calls failed, or nothing was compiled.
    """
    from compile_inspect.commands.show import make_console

    console = make_console(no_color)
    if Path(target).is_file() and ":" not in Path(target).name:
        if inputs is not None or what_if or check:
            raise InspectError(f"{target} is a capture: to use --inputs, --what-if or --check, name the target")
        from compile_inspect.capture_file import load_together

        for _, inspection in load_together([Path(target)]):
            _print_guards(inspection, console, everything=everything, as_json=as_json)
        return
    from compile_inspect.eager import require_eager
    from compile_inspect.recompiles.api import forecast_calls
    from compile_inspect.recompiles.ranges import calls_from_ranges
    from compile_inspect.target import find_target
    from compile_inspect.wording.quantities import seconds

    if check is not None and not what_if:
        raise InspectError("--check needs inputs: add --what-if, for example --what-if batch=1..64")
    if not what_if:
        from compile_inspect.capture.api import inspect

        with working(f"capturing {target} …", verbose=verbose):
            loaded = require_eager(find_target(target, inputs, no_grad=no_grad))
            inspection = inspect(loaded, backend="eager", dynamic=dynamic)
        _print_guards(inspection, console, everything=everything, as_json=as_json)
        sys.exit(exit_status([inspection]))
    with working(f"capturing {target} …", verbose=verbose) as say, grad_mode(no_grad):
        loaded = require_eager(find_target(target, inputs, no_grad=no_grad))
        started = perf_counter()
        forecast = forecast_calls(
            loaded, calls_from_ranges(loaded, what_if), dynamic=dynamic, limit=limit, check=check, progress=say
        )
        elapsed_seconds = perf_counter() - started
    _print_forecast(forecast, console, as_json)
    if forecast.causes and not as_json:
        console.print(
            f"This took {seconds(elapsed_seconds)}, {seconds(forecast.seconds)} of it for the prediction.", style="dim"
        )
    sys.exit(int(bool(forecast.failed_calls)))


def _print_guards(inspection: Any, console: Any, *, everything: bool, as_json: bool) -> None:
    from compile_inspect.advice.accidental_guards import accidental_guards
    from compile_inspect.recompiles.remedies import remedies_from_capture
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.serialization import to_data

    accidents, treatments = accidental_guards(inspection), remedies_from_capture(inspection)
    if as_json:
        data = {"guards": inspection.guards, "accidental": accidents, "recompiles": treatments}
        console.out(json.dumps({name: [to_data(item) for item in items] for name, items in data.items()}), highlight=False)
        return
    from compile_inspect.reporters.text.accidental_guards import render as render_accidents
    from compile_inspect.reporters.text.forecast import render_treatments
    from compile_inspect.reporters.text.guards import render
    from compile_inspect.wording.failures import sentence

    for failure in inspection.failures:
        console.print(sentence(failure, inspection), markup=False, soft_wrap=True)
    if inspection.nothing_compiled:
        if not inspection.failures:
            console.print("Nothing was compiled, so there are no guards.")
        return
    render(inspection, console, ShowOptions(all=everything))
    if accidents or not treatments:
        render_accidents(accidents, console)
    render_treatments(treatments, console)


def _print_forecast(forecast: RecompileForecast, console: Any, as_json: bool) -> None:
    if as_json:
        from compile_inspect.records.forecast import Forecast
        from compile_inspect.serialization import to_data

        plain = Forecast(**{item.name: getattr(forecast, item.name) for item in fields(Forecast)})
        data = {"forecast": to_data(plain), "remedies": [to_data(item) for item in forecast.causes]}
        if forecast.comparison is not None:
            data["agrees"], data["differences"] = forecast.comparison.agrees, list(forecast.comparison.differences)
        console.out(json.dumps(data), highlight=False)
        return
    from compile_inspect.reporters.text.forecast import render, render_comparison, render_treatments

    render(forecast, console)
    if forecast.comparison is not None:
        render_comparison(forecast.comparison, console)
    render_treatments(forecast.causes, console)
