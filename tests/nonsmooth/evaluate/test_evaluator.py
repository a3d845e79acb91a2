"""Values and gradients of the user's functions at flat points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import Problem, ProblemError, Status, minimize
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.variables import Variables

START = torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64)
POINT = np.array([0.4, 1.1, -0.6])


def curved(x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
    f = torch.sin(x[0]) * x[1] ** 2 + torch.exp(0.3 * x[2]) + (x - 0.1).abs().sum()
    return f, [x[0] ** 3 - x[1], torch.cos(x[1:]) * x[0]], (x**2).sum() - 1


def evaluator(function: Any, start: Any = START, **more: Any) -> Evaluator:
    return Evaluator(Problem(function, **more), Variables(start))


def differences(evaluate: Evaluator, x: np.ndarray, h: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """Central differences of f and c."""
    columns = []
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = h
        ahead, behind = evaluate(x + step), evaluate(x - step)
        columns.append((np.append(ahead.f, ahead.c) - np.append(behind.f, behind.c)) / (2 * h))
    table = np.array(columns).T
    return table[0], table[1:]


def agrees_with_differences(evaluate: Evaluator, x: np.ndarray = POINT) -> Trial:
    trial = evaluate(x)
    gradient, jacobian = differences(evaluate, x)
    np.testing.assert_allclose(trial.gradient, gradient, atol=1e-8)
    np.testing.assert_allclose(trial.jacobian, jacobian, atol=1e-8)
    signs = np.random.default_rng(0).standard_normal(len(trial.c))
    weight = 2.5
    other = evaluate(x)
    expected = gradient + weight * (other.signs() @ jacobian)
    np.testing.assert_allclose(other.penalty_gradient(weight), expected, atol=1e-7)  # one backward pass
    np.testing.assert_allclose(trial.penalty_gradient(weight), expected, atol=1e-7)  # from what is known
    assert len(signs) == len(trial.jacobian)
    return trial


def test_values_are_the_functions() -> None:
    trial = evaluator(curved)(POINT)
    x = torch.from_numpy(POINT)
    f, inequalities, equality = curved(x)
    assert trial.f == float(f)
    assert trial.equalities == 1
    np.testing.assert_array_equal(trial.c, [float(equality), float(inequalities[0]), *inequalities[1].tolist()])
    violated = np.maximum(trial.c[1:], 0)
    assert trial.equality_violation == abs(float(equality))
    assert trial.inequality_violation == violated.max()
    assert trial.violation == max(trial.equality_violation, trial.inequality_violation)
    assert trial.total_violation == pytest.approx(abs(float(equality)) + violated.sum(), rel=1e-15)
    assert trial.penalty(3.0) == pytest.approx(trial.f + 3.0 * trial.total_violation, rel=1e-15)
    assert trial.finite and trial.differentiable


def test_gradients_are_the_slopes() -> None:
    agrees_with_differences(evaluator(curved))


def test_gradients_of_variables_by_name() -> None:
    def function(v: dict[str, Tensor]) -> tuple[Tensor, Tensor, None]:
        return (v["a"] ** 3).sum() * v["b"], torch.stack([v["a"].prod(), v["b"] ** 2]), None

    start = {"b": torch.tensor(2.0, dtype=torch.float64), "a": torch.ones(1, 2, dtype=torch.float64)}
    agrees_with_differences(evaluator(function, start))


def test_matrices_and_eigenvalues() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        matrix = torch.stack([torch.stack([x[0], x[1]]), torch.stack([x[1], x[2]])])
        return torch.linalg.eigvalsh(matrix).max(), torch.linalg.svdvals(matrix), None

    agrees_with_differences(evaluator(function))


class NoBatches(torch.autograd.Function):
    """A square whose backward pass cannot be batched."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        if float(upstream.sum()) == 0:  # reading a value is what a batch does not allow
            return torch.zeros_like(x)
        return 2 * x * upstream


def test_a_jacobian_that_cannot_be_batched_is_made_row_by_row() -> None:
    batched = evaluator(lambda x: (x.sum(), x**2, x.prod()))
    looped = evaluator(lambda x: (x.sum(), NoBatches.apply(x), x.prod()))
    np.testing.assert_array_equal(batched(POINT).jacobian, looped(POINT).jacobian)
    assert looped.costs.one_by_one and not batched.costs.one_by_one
    assert looped.costs.jacobians == batched.costs.jacobians == 1


def test_constants_and_unused_variables_have_zero_gradients() -> None:
    def function(x: Tensor) -> tuple[Tensor, list[Any], Tensor]:
        return x[0] ** 2, [torch.tensor(-1.0, dtype=torch.float64), x[1], 3.0], torch.zeros(2, dtype=torch.float64)

    trial = evaluator(function)(POINT)
    np.testing.assert_array_equal(trial.c, [0, 0, -1, POINT[1], 3])
    np.testing.assert_array_equal(trial.gradient, [2 * POINT[0], 0, 0])
    expected = np.zeros((5, 3))
    expected[3, 1] = 1
    np.testing.assert_array_equal(trial.jacobian, expected)


def test_variables_in_no_function() -> None:
    start = {"used": torch.ones(2).double(), "idle": torch.ones(2, 2).double()}
    trial = evaluator(lambda v: ((v["used"] ** 2).sum(), v["used"] - 1, None), start)(np.arange(6.0))
    np.testing.assert_array_equal(trial.gradient, [0, 2, 0, 0, 0, 0])
    np.testing.assert_array_equal(trial.jacobian[:, 2:], np.zeros((2, 4)))


def test_a_constant_problem() -> None:
    trial = evaluator(lambda x: (3.0, None, torch.tensor([1.0])))(POINT)
    assert trial.f == 3.0
    np.testing.assert_array_equal(trial.gradient, np.zeros(3))
    np.testing.assert_array_equal(trial.jacobian, np.zeros((1, 3)))
    np.testing.assert_array_equal(trial.penalty_gradient(2.0), np.zeros(3))


BOUNDS = (torch.tensor([-1.0, 1.1, -np.inf]), torch.tensor([0.5, 1.1, 3.0]))


def test_soft_bounds_are_rows_of_their_own() -> None:
    evaluate = evaluator(curved, bounds=BOUNDS, soft_bounds=True)
    trial = agrees_with_differences(evaluate)
    free = evaluator(curved)(POINT)
    assert trial.equalities == 2
    # equality, fixed variable, inequalities, upper bounds, lower bounds
    np.testing.assert_allclose(
        trial.c, [free.c[0], POINT[1] - 1.1, *free.c[1:], POINT[0] - 0.5, POINT[2] - 3, -1 - POINT[0]], atol=1e-7
    )
    np.testing.assert_array_equal(trial.jacobian[1], [0, 1, 0])
    np.testing.assert_array_equal(trial.jacobian[-3:], [[1, 0, 0], [0, 0, 1], [-1, 0, 0]])


@pytest.mark.parametrize(
    ("bounds", "inequalities", "equalities"),
    [((None, None), 0, 0), ((0, None), 3, 0), ((None, 1.0), 3, 0), ((0, 1), 6, 0), ((2, 2), 0, 3), ((-np.inf, np.inf), 0, 0)],
)
def test_soft_bounds_that_are_numbers(bounds: Any, inequalities: int, equalities: int) -> None:
    trial = evaluator(lambda x: x.sum(), bounds=bounds, soft_bounds=True)(POINT)
    assert (len(trial.c) - trial.equalities, trial.equalities) == (inequalities, equalities)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), "lower bound 1.0 is above upper bound 0.0 at position 0"),
        ((torch.tensor([0.0, 0.0, 5.0]), 1), "lower bound 5.0 is above upper bound 1.0 at position 2"),
        ((float("nan"), None), "a bound is NaN"),
        ((torch.zeros(2), None), "the lower bound must have the form of x0"),
        ((None, "high"), "the upper bound must have the form of x0"),
    ],
)
def test_bounds_that_are_none(bounds: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        evaluator(lambda x: x.sum(), bounds=bounds)


def with_gradients(x: Tensor) -> tuple[Any, ...]:
    f = (x**2).sum()
    return f, 2 * x, x[0] * x[1] * x[2], torch.stack([x[1] * x[2], x[0] * x[2], x[0] * x[1]]), x[:2] - 1, torch.eye(3)[:2]


def test_given_gradients_are_used() -> None:
    given = evaluator(with_gradients, gradients=True)
    trial = agrees_with_differences(given)
    recorded = evaluator(lambda x: ((x**2).sum(), x.prod(), x[:2] - 1))(POINT)
    np.testing.assert_allclose(trial.gradient, recorded.gradient, rtol=1e-15)
    np.testing.assert_allclose(trial.jacobian, recorded.jacobian, rtol=1e-15)
    np.testing.assert_array_equal(trial.c, recorded.c)


def test_given_gradients_take_the_same_way_as_recorded_ones() -> None:
    given = minimize(with_gradients, START, gradients=True)
    # Not x.prod(): its gradient is rounded in another way, and one digit can decide which side of a constraint a point is on.
    recorded = minimize(lambda x: ((x**2).sum(), x[0] * x[1] * x[2], x[:2] - 1), START)
    assert given.success and given.status is recorded.status
    torch.testing.assert_close(given.x, recorded.x, rtol=0, atol=0)
    np.testing.assert_array_equal(given.history.f, recorded.history.f)


def test_given_gradients_by_name() -> None:
    def function(v: dict[str, Tensor]) -> tuple[Any, ...]:
        f = (v["a"] ** 2).sum() + v["b"]
        rows = {"a": torch.eye(2), "b": torch.tensor([0.0, 1.0])}
        return f, {"b": 1.0, "a": 2 * v["a"]}, v["a"] + torch.stack([torch.zeros(()), v["b"]]), rows

    start = {"a": torch.ones(2).double(), "b": torch.tensor(3.0).double()}
    trial = evaluator(function, start, gradients=True)(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(trial.gradient, [2, 4, 1])
    np.testing.assert_array_equal(trial.c, [1, 6])
    np.testing.assert_array_equal(trial.jacobian, [[1, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.sum(), "with gradients=True the function must return"),
        (lambda x: (x.sum(), torch.ones(3), x), "with gradients=True the function must return"),
        (lambda x: (x.sum(), torch.ones(2)), "the gradient of f must have the form of x0"),
        (lambda x: (x.sum(), torch.ones(3), x, torch.ones(2, 3)), "the Jacobian of the inequalities has shape"),
    ],
)
def test_given_gradients_of_a_wrong_form(function: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        minimize(function, START, gradients=True)


def test_prescaling_shortens_long_gradients_only() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return 1e4 * x[0], torch.stack([x[1], 500 * x[1]]), 200 * x[2]

    evaluate = evaluator(function)
    plain = evaluate(POINT)
    evaluate.choose_scales(plain, threshold=100.0)
    assert evaluate.scales is not None
    assert evaluate.scales.objective == pytest.approx(0.01)
    np.testing.assert_allclose(evaluate.scales.constraints, [0.5, 1.0, 0.2])
    scaled = agrees_with_differences(evaluate)
    np.testing.assert_allclose(np.linalg.norm(scaled.jacobian, axis=1), [100, 1, 100])
    assert np.linalg.norm(scaled.gradient) == pytest.approx(100)
    f, c = evaluate.unscaled(scaled.f, scaled.c)
    assert f == pytest.approx(plain.f)
    np.testing.assert_allclose(c, plain.c)
    # feasibility is decided in the user's units, the penalty function is scaled
    assert scaled.violation == pytest.approx(plain.violation)
    assert scaled.total_violation == pytest.approx(0.5 * abs(plain.c[0]) + plain.c[1] + 0.2 * plain.c[2])


def test_prescaling_leaves_short_gradients_alone() -> None:
    evaluate = evaluator(curved)
    evaluate.choose_scales(evaluate(POINT), threshold=1e3)
    assert evaluate.scales is None


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))

    def forward(self) -> Tensor:
        return (self.weight**3).sum()


def test_a_module_remembers_earlier_points() -> None:
    evaluate = evaluator(lambda m: (m(), m.weight[:1] ** 2, None), Model())
    first = evaluate(np.array([1.0, 2.0, 3.0]))
    second = evaluate(np.array([4.0, 5.0, 6.0]))
    np.testing.assert_allclose(first.gradient, [3, 12, 27])
    np.testing.assert_allclose(first.jacobian, [[2, 0, 0]])
    np.testing.assert_allclose(second.gradient, [48, 75, 108])
    third = evaluate(np.array([1.0, 1.0, 1.0]))
    np.testing.assert_allclose(first.penalty_gradient(2.0), [3 + 4, 12, 27])
    np.testing.assert_allclose(third.penalty_gradient(2.0), [3 + 4, 3, 3])
    assert evaluate.variables.module is not None


def test_a_module_and_a_tensor_take_the_same_way() -> None:
    def value(w: Tensor) -> Tensor:
        return (w[0] - 1).abs() + 3 * (w[1] - w[0] ** 2).abs() + w[2] ** 2

    module = minimize(lambda m: (value(m.weight), m.weight[0] - 0.5, None), Model())
    tensor = minimize(lambda x: (value(x), x[0] - 0.5, None), torch.ones(3, dtype=torch.float64))
    assert module.success and module.f == tensor.f
    assert torch.equal(module.x.weight.detach(), tensor.x)


def test_gradients_are_computed_once_and_only_on_demand() -> None:
    evaluate = evaluator(curved)
    trial = evaluate(POINT)
    assert (evaluate.costs.values, evaluate.costs.gradients, evaluate.costs.jacobians) == (1, 0, 0)
    trial.penalty_gradient(1.0)
    assert (evaluate.costs.gradients, evaluate.costs.jacobians) == (0, 1)  # they are few
    assert trial.gradient is trial.gradient and trial.jacobian is trial.jacobian
    trial.penalty_gradient(1.0)
    assert (evaluate.costs.values, evaluate.costs.gradients, evaluate.costs.jacobians) == (1, 0, 1)
    trial.release()
    assert trial.gradient.shape == (3,)


def test_values_that_are_not_finite() -> None:
    evaluate = evaluator(lambda x: (torch.log(x[0]), x[1:] / x[0], None))
    outside, border = evaluate(np.array([-1.0, 1.0, 1.0])), evaluate(np.array([0.0, 1.0, 1.0]))
    assert not outside.finite and not border.finite
    assert outside.penalty(1.0) == border.penalty(1.0) == np.inf


def test_gradients_that_are_not_finite() -> None:
    trial = evaluator(lambda x: torch.sqrt(x[0]))(np.zeros(3))
    assert trial.finite and not trial.differentiable


def test_an_error_of_the_function_is_kept() -> None:
    error = KeyError("mine")

    def function(x: Tensor) -> Tensor:
        raise error

    with pytest.raises(FunctionFailed) as caught:
        evaluator(function)(POINT)
    assert caught.value.original is error


def test_an_error_while_differentiating_is_one_of_the_function() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, upstream: Tensor) -> Tensor:
            raise ArithmeticError("no slope")

    trial = evaluator(Broken.apply)(POINT)
    with pytest.raises(FunctionFailed, match="no slope"):
        _ = trial.gradient
    with pytest.raises(ArithmeticError, match="no slope"):
        minimize(Broken.apply, START)


def test_a_function_that_switches_gradients_off_elsewhere() -> None:
    with torch.no_grad():
        trial = evaluator(curved)(POINT)
    assert np.abs(trial.gradient).max() > 0


def test_satisfied_constraints_are_not_differentiated() -> None:
    """At 0 the gradient of the root is infinite; times its weight 0 that would not be a number."""
    problem = Problem(objective=lambda x: (x**2).sum(), inequalities=lambda x: torch.sqrt(x[0]) - 1.0)
    evaluator = Evaluator(problem, Variables(torch.tensor([0.0, 1.0], dtype=torch.float64)))
    np.testing.assert_array_equal(evaluator(np.array([0.0, 1.0])).penalty_gradient(1.0), [0.0, 2.0])


@pytest.mark.parametrize("listed", [False, True])
def test_constraints_in_memory_that_is_used_again(listed: bool) -> None:
    buffer = torch.zeros(1, dtype=torch.float64)

    def function(x: torch.Tensor) -> object:
        with torch.no_grad():
            buffer.copy_(x.detach()[:1])
        return (x**2).sum(), [buffer] if listed else buffer, None

    evaluator = Evaluator(Problem(function), Variables(torch.tensor([1.0, 1.0], dtype=torch.float64)))
    evaluator(np.array([0.5, 1.0]))
    first = evaluator(np.array([1.0, 1.0]))
    evaluator(np.array([-4.0, 1.0]))
    assert first.c.tolist() == [1.0]


class _ChangesWhatItGets(torch.autograd.Function):
    """Three times x, by a backward that works in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 3 * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.mul_(3)


class _LooksAtNumbers(torch.autograd.Function):
    """Two times x, by a backward that cannot be batched."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * gradient if gradient.abs().max().item() >= 0 else gradient


@pytest.mark.parametrize("count", [2, 5])
def test_a_batch_that_fails_leaves_nothing_behind(count: int) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        return x.sum(), _ChangesWhatItGets.apply(_LooksAtNumbers.apply(x)), None  # type: ignore[no-untyped-call]

    evaluator = Evaluator(Problem(function), Variables(torch.ones(count, dtype=torch.float64)))
    for _ in range(2):
        assert evaluator(np.ones(count)).jacobian.tolist() == (6 * np.eye(count)).tolist()
    assert evaluator.costs.one_by_one


def test_an_objective_of_integers() -> None:
    result = minimize(lambda x: (torch.tensor(5), (x**2).sum() - 1.0, None), torch.full((2,), 3.0).double(), memory=3)
    assert result.status is Status.STATIONARY
    assert type(result.f) is float and result.f == 5.0
    assert result.violation <= 1e-6


@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0)], ids=["", "bounds"])
def test_a_constant_constraint_beside_one_that_is_not(bounds: tuple[float, float] | None) -> None:
    more = {} if bounds is None else {"bounds": bounds}
    result = minimize(lambda x: ((x**2).sum(), torch.tensor(-1.0), x.sum() - 1.0), torch.zeros(2).double(), **more)
    assert result.status is Status.STATIONARY
    torch.testing.assert_close(result.x, torch.full((2,), 0.5).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("the inequality constraint", lambda x: ((x**2).sum(), x.detach()[0], x.sum() - 1.0)),
        ("the equality constraint", lambda x: ((x**2).sum(), torch.tensor(-1.0), x.detach()[:1] - 1.0)),
        ("the inequality constraint", lambda x: (torch.tensor(1.0), x.detach()[0] - 1.0, None)),
        ("the equality constraint", lambda x: (1.0, x[0], x.detach()[:1] - 1.0)),
        ("the objective", lambda x: ((x.detach() ** 2).sum(), torch.tensor(-1.0), None)),
    ],
)
def test_what_is_cut_off_is_found_beside_constants(name: str, function: Any) -> None:
    with pytest.raises(ProblemError, match=f"{name} changes with x but has no gradient"):
        minimize(function, torch.zeros(2).double())


def test_a_constraint_with_the_other_sign_in_memory() -> None:
    def function(x: torch.Tensor) -> object:
        negative = torch.complex(x, x).conj().imag
        assert negative.is_neg()
        return ((x + 1.0) ** 2).sum(), negative, None  # −x ≤ 0

    result = minimize(function, torch.full((2,), 3.0).double(), compile="never")
    assert result.status is Status.STATIONARY
    torch.testing.assert_close(result.x, torch.zeros(2).double(), atol=1e-6, rtol=0)
