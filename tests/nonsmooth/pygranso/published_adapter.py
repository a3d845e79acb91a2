"""The published problems in the form PyGRANSO's users give them."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from nonsmooth.pygranso import pygranso, pygransoStruct
from problems import Published


def struct(constraints: list[Tensor] | None) -> pygransoStruct | None:
    """Constraints as attributes c0, c1, ..."""
    if constraints is None:
        return None
    return pygransoStruct(**{f"c{index}": constraint for index, constraint in enumerate(constraints)})


def solve(published: Published, **more: Any) -> pygransoStruct:
    """Call `pygranso` as a user's script would."""
    module = isinstance(published.variables, nn.Module)

    def combined_fn(X: Any) -> list[Any]:  # noqa: N803 (PyGRANSO's name)
        f, inequalities, equalities = published.function(X if module else vars(X))
        return [f, struct(inequalities), struct(equalities)]

    options = pygransoStruct(x0=published.start, torch_device="cpu", print_level=0)
    for name, value in {**published.options, **more}.items():
        setattr(options, name, value)
    variables: Any = published.variables
    if not module:
        variables = {name: list(shape) for name, shape in variables.items()}
    return pygranso(variables, combined_fn, options)
