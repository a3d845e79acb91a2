"""The forms in which a problem can be given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Problem, ProblemError, Status, minimize
from nonsmooth.problem import flatten, scalar

START = torch.tensor([3.0, -2.0], dtype=torch.float64)


def square(x: Tensor) -> Tensor:
    return (x**2).sum()


FORMS: dict[str, Any] = {
    "tensor": lambda x: 1 - x,
    "matrix": lambda x: (1 - x).reshape(1, 2),
    "list": lambda x: [1 - x[0], 1 - x[1]],
    "tuple": lambda x: (1 - x[:1], 1 - x[1]),
    "dict": lambda x: {"first": 1 - x[0], "second": (1 - x[1]).reshape(1, 1)},
    "with a number": lambda x: [1 - x, -1.0, 0],
    "with a whole tensor": lambda x: [1 - x, torch.tensor([-1, -2])],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_inequalities_in_every_form(form: Any) -> None:
    result = minimize(lambda x: (square(x), form(x), None), START)
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(2.0, abs=1e-6)
    torch.testing.assert_close(result.x, torch.ones(2).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("form", [lambda x: x[0] - 1, lambda x: [x[0] - 1], lambda x: {"level": x[:1] - 1}])
def test_equalities_in_every_form(form: Any) -> None:
    result = minimize(lambda x: (square(x), None, form(x)), START)
    assert result.success and result.f == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        square,
        lambda x: square(x).reshape(1, 1),
        lambda x: (square(x),),
        lambda x: [square(x), None],
        lambda x: (square(x), None, None),
        lambda x: (square(x), [], {}),
        lambda x: (square(x), torch.zeros(0), None),
    ],
)
def test_without_constraints(function: Any) -> None:
    result = minimize(function, START)
    assert result.success and abs(result.f) < 1e-10 and result.violation == 0.0
    assert result.multipliers.equalities is None


def test_functions_of_their_own() -> None:
    together = minimize(lambda x: (square(x), 1 - x[0], x.sum() - 3), START)
    apart = minimize(None, START, objective=square, inequalities=lambda x: 1 - x[0], equalities=lambda x: x.sum() - 3)
    whole = minimize(Problem(lambda x: (square(x), 1 - x[0], x.sum() - 3)), START)
    assert together.f == pytest.approx(4.5, abs=1e-6)
    assert torch.equal(together.x, apart.x) and torch.equal(together.x, whole.x)


def test_an_objective_that_is_a_number() -> None:
    result = minimize(lambda x: (0.0, 1 - x[0], None), START * 0)
    assert result.success and float(result.x[0]) >= 1 - 1e-6
    assert result.f == 0.0


def test_more_arguments() -> None:
    seen = []

    def function(x: Tensor, center: float, *, width: float) -> Tensor:
        seen.append((center, width))
        return width * (x - center).abs().sum()

    result = minimize(function, START, args=(2.0,), kwargs={"width": 3.0})
    assert set(seen) == {(2.0, 3.0)}
    torch.testing.assert_close(result.x, torch.full((2,), 2.0).double(), atol=1e-6, rtol=0)
    problem = Problem(function, arguments=(2.0,), keywords={"width": 3.0})
    assert torch.equal(minimize(problem, START).x, result.x)


def test_more_arguments_reach_every_function() -> None:
    result = minimize(
        None, START, objective=lambda x, a: square(x - a), inequalities=lambda x, a: x[0] - a / 2,
        equalities=lambda x, a: x[1] - a, args=(4.0,),
    )  # fmt: skip
    assert result.success
    assert result.x.tolist() == pytest.approx([2.0, 4.0], abs=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem(), "give either one function"),
        (lambda: Problem(square, objective=square), "give either one function"),
        (lambda: Problem(square, inequalities=square), "go with objective="),
        (lambda: Problem(square, equalities=square), "go with objective="),
        (lambda: Problem(objective=square, gradients=True), "gradients=True needs one function"),
        (lambda: Problem(3), "function must be callable, not int"),  # type: ignore[arg-type]
        (lambda: Problem(objective=square, equalities=[1]), "equalities must be callable, not list"),  # type: ignore[arg-type]
        (lambda: Problem(square, bounds=1.0), r"bounds must be a pair \(lower, upper\), .* not 1.0"),
    ],
)
def test_parts_that_do_not_fit_together(make: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        make()


@pytest.mark.parametrize(
    "more", [{"objective": square}, {"bounds": (0, 1)}, {"gradients": True}, {"args": (1,)}, {"kwargs": {"a": 1}}]
)
def test_a_problem_is_complete(more: dict[str, Any]) -> None:
    with pytest.raises(ProblemError, match="fn is a Problem"):
        minimize(Problem(square), START, **more)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x**2, r"the objective must have one element, not shape \(2,\); sum or average it"),
        (lambda x: None, "the objective must be a tensor with one element, not NoneType"),
        (lambda x: True, "the objective must be a tensor with one element, not bool"),
        (lambda x: "3", "not str"),
        (lambda x: torch.complex(x[0], x[1]), "the objective is complex"),
        (lambda x: (square(x), "none", None), "the inequalities must be a tensor, a list or dict of tensors, or None, not str"),
        (lambda x: (square(x), None, [x, "2"]), r"the equalities\[1\] must be a tensor, not str"),
        (lambda x: (square(x), {"a": None}, None), r"the inequalities\['a'\] must be a tensor, not NoneType"),
        (lambda x: (square(x), torch.complex(x, x), None), "the inequalities is complex|are complex"),
        (lambda x: (square(x), None, None, None), r"must return f or \(f, ci, ce\), not 4 values"),
        (lambda x: (), r"must return f or \(f, ci, ce\), not 0 values"),
        (lambda x: square(x) / 0, "the value of the objective at x0 is not finite"),
        (lambda x: (square(x), torch.log(x), None), "the value of a constraint at x0 is not finite"),
        (lambda x: torch.sqrt(x - x).sum(), "a gradient at x0 is not finite"),
    ],
)
def test_answers_that_are_none(function: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        minimize(function, START)


def test_the_number_of_constraints_must_not_change() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        return square(x), (1 - x if float(x[0]) == 3.0 else 1 - x[:1]), None

    result = minimize(function, START)
    assert result.status is Status.FUNCTION_ERROR and not result.success
    assert "the function returned 1 inequalities here and 2 at the start" in str(result.exception)


def test_scalar_keeps_the_graph() -> None:
    x = torch.ones(1, requires_grad=True)
    value = scalar(2 * x)
    assert value.shape == () and value.requires_grad
    assert scalar(3).dtype == torch.float64


@pytest.mark.parametrize("value", [torch.arange(6.0).reshape(2, 3), [torch.zeros(2), 1.0], {"a": torch.ones(1, 2), "b": 2}])
def test_a_form_is_restored(value: Any) -> None:
    flat, form = flatten(value, "it")
    assert flat is not None and flat.shape == (form.size,)
    restored = form.restore(flat)
    assert type(restored) is type(value)
    again, _ = flatten(restored, "it")
    assert again is not None and torch.equal(again, flat)


def test_no_constraints_have_no_form() -> None:
    for value in (None, [], {}):
        flat, form = flatten(value, "it")
        assert flat is None and form.size == 0 and form.restore(torch.zeros(0)) is None


def test_the_widest_type_wins() -> None:
    flat, _ = flatten([torch.ones(1, dtype=torch.float32), torch.ones(1, dtype=torch.float64)], "it")
    assert flat is not None and flat.dtype == torch.float64
