"""Options that several commands share, so that they have the same names and help texts everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help="module:attribute or file.py:attribute")]
TargetOrCaptureArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="module:attribute, file.py:attribute, or a capture file")
]
InputsOption = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="INPUTS",
        help="The inputs, as module:attribute or file.py:attribute: a tuple, a mapping, a tensor, or a function that returns "
        "one. Or a description of them: 'float32[16, 8], int64[16], scale=0.5'.",
    ),
]
NoGradOption = Annotated[bool, typer.Option("--no-grad", help="Run without gradients, as under torch.no_grad().")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="Disable colors, as with NO_COLOR=1.")]
