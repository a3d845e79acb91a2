"""Options that several commands share, so that they are called and explained the same everywhere."""

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
        help="Where the inputs are, module:attribute: a tuple, a mapping, a tensor, or a function that makes one. "
        "Or what they look like: 'float32[16, 8], int64[16], scale=0.5'.",
    ),
]
NoGradOption = Annotated[bool, typer.Option("--no-grad", help="Run without gradients, as under torch.no_grad().")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colors, as with NO_COLOR=1.")]
