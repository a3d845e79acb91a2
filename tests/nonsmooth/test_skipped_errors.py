"""`on_error="skip"`: exceptions of the function are points outside its domain."""

from __future__ import annotations

import math
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import nonsmooth
from nonsmooth import OptionError, ProblemError, Status

START = torch.tensor([3.0, 2.0], dtype=torch.float64)

minimize = partial(nonsmooth.minimize, scaling="none")  # so that runs go where these tests want them


class DomainError(Exception):
    pass


def barrier(x: Tensor) -> Tensor:
    """Minimum 2 at (1, 1); a long first step from the start leaves the domain."""
    if float(x.detach().min()) <= 0:
        raise DomainError(f"at {x.tolist()}")
    return (x - x.log()).sum() + (x[0] - x[1]).abs()


def test_the_run_goes_on_where_it_would_have_ended() -> None:
    start = torch.tensor([0.05, 4.0], dtype=torch.float64)
    stopped = minimize(barrier, start)
    assert stopped.status is Status.FUNCTION_ERROR and stopped.skipped_errors.count == 0
    result = minimize(barrier, start, on_error="skip")
    assert result.status is Status.STATIONARY and result.f == pytest.approx(2.0)
    assert result.skipped_errors.count >= 1 and isinstance(result.skipped_errors.last, DomainError)
    assert result.exception is None
    assert f"{result.skipped_errors.count} exceptions, the last DomainError: at [" in str(result)
    assert result.check().stationary
    assert result.evaluations > result.skipped_errors.count  # which are evaluations too


@pytest.mark.parametrize("options", [{}, {"prescaling_threshold": 15.0}], ids=["plain", "scaled"])
def test_it_takes_the_steps_that_infinity_would_take(options: dict[str, Any]) -> None:
    def infinite(x: Tensor) -> Any:
        f = 20 * barrier(x) if float(x.detach().min()) > 0 else x.sum() * math.inf
        return f, x.sum() - 4, None

    result = minimize(lambda x: (20 * barrier(x), x.sum() - 4, None), START, bounds=(None, 10.0), on_error="skip", **options)
    other = minimize(infinite, START, bounds=(None, 10.0), **options)
    assert result.success and result.skipped_errors.count
    assert torch.equal(result.x, other.x) and result.iterations == other.iterations


def test_the_start_must_not_raise() -> None:
    with pytest.raises(DomainError):
        minimize(barrier, torch.tensor([-1.0, 2.0], dtype=torch.float64), on_error="skip")


def test_a_function_that_raises_everywhere_else_ends_at_the_start() -> None:
    def broken(x: Tensor) -> Tensor:
        if not torch.equal(x.detach(), START):
            raise DomainError("broken")
        return x.square().sum()

    result = minimize(broken, START, on_error="skip", max_evaluations=500)
    assert not result.success and torch.equal(result.x, START)
    assert str(result.skipped_errors.last) == "broken"


def test_a_limit_of_evaluations_counts_them() -> None:
    def broken(x: Tensor) -> Tensor:
        if not torch.equal(x.detach(), START):
            raise DomainError("broken")
        return x.square().sum()

    result = minimize(broken, START, on_error="skip", max_evaluations=7)
    assert result.status is Status.EVALUATION_LIMIT and result.evaluations == 7 and result.skipped_errors.count == 6


def later(error: BaseException) -> Any:
    calls = iter(range(100))

    def function(x: Tensor) -> Tensor:
        if next(calls) == 3:
            raise error
        return (x - 1).abs().sum() + x[0] ** 2

    return function


@pytest.mark.parametrize("error", [MemoryError("full"), torch.OutOfMemoryError("full")])
def test_missing_memory_ends_the_run(error: Exception) -> None:
    result = minimize(later(error), START, on_error="skip")
    assert result.status is Status.FUNCTION_ERROR and result.exception is error


def test_an_interrupt_ends_the_run() -> None:
    assert minimize(later(KeyboardInterrupt()), START, on_error="skip").status is Status.USER_STOP


@pytest.mark.parametrize("given", [False, True])
def test_a_changing_number_of_constraints_ends_the_run(given: bool) -> None:
    def function(x: Tensor) -> Any:
        c = x - 9 if torch.equal(x.detach(), START) else x[:1] - 9
        return ((x**2).sum(), 2 * x, c, torch.eye(2)[: len(c)]) if given else ((x**2).sum(), c, None)

    result = minimize(function, START, gradients=given, on_error="skip")
    assert result.status is Status.FUNCTION_ERROR and isinstance(result.exception, ProblemError)
    assert "number must not change" in str(result.exception) and result.skipped_errors.count == 0


class RaisingBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        if float(x.min()) < -0.5:
            raise DomainError("no gradient")
        return gradient


@pytest.mark.parametrize("constraints", [0, 1, 6])
def test_a_gradient_that_cannot_be_computed_is_avoided(constraints: int) -> None:
    def function(x: Tensor) -> Any:
        x = RaisingBackward.apply(x)
        return (x[0] ** 2 + 30 * x[1]).abs() + x.square().sum(), x.repeat(3)[:constraints] - 50, None

    assert minimize(function, START).status is Status.FUNCTION_ERROR
    result = minimize(function, START, on_error="skip")
    assert result.f < 1e-3 and isinstance(result.skipped_errors.last, DomainError)


def test_a_module_goes_on_too() -> None:
    model = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.05, 4.0]]))
    result = minimize(lambda m: barrier(m.weight[0]), model, on_error="skip")
    assert result.success and result.skipped_errors.count
    assert model.weight.detach()[0].tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_the_last_exception_travels() -> None:
    class LocalError(Exception):
        pass

    def function(x: Tensor) -> Tensor:
        try:
            return barrier(x)
        except DomainError as error:
            raise LocalError("local") from error

    result = minimize(function, torch.tensor([0.05, 4.0], dtype=torch.float64), on_error="skip")
    again = pickle.loads(pickle.dumps(result))
    assert again.skipped_errors.count == result.skipped_errors.count
    assert str(again.skipped_errors.last) == "LocalError: local"
    assert isinstance(result.skipped_errors.last, LocalError)


def test_other_choices_are_refused() -> None:
    with pytest.raises(OptionError, match="on_error must be 'stop' or 'skip', not 'ignore'"):
        minimize(barrier, START, on_error="ignore")
