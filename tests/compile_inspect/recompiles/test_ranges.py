"""Ranges of sizes and values as calls."""

from __future__ import annotations

import pytest
import torch

from compile_inspect.errors import TargetError
from compile_inspect.recompiles.ranges import Range, calls_from_ranges, parse_range
from compile_inspect.target import Target


@pytest.mark.parametrize(
    ("text", "name", "places", "values"),
    [
        ("batch=1..4", "batch", "", (1, 2, 3, 4)),
        ("seq=16..64:16", "seq", "", (16, 32, 48, 64)),
        ("seq=16..60:16", "seq", "", (16, 32, 48)),
        ("batch=1,2,8", "batch", "", (1, 2, 8)),
        ("batch = 1, 4..6 , 2", "batch", "", (1, 4, 5, 6, 2)),
        ("batch=4..1", "batch", "", (4, 3, 2, 1)),
        ("tokens=0:1,mask:-1=0..2", "tokens", "0:1,mask:-1", (0, 1, 2)),
        ("k=-2..2:2", "k", "", (-2, 0, 2)),
        ("batch=5..5", "batch", "", (5,)),
    ],
)
def test_what_is_written(text: str, name: str, places: str, values: tuple[int, ...]) -> None:
    assert parse_range(text) == Range(name, places, values)


@pytest.mark.parametrize(
    "text", ["", "batch", "batch=", "=1", "batch=a", "batch=1..", "batch=1..2..3", "batch=1..4:0", "batch=1.5", "b=1..99999999"]
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(TargetError):
        parse_range(text)


def function(x: torch.Tensor, weight: torch.Tensor, steps: int = 1, mask: torch.Tensor | None = None) -> torch.Tensor:
    return x @ weight * steps


def target() -> Target:
    return Target(function, (torch.rand(6, 4), torch.rand(4, 3), 2), {"mask": torch.rand(6, 4)})


def shape(leaf: object) -> object:
    return list(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf


def shapes(*texts: str) -> list[list[object]]:
    return [[shape(leaf) for leaf in call.leaves()] for call in calls_from_ranges(target(), texts)]


def test_the_batch() -> None:
    assert shapes("batch=0..1") == [[[size, 4], [4, 3], 2, [size, 4]] for size in (0, 1)]


def test_the_second_dimension_where_it_is_as_large() -> None:
    assert shapes("seq=5") == [[[6, 5], [4, 3], 2, [6, 5]]]


def test_told_places() -> None:
    assert shapes("inner=0:1,1:0=7") == [[[6, 7], [7, 3], 2, [6, 4]]]


def test_a_number() -> None:
    assert [row[2] for row in shapes("steps=1..3")] == [1, 2, 3]
    calls = calls_from_ranges(Target(function, (torch.ones(1, 1), torch.ones(1, 1)), {"steps": 1}), ["steps=4"])
    assert calls[0].kwargs["steps"] == 4


def test_all_combinations_with_labels() -> None:
    calls = calls_from_ranges(target(), ["batch=2,3", "steps=1,0"])
    assert [call.label for call in calls] == [f"batch={batch}, steps={steps}" for batch in (2, 3) for steps in (1, 0)]


def test_marks_and_wishes_for_gradients_stay() -> None:
    x = torch.ones(4, 2, requires_grad=True)
    torch._dynamo.mark_dynamic(x, 0)
    call = calls_from_ranges(Target(torch.sin, (x,)), ["batch=7"])[0]
    assert call.args[0]._dynamo_dynamic_indices == {0} and call.args[0].requires_grad and call.args[0].shape == (7, 2)


@pytest.mark.parametrize(
    "texts", [["batch=1", "batch=2"], ["batch=-1..3"], ["width=3"], ["w=5:0=3"], ["w=0:7=3"], ["batch=1..200", "steps=1..200"]]
)
def test_what_cannot_be(texts: list[str]) -> None:
    with pytest.raises(TargetError):
        calls_from_ranges(target(), texts)


def test_no_second_dimension() -> None:
    with pytest.raises(TargetError, match="dimension 1"):
        calls_from_ranges(Target(torch.sin, (torch.ones(3),)), ["seq=1..2"])
