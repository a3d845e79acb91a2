"""Check and call in one generated function: results have the form that the function gives them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from compile_inspect.tuning.fused_call import call_body, fuse, input_list_source, result_source
from compile_inspect.variants import Task

X = torch.randn(4, 6)
Pair = namedtuple("Pair", "first second")


@dataclass
class Result:
    """An object as a result."""

    value: Tensor
    name: str


FORMS: list[tuple[Callable[[Tensor, Tensor], Any], str | None]] = [
    (lambda a, b: a, "outputs[0]"),
    (lambda a, b: (a,), "(outputs[0], )"),
    (lambda a, b: {"x": b, 3: [a]}, "{'x': outputs[0], 3: [outputs[1]]}"),
    (lambda a, b: [b, (a, {"x": b, 3: a}), None, 2.5], None),
    (lambda a, b: Pair(b, [a]), None),
    (lambda a, b: {("a", 1): a}, None),
    (lambda a, b: Result(a, "n"), None),
]


def run(task: Task) -> Callable[..., Any]:
    program = task.program
    return fuse(program.guard, call_body(program, lambda tensors: program.function(*tensors)), lambda *_: pytest.fail("no"))


@pytest.mark.parametrize(("form", "source"), FORMS)
def test_results_have_their_own_form(form: Callable[[Tensor, Tensor], Any], source: str | None) -> None:
    task = Task(lambda x: form(x + 1, x * 2), (X,))
    expected, seen = task.function(X), run(task)(X)
    assert result_source(task.program) == source
    assert type(seen) is type(expected)
    if isinstance(expected, Result):
        assert torch.equal(seen.value, expected.value) and seen.name == expected.name
    else:
        torch.testing.assert_close(seen, expected, rtol=0, atol=0)


def test_what_is_handed_through_is_that_of_the_call() -> None:
    task = Task(lambda x, name, table: (x + 1, x, name, table), (X, "a", {"k": 1}))
    fast, table = run(task), {"k": 1}
    y = torch.randn(4, 6)
    result = fast(y, "b", table)
    assert result[1] is y and result[2] == "b" and result[3] is table
    assert torch.equal(result[0], y + 1)


def test_containers_are_made_anew_by_every_call() -> None:
    fast = run(Task(lambda x: [x + 1, []], (X,)))
    one, other = fast(X), fast(X)
    assert one is not other and one[1] is not other[1]


def test_arrays_are_read_at_every_call() -> None:
    import numpy as np

    array = np.ones(6, dtype=np.float32)
    task = Task(lambda x: x + torch.from_numpy(array), (X,))
    assert input_list_source(task.program, {}) is None
    fast = run(task)
    array[:] = 5.0
    assert torch.equal(fast(X), X + 5)
