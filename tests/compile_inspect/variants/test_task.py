"""What a function reaches without being given it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compile_inspect.variants.captured_program import trace_task
from compile_inspect.variants.task import Task


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


def test_what_an_object_holds_is_an_input_of_the_graph() -> None:
    data = Data()

    def function(x: Tensor) -> Tensor:
        return x * data(x)

    _, graph, inputs = trace_task(Task(function, (torch.ones(3),)))
    assert len(inputs) == 3
    data.values.mul_(10.0)  # in place: it is an input, not frozen
    torch.testing.assert_close(graph(*inputs)[0], function(torch.ones(3)))


class Hostile:
    """Does not like to be looked at."""

    def __getattr__(self, name: str) -> Any:
        if name == "func":
            return Hostile()  # and so on without end
        raise RuntimeError(name)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


def test_objects_that_do_not_like_it_are_left_alone() -> None:
    hostile = Hostile()

    def function(x: Tensor) -> Tensor:
        return x if hostile is None else x + 1

    assert Task(function, (torch.ones(3),)).held_tensors == Task(hostile, (torch.ones(3),)).held_tensors == ()


SCALE = 3.0


def helper(x: Tensor) -> Tensor:
    return x * SCALE


def test_what_functions_find_that_a_function_finds() -> None:
    def function(x: Tensor) -> Tensor:
        return helper(x) + 1

    assert [(item.name, item.value) for item in Task(function, (torch.ones(3),)).constants] == [("helper.SCALE", 3.0)]


@pytest.mark.parametrize("method", [False, True])
def test_what_a_method_or_a_callable_object_is_about(method: bool) -> None:
    data = Data()
    task = Task(data.scaled if method else data, (torch.ones(3),))
    assert "self.factor" in [item.name for item in task.constants]
    assert "self.values" in [item.name for item in task.held_tensors]
