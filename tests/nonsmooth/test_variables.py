"""The unknowns in the user's form and as one flat array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import ProblemError, minimize
from nonsmooth.variables import Variables


def test_a_tensor_keeps_its_shape_and_type() -> None:
    start = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    variables = Variables(start)
    assert variables.size == 6 and variables.names == ("x",)
    assert variables.start.dtype == np.float64
    np.testing.assert_array_equal(variables.start, np.arange(6.0))
    shaped = variables.shaped(np.arange(6.0) + 0.5)
    assert shaped.shape == (2, 3) and shaped.dtype == torch.float32 and not shaped.requires_grad
    torch.testing.assert_close(shaped, start + 0.5)


def test_the_start_is_not_changed() -> None:
    start = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    result = minimize(lambda x: (x**2).sum(), start)
    assert start.tolist() == [3.0, 4.0] and start.grad is None and start.requires_grad
    assert not result.x.requires_grad and result.x.dtype == torch.float64
    assert abs(result.f) < 1e-10


def test_a_scalar_tensor_is_one_variable() -> None:
    result = minimize(lambda x: abs(x - 2), torch.tensor(5.0, dtype=torch.float64))
    assert result.success and result.x.shape == ()
    assert float(result.x) == pytest.approx(2.0, abs=1e-6)


def test_a_dict_keeps_order_shapes_and_types() -> None:
    variables = Variables({"b": torch.ones(2, 1), "a": torch.zeros(3, dtype=torch.float64), "c": torch.tensor(7.0)})
    assert variables.names == ("b", "a", "c")
    np.testing.assert_array_equal(variables.start, [1, 1, 0, 0, 0, 7])
    shaped = variables.shaped(np.arange(6.0))
    assert list(shaped) == ["b", "a", "c"]
    assert shaped["b"].tolist() == [[0.0], [1.0]] and shaped["b"].dtype == torch.float32
    assert shaped["a"].tolist() == [2.0, 3.0, 4.0] and shaped["a"].dtype == torch.float64
    assert shaped["c"].shape == () and float(shaped["c"]) == 5.0


def test_placed_tensors_are_leaves_of_their_own() -> None:
    start = torch.zeros(2, dtype=torch.float64)
    argument, leaves = Variables(start).place(np.array([1.0, 2.0]))
    assert argument is leaves[0] and argument.is_leaf and argument.requires_grad
    argument.data.fill_(9.0)
    assert start.tolist() == [0.0, 0.0]


class Tied(nn.Module):
    """Two layers that share their weight, a frozen one and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=True)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.full((3,), 5.0), requires_grad=False)
        self.register_buffer("table", torch.ones(4))
        self.double()


def test_a_module_gives_each_trainable_parameter_once() -> None:
    module = Tied()
    variables = Variables(module)
    assert variables.names == ("first.weight", "second.bias")
    assert variables.size == 6
    argument, leaves = variables.place(np.arange(6.0))
    assert argument is module
    assert module.second.weight.tolist() == [[0.0, 1.0], [2.0, 3.0]] and module.second.weight is module.first.weight
    assert module.second.bias.tolist() == [4.0, 5.0]
    assert all(leaf is parameter for leaf, parameter in zip(leaves, (module.first.weight, module.second.bias), strict=True))
    assert module.frozen.tolist() == [5.0] * 3


def test_a_module_is_filled_with_the_answer() -> None:
    torch.manual_seed(0)
    module = Tied()

    def loss(model: nn.Module) -> Tensor:
        assert isinstance(model, Tied)
        return (model.second(model.first(torch.eye(2).double())) - torch.eye(2).double()).abs().sum() + model.frozen.sum()

    result = minimize(loss, module)
    assert result.x is module
    assert float(loss(module).detach()) == result.f
    assert module.frozen.tolist() == [5.0] * 3 and module.first.weight.requires_grad
    assert sorted(result.point.x) == ["first.weight", "second.bias"]
    torch.testing.assert_close(result.point.x["first.weight"], module.first.weight.detach())
    result.check()
    assert float(loss(module).detach()) == result.f  # the check went elsewhere and came back


def test_a_module_of_mixed_precision_counts_as_single() -> None:
    module = nn.ModuleDict({"low": nn.Linear(1, 1), "high": nn.Linear(1, 1).double()})
    variables = Variables(module)
    assert variables.single_precision
    assert not Variables(torch.zeros(1).double()).single_precision
    assert Variables(torch.zeros(1, dtype=torch.bfloat16)).single_precision


def test_points_are_rounded_to_what_the_type_can_hold() -> None:
    x = np.array([1.0 + 1e-12])
    assert Variables(torch.zeros(1)).rounded(x)[0] == 1.0
    assert Variables(torch.zeros(1).double()).rounded(x)[0] == x[0]


def test_flatten_accepts_numbers_and_the_form_of_x() -> None:
    variables = Variables({"a": torch.zeros(2, dtype=torch.float64), "b": torch.zeros(1, 2, dtype=torch.float64)})
    flatten = variables.flatten
    np.testing.assert_array_equal(flatten(3, what="it"), [3, 3, 3, 3])
    np.testing.assert_array_equal(flatten(torch.tensor(2.0), what="it"), [2, 2, 2, 2])
    np.testing.assert_array_equal(flatten(np.arange(4.0), what="it"), [0, 1, 2, 3])
    np.testing.assert_array_equal(flatten({"b": torch.tensor([[5.0, 6.0]]), "a": 1.0}, what="it"), [1, 1, 5, 6])
    np.testing.assert_array_equal(flatten([torch.ones(2), 7.0], what="it"), [1, 1, 7, 7])
    np.testing.assert_array_equal(flatten([1, 2.0, 3, 4], what="it"), [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"a": 1.0}, "the bound has no entry for the variable 'b'; give one for each of a, b"),
        ([1.0], r"the bound is a list of 1, and x0 has 2 variables with 4 numbers"),
        (torch.zeros(3), r"the bound must have the form of x0 \(4 numbers\), not Tensor of shape \(3,\)"),
        ("wide", "the bound must have the form of x0"),
    ],
)
def test_flatten_refuses_other_forms(form: Any, message: str) -> None:
    variables = Variables({"a": torch.zeros(2, dtype=torch.float64), "b": torch.zeros(1, 2, dtype=torch.float64)})
    with pytest.raises(ProblemError, match=message):
        variables.flatten(form, what="the bound")


@pytest.mark.parametrize(
    "form", [{"a": torch.zeros(3), "b": torch.zeros(2)}, {"a": torch.zeros(2), "b": "wide"}, [torch.zeros(3), 1.0]]
)
def test_flatten_refuses_parts_of_another_shape(form: Any) -> None:
    variables = Variables({"a": torch.zeros(2, dtype=torch.float64), "b": torch.zeros(1, 2, dtype=torch.float64)})
    with pytest.raises(ProblemError):
        variables.flatten(form, what="the bound")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("12", "x0 must be a tensor, a dict of tensors, a module, an array or a list of numbers, not str"),
        (1.0, "x0 must be a tensor, a dict of tensors, a module, an array or a list of numbers, not float"),
        ([torch.zeros(1), torch.zeros(1)], "x0 is a list of tensors; .*torch.stack"),
        ([torch.zeros(2, requires_grad=True)], "x0 is a list"),
        ([[1.0, 2.0], [3.0]], "x0 is a list that is not an array of numbers"),
        (np.zeros(2, dtype=complex), "x0 is a ndarray of complex128"),
        (["a"], "x0 is a list of <U1"),
        ([], "x0 is empty"),
        (np.array([np.nan]), "x0 contains NaN"),
        (None, "not NoneType"),
        (torch.tensor([1, 2]), r"the variable 'x' has type torch.int64; use float64 \(or float32\), as in x0.double\(\)"),
        (torch.zeros(2, dtype=torch.complex64), "the variable 'x' has type torch.complex64"),
        ({"w": [1.0]}, "the variable 'w' must be a tensor, not list"),
        ({}, "x0 has no variables"),
        (nn.ReLU(), "x0 has no variables"),
        (torch.zeros(0), "x0 is empty: there is nothing to minimize over"),
        ({"w": torch.zeros(0, 3)}, "x0 is empty"),
        (torch.tensor([1.0, float("nan")]), "x0 contains NaN or infinity; the start must be finite"),
        (torch.tensor([float("inf")]), "x0 contains NaN or infinity"),
    ],
)
def test_a_start_that_is_none(start: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Variables(start)


def test_a_dict_with_one_empty_tensor_is_fine() -> None:
    result = minimize(
        lambda v: (v["a"] ** 2).sum() + v["empty"].sum(), {"empty": torch.zeros(0).double(), "a": torch.ones(2).double()}
    )
    assert result.success and result.x["empty"].shape == (0,)


def test_the_device_is_that_of_the_first_tensor() -> None:
    assert Variables({"a": torch.zeros(1), "b": torch.zeros(1)}).device == torch.device("cpu")
