"""Sizes that a line pinned to a number."""

from __future__ import annotations

import io

import torch
from rich.console import Console
from torch import Tensor

from compile_inspect.capture.api import inspect
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.guards import render


def pinning(x: Tensor, w: Tensor) -> Tensor:
    y = x * 2
    if x.shape[0] == 8:  # this line
        y = y + 1
    return y.sum() + w


def test_the_line_that_pinned_a_size_is_named() -> None:
    inspection = inspect(pinning, torch.randn(8, 4), torch.ones(3), backend="eager", dynamic=True)
    (found,) = inspection.specializations
    assert (found.variable, found.value) == ("x.size()[0]", "8")
    assert found.location is not None and found.location.line == pinning.__code__.co_firstlineno + 2
    told = io.StringIO()
    render(inspection, Console(file=told, width=200), ShowOptions())
    assert "sizes specialized to a number" in told.getvalue() and "= 8: a condition leaves only this value" in told.getvalue()


def test_sizes_that_stay_symbols_are_not_pinned() -> None:
    inspection = inspect(lambda x: (x * 2).sum(), torch.randn(8, 4), backend="eager", dynamic=True)
    assert inspection.specializations == () and inspection.compilations[0].dynamic_symbols
