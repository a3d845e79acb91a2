"""Many more constraints than variables: proven answers, without ever forming a matrix of their number squared."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Options, Result, Status, minimize
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.engine import batched_backward
from nonsmooth.hessian import FullMemory
from nonsmooth.kinks.bundle import own_cut
from nonsmooth.qp import OutOfTime, Product, Program, QPSolver
from nonsmooth.qp.active_set import active_set
from nonsmooth.qp.projected_newton import projected_newton
from nonsmooth.step.model import Model
from nonsmooth.step.steering import steer

SIZE, MANY = 20, 400
Values = tuple[Tensor, Tensor, Tensor | None]
Function = Callable[[Tensor], Values]


def draw(seed: int) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def balls() -> tuple[Function, Tensor]:
    random = draw(1)
    centers, aim = random(MANY, SIZE), random(SIZE)
    radii = torch.linalg.vector_norm(centers, dim=1) * (
        1.0 + 0.2 * torch.rand(MANY, generator=torch.Generator().manual_seed(2))
    )
    return lambda x: ((x - aim).abs().sum(), ((x - centers) ** 2).sum(1) - radii**2, None), 0.01 * random(SIZE)


def polytope() -> tuple[Function, Tensor]:
    random = draw(3)
    rows, limits = random(MANY, SIZE) / SIZE**0.5, 0.2 + random(MANY).abs()
    pieces, heights = random(30, SIZE), random(30)
    return lambda x: ((pieces @ x + heights).max() + 0.1 * x @ x, rows @ x - limits, None), random(SIZE)


def from_far_outside() -> tuple[Function, Tensor]:
    function, start = polytope()
    return function, 100.0 * start


def holes() -> tuple[Function, Tensor]:
    """Outside many balls and inside one: not convex."""
    random = draw(4)
    centers, aim = 1.5 * random(MANY, SIZE), 2.0 * random(SIZE)
    radii = 0.4 * torch.linalg.vector_norm(centers, dim=1)

    def function(x: Tensor) -> Values:
        outside = radii**2 - ((x - centers) ** 2).sum(1)
        return (x - aim).abs().sum(), torch.cat([outside, (x @ x - SIZE).reshape(1)]), None

    return function, 0.1 * random(SIZE)


def one_vertex() -> tuple[Function, Tensor]:
    """All constraints are active at the solution, twenty times as many as there are variables."""
    random = draw(5)
    rows, vertex = random(MANY, SIZE) / SIZE**0.5, random(SIZE)
    slope = -(random(MANY).abs() / MANY) @ rows * 10.0
    return lambda x: (slope @ x + 0.1 * (x - vertex).abs().sum(), rows @ (x - vertex), None), random(SIZE)


PROBLEMS = {"balls": balls, "polytope": polytope, "far": from_far_outside, "holes": holes, "vertex": one_vertex}


def solved(name: str) -> Result:
    function, start = PROBLEMS[name]()
    result = minimize(function, start, max_seconds=120)
    assert result.success and result.violation <= 1e-6
    assert result.check().stationary
    return result


@pytest.mark.parametrize("name", PROBLEMS)
def test_answers_are_proven_without_forming_a_matrix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Product, "dense", lambda self: pytest.fail("the matrix was formed"))
    result = solved(name)
    assert result.programs.failed == result.programs.second_solver == 0
    assert not result.costs.once_only and not result.costs.one_by_one


def test_without_any_package(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = solved("polytope").f
    monkeypatch.setattr("nonsmooth.qp.solver.is_installed", lambda name: False)
    assert solved("polytope").f == pytest.approx(expected, rel=1e-6)


def test_as_many_directions_as_variables_are_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    function, start = balls()
    widest = 0

    def counted(output: Tensor, weights: Tensor, leaves: Any) -> Any:
        nonlocal widest
        widest = max(widest, len(weights))
        return batched_backward(output, weights, leaves)

    monkeypatch.setattr("nonsmooth.evaluate.columns.batched_backward", counted)
    minimize(function, start, max_iterations=3)
    assert widest == SIZE


@pytest.mark.parametrize("equalities", [0, 3])
def test_a_step_does_not_depend_on_how_the_matrix_is_held(equalities: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(equalities)
    rows = generator.standard_normal((150, 8))
    at = Trial.stored(np.zeros(8), 1.0, generator.standard_normal(150), equalities, generator.standard_normal(8), rows)
    root = generator.standard_normal((8, 8))
    metric = FullMemory(8, root @ root.T + 0.1 * np.eye(8))
    steps = []
    for product in (True, False):
        monkeypatch.setattr("nonsmooth.hessian.quadratic_form.MAX_FORMED_ROWS", 10 if product else 1000)
        model = Model(at, own_cut(at), None, metric, QPSolver())
        steps.append((steer(model, at, 1.0, Options()), model.reference(10.0), model.step(50.0)))
    (first, reference, large), (same, same_reference, same_large) = steps
    np.testing.assert_allclose(first.direction, same.direction, atol=1e-9)
    np.testing.assert_allclose(large.direction, same_large.direction, atol=1e-9)
    assert first.weight == same.weight and reference == pytest.approx(same_reference, rel=1e-9)


def orthogonal(size: int) -> tuple[Any, torch.Tensor]:
    """The nearest orthogonal matrix: size·(size + 1)/2 equalities."""
    target = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows, columns = torch.triu_indices(size, size)

    def function(x: torch.Tensor) -> Any:
        return (x - target).abs().mean(), None, (x.T @ x - torch.eye(size, dtype=torch.float64))[rows, columns]

    return function, target.clone()


def test_the_time_limit_holds_inside_large_programs() -> None:
    """Those before the first step take most of the time of a run that ends there, which a shorter limit interrupts."""
    function, start = orthogonal(40)

    def timed(**options: Any) -> tuple[Result, float]:
        began = perf_counter()
        return minimize(function, start, compile="never", **options), perf_counter() - began

    parts: list[float] = []
    while not parts or (min(parts) >= 0.8 and len(parts) < 5):  # the machine may be busy
        whole = timed(max_iterations=0)[1]
        result, taken = timed(max_seconds=0.4 * whole)
        assert result.status is Status.TIME_LIMIT
        parts.append(taken / whole)
    assert min(parts) < 0.8  # an evaluation with its Jacobian is not interrupted
    assert result.hint.startswith("820 constraints take most of the time") and result.hint in str(result)


@pytest.mark.parametrize("rank", [150, 60, 20])
@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_large_programs_are_found_together(seed: int, rank: int, spread: float) -> None:
    """Also where the matrix is singular, and the lengths of its rows differ."""
    generator = np.random.default_rng(seed)
    root = 10.0 ** generator.uniform(-spread, 0.0, (120, 1)) * generator.standard_normal((120, rank))
    start = np.clip(generator.standard_normal(120), -1.0, 1.0)
    for matrix in (root @ root.T, Product(root, root)):
        program = Program(matrix, root @ generator.standard_normal(rank) * 60.0, -np.ones(120), np.ones(120))
        found = projected_newton(program, start)
        assert (np.abs(found) <= 1.0).all() and program.value(found) <= program.value(start)
        finished = active_set(program, found, rounds=60)
        assert program.residual(finished) < 1e-9
        assert program.value(finished) == pytest.approx(program.value(active_set(program, start, rounds=3000)), rel=1e-9)


def test_a_deadline_ends_a_program() -> None:
    program = Program(np.eye(3), -np.ones(3), np.zeros(3), np.ones(3))
    with pytest.raises(OutOfTime):
        active_set(program, np.zeros(3), rounds=10, deadline=0.0)
    with pytest.raises(OutOfTime):
        projected_newton(program, np.zeros(3), deadline=0.0)
