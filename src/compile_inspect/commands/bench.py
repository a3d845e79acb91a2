"""`compile-inspect bench`: time every variant of one target."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, TargetArgument
from compile_inspect.commands.capture_option import CaptureOption, existing_capture, update_capture
from compile_inspect.commands.next_commands import (
    command_explaining_eager,
    command_line,
    named_target,
    print_next_command,
    target_arguments,
)
from compile_inspect.commands.progress import VerboseOption, measuring
from compile_inspect.errors import TargetError

if TYPE_CHECKING:
    from compile_inspect.records.timing import Timing


def bench(
    target: TargetArgument,
    inputs: InputsOption = None,
    variants: Annotated[
        str | None,
        typer.Option(
            "--variants",
            metavar="NAMES",
            help="Comma-separated variants, such as eager,inductor,aot-inductor. Default: those suited to the device.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="SIZES",
            help="batch=1,8,64; or NAME=ARGUMENT:DIMENSION=SIZES, such as tokens=0:1=16,32; or further, the Target's own.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Sampling time per size, for all variants together.")] = 2.0,
    gradients: Annotated[
        bool | None,
        typer.Option(
            "--gradients/--no-gradients",
            " /--no-grad",
            help="Time forward and backward, or forward only. Default: as the target specifies.",
        ),
    ] = None,
    builds: Annotated[
        int,
        typer.Option(
            "--builds",
            min=0,
            metavar="N",
            help="Cold builds per variant, each in a separate process and cache folder. 0: no cold builds and no payback.",
        ),
    ] = 1,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the results to this .json, .csv or .md file.")
    ] = None,
    export_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="json, csv or md, if the file's suffix is none of these.")
    ] = None,
    capture: CaptureOption = None,
    force: Annotated[bool, typer.Option("--force", help="Let --export overwrite an existing file.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Time every variant of a target: call time, speedup over eager, build time, and when the build pays back.

    If a variant cannot run, the reason is printed and the others continue. Builds are timed cold in separate processes, then
    warm. Ctrl-C keeps the measurements so far; the exit status is then 130.
    """
    # Check all options before torch is imported and minutes are spent.
    if not seconds > 0:
        raise TargetError(f"--seconds is {seconds}: it must be greater than 0")
    if export is not None:
        _check_export(export, export_format, force)
    if capture is not None:
        existing_capture(capture)
    names = None if variants is None else variant_names(variants)
    sizes = _sweep(sweep)

    from compile_inspect.eager import require_eager
    from compile_inspect.target import find_target
    from compile_inspect.timing.api import measure
    from compile_inspect.timing.cold import Origin

    with measuring(target, verbose=verbose) as report:
        timed_target = find_target(target, inputs)
        if gradients is not None:
            timed_target = replace(timed_target, gradients=gradients)
        require_eager(timed_target)
        timing = measure(
            timed_target,
            variants=names,
            seconds=seconds,
            sweep=sizes,
            builds=builds,
            progress=report,
            origin=Origin(target, inputs),
        )
    if capture is not None:
        target_name = named_target(target, inputs, gradients is False)
        update_capture(capture, lambda inspection: replace(inspection, timings=(*inspection.timings, timing)), target_name)
    if export is not None:
        from compile_inspect.reporters.timings import export as export_timings

        export_timings([timing], export, named=export_format)
    _print(timing, export, capture, target_arguments(target, inputs, gradients is False))
    if not any(item.summary for point in timing.points for item in point.measurements):
        sys.exit(1)
    if timing.interrupted:
        sys.exit(130)


def variant_names(text: str) -> list[str]:
    """The variant names in a comma-separated list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise TargetError("--variants is empty: write for example --variants eager,inductor,aot-inductor")
    return names


def _sweep(texts: list[str] | None) -> Any:
    from compile_inspect.timing.sweep import FURTHER, axes_of, parse_sweep

    if not texts:
        return None
    if texts == [FURTHER]:
        return FURTHER
    sizes = parse_sweep(texts)
    axes_of(sizes)
    return sizes


def _check_export(path: Path, named: str | None, force: bool) -> None:
    from compile_inspect.capture_file import refuse_to_overwrite
    from compile_inspect.reporters.timings import format_of

    format_of(path, named)
    refuse_to_overwrite(path, force=force)


def _print(timing: Timing, export: Path | None, capture: Path | None, arguments: Sequence[str]) -> None:
    from compile_inspect.commands.show import make_console
    from compile_inspect.reporters.conclusions import recommended_variants
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.reporters.text.timing import print_timing

    console = make_console(no_color=False)
    print_timing(timing, console, ShowOptions())
    if export is not None:
        typer.echo(f"Wrote {export}.")
    if capture is not None:
        print_next_command(console, command_line("show", (str(capture), "timing")))
        return
    recommended = recommended_variants(timing)
    measured = [item for point in timing.points for item in point.measurements]
    eager = command_explaining_eager((doubt for item in measured for doubt in item.doubts), arguments)
    if eager:
        print_next_command(console, eager)
    elif recommended:  # faster does not mean correct
        print_next_command(console, command_line("verify", arguments, "--variants", ",".join(recommended)))
