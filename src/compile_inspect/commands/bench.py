"""`compile-inspect bench`: time every variant of one target."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, TargetArgument
from compile_inspect.commands.following import command_line, named_target, reasons_for_eager, tell_next, words_of
from compile_inspect.commands.joining import CaptureOption, join, known_capture
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
            help="With commas between them, such as eager,inductor,aot-inductor. Default: what may be faster on the device.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="SIZES",
            help="batch=1,8,64, or NAME=ARGUMENT:DIMENSION=SIZES such as tokens=0:1=16,32; or further, for a Target's own.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="How long to sample at every size, all variants together.")] = 2.0,
    gradients: Annotated[
        bool | None,
        typer.Option(
            "--gradients/--no-gradients", " /--no-grad", help="Forward and backward, or forward. Default: as the target says."
        ),
    ] = None,
    builds: Annotated[
        int,
        typer.Option(
            "--builds",
            min=0,
            metavar="N",
            help="Cold builds of every variant, each in a process and cache folder of its own; 0: none, and no payback.",
        ),
    ] = 1,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the results as .json, .csv or .md.")
    ] = None,
    export_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="json, csv or md, where the file's suffix does not say.")
    ] = None,
    capture: CaptureOption = None,
    force: Annotated[bool, typer.Option("--force", help="Let --export overwrite a file.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Time a target in every variant: how fast, how much faster than eager, what the build costs and when it pays back.

    A variant that cannot run says why, and the others go on. Builds are timed cold, in processes of their own, with a warm
    one beside. Ctrl-C keeps what has been measured; the exit status is then 130.
    """
    # All that can be said before torch is imported and minutes are spent is said now.
    if not seconds > 0:
        raise TargetError(f"--seconds is {seconds}: give a number above 0")
    if export is not None:
        _check_export(export, export_format, force)
    if capture is not None:
        known_capture(capture)
    names = None if variants is None else names_of(variants)
    sizes = _sweep(sweep)

    from compile_inspect.eager import require_eager
    from compile_inspect.target import find_target
    from compile_inspect.timing.api import measure
    from compile_inspect.timing.cold import Origin

    with measuring(target, verbose=verbose) as report:
        found = find_target(target, inputs)
        if gradients is not None:
            found = replace(found, gradients=gradients)
        require_eager(found)
        timing = measure(
            found,
            variants=names,
            seconds=seconds,
            sweep=sizes,
            builds=builds,
            progress=report,
            origin=Origin(target, inputs),
        )
    if capture is not None:
        target_name = named_target(target, inputs, gradients is False)
        join(capture, lambda known: replace(known, timings=(*known.timings, timing)), target_name)
    if export is not None:
        from compile_inspect.reporters.timings import export as export_timings

        export_timings([timing], export, named=export_format)
    _print(timing, export, capture, words_of(target, inputs, gradients is False))
    if not any(item.summary for point in timing.points for item in point.measurements):
        sys.exit(1)
    if timing.interrupted:
        sys.exit(130)


def names_of(text: str) -> list[str]:
    """The names of variants, as they are written with commas between them."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise TargetError("--variants names none: write for example --variants eager,inductor,aot-inductor")
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


def _print(timing: Timing, export: Path | None, capture: Path | None, words: Sequence[str]) -> None:
    from compile_inspect.commands.show import make_console
    from compile_inspect.reporters.conclusions import recommended_variants
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.reporters.text.timing import print_timing

    console = make_console(no_color=False)
    print_timing(timing, console, ShowOptions())
    if export is not None:
        typer.echo(f"Wrote {export}.")
    if capture is not None:
        tell_next(console, command_line("show", (str(capture), "timing")))
        return
    recommended = recommended_variants(timing)
    measured = [item for point in timing.points for item in point.measurements]
    eager = reasons_for_eager((doubt for item in measured for doubt in item.doubts), words)
    if eager:
        tell_next(console, eager)
    elif recommended:  # faster is not yet right
        tell_next(console, command_line("verify", words, "--variants", ",".join(recommended)))
