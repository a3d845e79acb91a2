"""`compile-inspect verify`: every variant of one target against eager."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, TargetArgument
from compile_inspect.commands.bench import variant_names
from compile_inspect.commands.capture_option import CaptureOption, existing_capture, update_capture
from compile_inspect.commands.next_commands import (
    command_explaining_eager,
    command_line,
    named_target,
    print_next_command,
    target_arguments,
)
from compile_inspect.commands.progress import VerboseOption, working
from compile_inspect.errors import TargetError

if TYPE_CHECKING:
    from compile_inspect.records import Agreement, Inspection


def with_agreement(capture: Inspection, agreement: Agreement) -> Inspection:
    """A capture with a comparison added, which replaces earlier ones of the same function and variants."""

    def is_replaced(other: Agreement) -> bool:
        names = ({variant.name for variant in item.variants} for item in (other, agreement))
        return other.function == agreement.function and other.gradients == agreement.gradients and set.issubset(*names)

    others = (item for item in capture.agreements if not is_replaced(item))
    return replace(capture, agreements=(*others, agreement))


def verify(
    target: TargetArgument,
    inputs: InputsOption = None,
    variants: Annotated[
        str | None,
        typer.Option(
            "--variants",
            metavar="NAMES",
            help="Comma-separated variants, such as inductor,aot-inductor. Default: those that suit the device.",
        ),
    ] = None,
    gradients: Annotated[
        bool | None,
        typer.Option(
            "--gradients/--no-gradients", " /--no-grad", help="Compare gradients too. Default: if eager computes any."
        ),
    ] = None,
    second_derivatives: Annotated[bool, typer.Option("--second-derivatives", help="Also compare second derivatives.")] = False,
    samples: Annotated[
        int, typer.Option("--samples", help="Number of random inputs to generate. 0 also leaves out the special inputs.")
    ] = 3,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the generated inputs and of the target's own random numbers.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    capture: CaptureOption = None,
    no_color: NoColorOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare every variant of a target with eager: values, gradients, and in-place changes.

    Exit status 1: a variant does not agree with eager, no variant could run, or eager itself is not reproducible.
    """
    # Check all options before torch is imported and minutes are spent.
    if samples < 0:
        raise TargetError(f"--samples is {samples}: it must be 0 or more")
    if capture is not None:
        existing_capture(capture)
    names = None if variants is None else variant_names(variants)

    from compile_inspect.agreement.api import verify as verify_target
    from compile_inspect.commands.show import make_console
    from compile_inspect.records.agreement import Verdict
    from compile_inspect.target import find_target

    with working(f"comparing {target} …", verbose=verbose):
        agreement = verify_target(
            find_target(target, inputs),
            variants=names,
            gradients=gradients,
            second_derivatives=second_derivatives,
            samples=samples,
            seed=seed,
        )
    if capture is not None:
        update_capture(
            capture, lambda inspection: with_agreement(inspection, agreement), named_target(target, inputs, gradients is False)
        )
    console = make_console(no_color)
    arguments = target_arguments(target, inputs, gradients is False)
    if as_json:
        import json

        from compile_inspect.serialization import to_data

        console.out(json.dumps(to_data(agreement)), highlight=False)
    else:
        from compile_inspect.reporters.text.agreement import render

        render(agreement, console)
        if capture is not None:
            print_next_command(console, command_line("report", (str(capture),)))
        elif eager := command_explaining_eager((item.eager_because for item in agreement.variants), arguments):
            print_next_command(console, eager)
        elif agreement:
            print_next_command(console, command_line("bench", arguments))
    none_ran = bool(agreement.variants) and all(item.verdict is Verdict.REFUSED for item in agreement.variants)
    if none_ran and as_json:
        typer.echo("Nothing was compared: no variant could run.", err=True)
    if none_ran or not agreement.agrees:
        sys.exit(1)
