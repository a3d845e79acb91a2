"""What graph breaks cost."""

from __future__ import annotations

import torch
from torch import Tensor

from compile_inspect.advice.cost import break_cost
from compile_inspect.capture.api import inspect
from compile_inspect.fixes.planning import advise_breaks
from compile_inspect.target import Target


def broken(x: Tensor) -> Tensor:
    y = x.sin() + 1
    print("first")
    z = y.cos() * y.exp()
    z = z.tanh()
    print("second")
    return z.sum()


def test_operations_on_both_sides() -> None:
    inspection = inspect(broken, torch.ones(3), backend="eager")
    costs = [break_cost(inspection, cause) for cause in inspection.breaks]
    assert [(cost.before, cost.after) for cost in costs] == [(2, 4), (4, 1)]
    assert str(costs[0]) == "2 operations before it and 4 after it in graphs of their own"
    assert [finding.cost.operations for finding in advise_breaks(inspection)] == [6, 5]


def test_versions_of_one_frame_are_not_added_up() -> None:
    def call(x: Tensor) -> Tensor:
        y = x.sin() + 1
        print("between")
        return y.cos()

    sizes = tuple(((torch.ones(size, 2),), {}) for size in (3, 4, 5, 1))
    inspection = inspect(Target(call, *sizes[0], further=sizes[1:]), backend="eager")
    (cause,) = inspection.breaks
    assert len(cause.compilations) == 3
    assert (break_cost(inspection, cause).before, break_cost(inspection, cause).after) == (2, 1)
