"""What a function reaches without being given it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from compile_inspect.variants.functional import traced
from compile_inspect.variants.task import Task, replaced


class Data:
    """Keeps a tensor in two places, as a cache of copies does, and a number."""

    def __init__(self) -> None:
        self.values = torch.arange(3.0)
        self.copies = {("float", 0): self.values, "others": [torch.ones(3)]}
        self.factor = 2.0
        self.itself = self

    def __call__(self, x: Tensor) -> Tensor:
        return self.copies[("float", 0)] * self.factor + self.copies["others"][0]

    def scaled(self, x: Tensor) -> Tensor:
        return x * self.values * self.factor


def reader() -> tuple[Any, Data]:
    data = Data()

    def function(x: Tensor) -> Tensor:
        return x * data(x)

    return function, data


def test_what_objects_lists_and_dictionaries_hold_is_found() -> None:
    function, data = reader()
    task = Task(function, (torch.ones(3),))
    assert sorted(item.name for item in task.held) == [
        "data.copies['others'][0]",
        "data.copies[('float', 0)]",
        "data.values",
    ]
    assert ("data.factor", 2.0) in [(item.name, item.value) for item in task.constants]
    fives = [torch.full((3,), 5.0) for _ in task.held]
    with replaced(task.held, fives):
        assert function(torch.ones(3)).tolist() == [15.0, 15.0, 15.0]
    assert function(torch.ones(3)).tolist() == [1.0, 3.0, 5.0]
    data.factor = 3.0
    assert [item.name for item in task.constants if not item.unchanged()] == ["data.factor"]


def test_so_it_can_be_traced() -> None:
    function, data = reader()
    _, graph, inputs = traced(Task(function, (torch.ones(3),)))
    assert len(inputs) == 4
    data.values.mul_(10.0)  # in place: it is an input, not frozen
    torch.testing.assert_close(graph(*inputs)[0], function(torch.ones(3)))


def test_what_the_object_of_a_method_holds() -> None:
    data = Data()
    step = data.scaled

    def function(x: Tensor) -> Tensor:
        return step(x)

    task = Task(function, (torch.ones(3),))
    assert "step.values" in [item.name for item in task.held]
    assert "step.factor" in [item.name for item in task.constants]


def test_large_collections_are_not_looked_into() -> None:
    many = [torch.ones(1) for _ in range(1000)]

    def function(x: Tensor) -> Tensor:
        return x * len(many)

    assert Task(function, (torch.ones(3),)).held == ()
