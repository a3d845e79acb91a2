"""`compile-inspect verify`: every variant of one target against eager."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, TargetArgument
from compile_inspect.commands.bench import names_of
from compile_inspect.commands.following import command_line, named_target, reasons_for_eager, tell_next, words_of
from compile_inspect.commands.joining import CaptureOption, join, known_capture
from compile_inspect.commands.progress import VerboseOption, working
from compile_inspect.errors import TargetError

if TYPE_CHECKING:
    from compile_inspect.records import Agreement, Inspection


def with_agreement(known: Inspection, found: Agreement) -> Inspection:
    """A capture with a comparison, in the place of an earlier one of the same function and variants."""

    def same(other: Agreement) -> bool:
        names = ({item.name for item in agreement.variants} for agreement in (other, found))
        return other.function == found.function and other.gradients == found.gradients and set.issubset(*names)

    return replace(known, agreements=(*(item for item in known.agreements if not same(item)), found))


def verify(
    target: TargetArgument,
    inputs: InputsOption = None,
    variants: Annotated[
        str | None,
        typer.Option(
            "--variants",
            metavar="NAMES",
            help="With commas between them, such as inductor,aot-inductor. Default: what is worth trying on the device.",
        ),
    ] = None,
    gradients: Annotated[
        bool | None,
        typer.Option(
            "--gradients/--no-gradients", " /--no-grad", help="Compare gradients too. Default: where eager gives them."
        ),
    ] = None,
    second_derivatives: Annotated[
        bool, typer.Option("--second-derivatives", help="Differentiate the gradients once more, and compare those.")
    ] = False,
    samples: Annotated[int, typer.Option("--samples", help="Random inputs to make. 0 leaves out the special ones too.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Of the inputs that are made, and of the target's own draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    capture: CaptureOption = None,
    no_color: NoColorOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare every variant of a target with eager: values, gradients, and what is changed in place.

    Exit status 1: a variant does not agree with eager, none of them could run, or eager gives different results every time.
    """
    # All that can be said before torch is imported and minutes are spent is said now.
    if samples < 0:
        raise TargetError(f"--samples is {samples}: give a number from 0")
    if capture is not None:
        known_capture(capture)
    names = None if variants is None else names_of(variants)

    from compile_inspect.agreement.api import verify as verify_target
    from compile_inspect.commands.show import make_console
    from compile_inspect.records.agreement import Verdict
    from compile_inspect.target import find_target

    with working(f"comparing {target} …", verbose=verbose):
        found = verify_target(
            find_target(target, inputs),
            variants=names,
            gradients=gradients,
            second_derivatives=second_derivatives,
            samples=samples,
            seed=seed,
        )
    if capture is not None:
        join(capture, lambda known: with_agreement(known, found), named_target(target, inputs, gradients is False))
    console = make_console(no_color)
    words = words_of(target, inputs, gradients is False)
    if as_json:
        import json

        from compile_inspect.serialization import to_data

        console.out(json.dumps(to_data(found)), highlight=False)
    else:
        from compile_inspect.reporters.text.agreement import render

        render(found, console)
        if capture is not None:
            tell_next(console, command_line("report", (str(capture),)))
        elif eager := reasons_for_eager((item.eager_because for item in found.variants), words):
            tell_next(console, eager)
        elif found:
            tell_next(console, command_line("bench", words))
    nothing = bool(found.variants) and all(item.verdict is Verdict.REFUSED for item in found.variants)
    if nothing and as_json:
        typer.echo("Nothing was compared: none of the variants could run.", err=True)
    if nothing or not found.agrees:
        sys.exit(1)
