"""Inputs of other sizes."""

from __future__ import annotations

import pytest
import torch

from compile_inspect.errors import TargetError
from compile_inspect.target import Target
from compile_inspect.timing.sweep import axes_of, describe_inputs, parse_sweep, points
from compile_inspect.variants import Task


def task(*args: object, **kwargs: object) -> Task:
    return Task(max, args, kwargs)


def test_without_a_sweep_there_is_the_task_itself() -> None:
    example = task(torch.ones(2))
    assert list(points(example, None)) == [({}, example)]


def test_the_batch_is_dimension_0_of_every_tensor_that_has_it() -> None:
    example = task(torch.ones(4, 8), torch.ones(3, 4), {"mask": torch.ones(4, dtype=torch.bool), "n": 7}, scale=torch.ones(()))
    found = list(points(example, {"batch": [1, 6]}))
    assert [sizes for sizes, _ in found] == [{"batch": 1}, {"batch": 6}]
    x, other, rest = found[1][1].args
    assert (x.shape, other.shape, rest["mask"].shape, rest["n"]) == ((6, 8), (3, 4), (6,), 7)
    assert rest["mask"].dtype == torch.bool
    assert found[1][1].kwargs["scale"].shape == ()
    assert example.args[0].shape == (4, 8)


def test_values_stay_in_range_and_gradients_stay_wanted() -> None:
    indices, weight = torch.tensor([5, 9, 2]), torch.randn(3, 2, requires_grad=True)
    ((_, found),) = points(task(indices, weight), {"batch": [7]})
    assert found.args[0].tolist() == [5, 9, 2, 5, 9, 2, 5]
    assert found.args[1].requires_grad and found.args[1].is_leaf
    assert torch.equal(found.args[1][3], weight[0])


def test_other_dimensions_are_named_by_place() -> None:
    example = task(torch.ones(2, 16), torch.ones(5), mask=torch.ones(2, 16))
    (_, first), (_, second) = points(example, {"tokens=0:1,mask:-1": [4, 32]})
    assert [tuple(item.shape) for item in (first.args[0], first.args[1], first.kwargs["mask"])] == [(2, 4), (5,), (2, 4)]
    assert tuple(second.kwargs["mask"].shape) == (2, 32)


def test_several_axes_are_combined() -> None:
    found = list(points(task(torch.ones(2, 3)), {"batch": [1, 2], "width=0:1": [5, 6]}))
    assert [(tuple(sizes.values()), tuple(at.args[0].shape)) for sizes, at in found] == [
        ((1, 5), (1, 5)),
        ((1, 6), (1, 6)),
        ((2, 5), (2, 5)),
        ((2, 6), (2, 6)),
    ]


def test_further_inputs_of_a_target_can_be_the_sweep() -> None:
    target = Target(torch.sin, (torch.ones(2),), further=(((torch.ones(5),), {}),))
    found = list(points(Task.of(target), "further"))
    assert [(sizes, at.args[0].shape[0], at.further) for sizes, at in found] == [({"inputs": 0}, 2, ()), ({"inputs": 1}, 5, ())]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"tokens": [1]}, "does not specify where 'tokens' is in the inputs: write batch=1,8,64 for the batch size, or NAME="),
        ({"batch": []}, r"the sizes of 'batch' are \[\]: use integers of at least 1"),
        ({"batch": [0]}, r"are \[0\]: use integers"),
        ({"batch": [1.5]}, r"are \[1.5\]: use integers"),
        ({"tokens=0": [1]}, "'0' in 'tokens=0' is not a position"),
        ({"tokens=3:0": [1]}, "tokens=3:0 names argument '3'; the inputs have 0, mask"),
        ({"tokens=mask:1": [1]}, "tokens=mask:1 matches no tensor with a dimension 1"),
        ({"batch": [1], "batch=0:0": [1]}, "give each axis a different name"),
        ("further", "needs a Target with further inputs"),
        ("batch=1", "pass a mapping such as"),
    ],
)
def test_mistakes_are_explained(sweep: object, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        list(points(task(torch.ones(2), mask=torch.ones(2)), sweep))  # type: ignore[arg-type]


def test_inputs_without_tensors_or_elements_are_explained() -> None:
    with pytest.raises(TargetError, match="matches no tensor with a dimension 0"):
        list(points(task(3), {"batch": [1]}))
    with pytest.raises(TargetError, match="empty tensor"):
        list(points(task(torch.ones(0, 2)), {"batch": [1]}))


@pytest.mark.parametrize("text", ["batch", "=1", "batch=", "batch=1,x", "batch=-1"])
def test_what_the_command_line_cannot_mean(text: str) -> None:
    with pytest.raises(TargetError, match="has no sizes: write batch=1,8,64"):
        parse_sweep([text])


def test_the_command_line_and_python_mean_the_same() -> None:
    axes = axes_of(parse_sweep(["batch=1,8", "tokens=0:1,mask:1=16,32"]))
    assert [(axis.name, axis.positions, axis.sizes) for axis in axes] == [
        ("batch", (), (1, 8)),
        ("tokens", (("0", 1), ("mask", 1)), (16, 32)),
    ]


def test_inputs_in_short() -> None:
    assert describe_inputs(task(torch.ones(2, 3), [torch.arange(4), "mean"])) == ("float32[2, 3] cpu", "int64[4] cpu", "'mean'")
