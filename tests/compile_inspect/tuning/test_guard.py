"""The check whether a call is like the one a variant was built for."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compile_inspect.tuning.guard import Guard
from compile_inspect.variants import Refused, Task

X = torch.randn(4, 6)


def add(*tensors: Tensor) -> Tensor:
    return torch.stack(tensors).sum(0)


def matches(task: Task, *args: Any, **kwargs: Any) -> bool:
    return Guard(task).matches(args, kwargs)


def test_inputs_like_the_example_match() -> None:
    assert matches(Task(add, (X, X)), torch.zeros(4, 6), torch.ones(4, 6))


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (torch.randn(5, 6), "shape of tensor 0"),
        (torch.randn(4, 6).double(), "dtype of tensor 0"),
        (torch.randn(6, 4).T, "strides of tensor 0"),
        (torch.randn(4, 6).requires_grad_(), "requires_grad of tensor 0"),
        (torch.randn(4, 6, device="meta"), "device of tensor 0"),
        (nn.Parameter(torch.randn(4, 6), requires_grad=False), "."),
        (3.0, "input 0 was"),
        (None, "structure|input 0 was"),
    ],
)
def test_other_inputs_do_not(other: Any, reason: str) -> None:
    task = Task(add, (X,))
    guard = Guard(task)
    assert not guard.matches((other,), {})
    import re

    assert re.search(reason, guard.why_not((other,), {}, task))


def test_numbers_of_inputs_and_keywords() -> None:
    task = Task(lambda x, *, factor, names: x * factor, (X,), {"factor": 2.0, "names": ["a", {"b": X}]})
    assert matches(task, X, factor=2.0, names=["a", {"b": X}])
    assert not matches(task, X, factor=2.5, names=["a", {"b": X}])
    assert not matches(task, X, factor=2, names=["a", {"b": X}])
    assert not matches(task, X, factor=2.0, names=["a", {"c": X}])
    assert not matches(task, X, factor=2.0)
    assert not matches(task, X, X, factor=2.0, names=["a", {"b": X}])
    assert not matches(task)


def test_what_the_function_reads_is_checked() -> None:
    factor, offset = 2.0, torch.ones(6)

    def function(x: Tensor) -> Tensor:
        return x * factor + offset

    guard = Guard(Task(function, (X,)))
    assert guard.matches((X,), {})
    factor = 1.0 + 1.0  # another object with the same value
    assert guard.matches((X,), {})
    factor = 3.0
    assert not guard.matches((X,), {})
    factor = 2.0
    offset += 1  # in place: the same tensor
    assert guard.matches((X,), {})
    offset = torch.ones(6)
    assert not guard.matches((X,), {})


def test_a_module_that_changes() -> None:
    model = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5)).eval()
    task = Task(model, (X,))
    guard = Guard(task)
    with torch.no_grad():
        assert guard.matches((X,), {})
        model[0].weight.mul_(2)
        assert guard.matches((X,), {})
        model.train()
        assert not guard.matches((X,), {})
        assert guard.why_not((X,), {}, task) == "training was False and is True"
        model.eval()
        model.double()
        assert not guard.matches((X,), {})
    assert not Guard(Task(nn.Linear(6, 3), (X,))).matches((X,), {})  # its parameters want gradients


def test_modes_of_torch() -> None:
    guard = Guard(Task(add, (X,)))
    with torch.autocast("cpu", torch.bfloat16):
        assert not guard.matches((X,), {})
    torch.set_default_dtype(torch.float64)
    try:
        assert not guard.matches((X,), {})
    finally:
        torch.set_default_dtype(torch.float32)
    assert guard.matches((X,), {})


def test_names_cannot_become_code() -> None:
    key = "a'] or True #\n"
    assert matches(Task(lambda **given: given[key], (), {key: X}), **{key: X})
    assert not matches(Task(lambda **given: given[key], (), {key: X}), **{key: torch.zeros(1)})


def test_inputs_that_cannot_be_checked_are_refused() -> None:
    with pytest.raises(Refused, match="an input of type object"):
        Guard(Task(add, (object(),)))


def test_five_tensors_take_a_few_microseconds() -> None:
    tensors = tuple(torch.randn(4, 5) for _ in range(5))
    guard = Guard(Task(add, tensors))
    best = min(_time(lambda: guard.matches(tensors, {})) for _ in range(20))
    assert best < 10e-6  # 2.4 µs were seen; the machine is shared


def _time(call: Any, count: int = 200) -> float:
    started = perf_counter()
    for _ in range(count):
        call()
    return (perf_counter() - started) / count
