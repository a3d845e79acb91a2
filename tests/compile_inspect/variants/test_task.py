"""What a function reaches without being given it."""

from __future__ import annotations

import logging
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from compile_inspect.variants.program import traced
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
    task = Task(function, (torch.ones(3),), within=True)
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
    _, graph, inputs = traced(Task(function, (torch.ones(3),), within=True))
    assert len(inputs) == 3
    data.values.mul_(10.0)  # in place: it is an input, not frozen
    torch.testing.assert_close(graph(*inputs)[0], function(torch.ones(3)))


def test_what_the_object_of_a_method_holds() -> None:
    data = Data()
    step = data.scaled

    def function(x: Tensor) -> Tensor:
        return step(x)

    task = Task(function, (torch.ones(3),), within=True)
    assert "step.values" in [item.name for item in task.held]
    assert "step.factor" in [item.name for item in task.constants]


def test_large_collections_are_not_looked_into() -> None:
    many = [torch.ones(1) for _ in range(1000)]

    def function(x: Tensor) -> Tensor:
        return x * len(many)

    assert Task(function, (torch.ones(3),), within=True).held == ()


class Hostile:
    """Does not like to be looked at."""

    def __getattr__(self, name: str) -> Any:
        if name == "func":
            return Hostile()  # and so on without end
        raise RuntimeError(name)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


class Key:
    def __repr__(self) -> str:
        raise ValueError("no")


def test_objects_that_do_not_like_it_are_left_alone() -> None:
    held: Any = {Key(): Hostile(), "log": logging.getLogger("x"), "proxy": weakref.proxy(Data())}

    def function(x: Tensor) -> Tensor:
        return x * len(held)

    task = Task(function, (torch.ones(3),), within=True)
    assert task.held == () and task.constants == ()


SCALE = 3.0


def helper(x: Tensor) -> Tensor:
    return x * SCALE


def test_where_there_is_too_much_functions_are_still_found() -> None:
    items = [Data() for _ in range(90)]

    def function(x: Tensor) -> Tensor:
        return helper(x) + len(items)

    task = Task(function, (torch.ones(3),), within=True)
    assert "helper.SCALE" in [item.name for item in task.constants]
    assert task.held == ()


@pytest.mark.parametrize("method", [False, True])
def test_what_a_method_or_a_callable_object_is_about(method: bool) -> None:
    data = Data()
    task = Task(data.scaled if method else data, (torch.ones(3),))
    assert "self.factor" in [item.name for item in task.constants]
    assert "self.values" in [item.name for item in task.held]
    data.factor = 5.0
    assert not all(item.unchanged() for item in task.constants)
    del data.factor
    assert not all(item.unchanged() for item in task.constants)
