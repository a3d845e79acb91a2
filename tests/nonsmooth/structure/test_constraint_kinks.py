"""Kinks of constraints that can be seen: the model of them is right, runs go by them, and verdicts are true."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nonsmooth import Result, State, Status, minimize
from nonsmooth.structure import Arguments, ConstraintReading, read_constraints
from nonsmooth.variables import Variables
from programs_with_kinks import Program

Function = Callable[[Tensor], Any]


def read(function: Function, point: Tensor) -> ConstraintReading | str | None:
    variables = Variables(point)
    x, leaves = variables.place(variables.start)
    with Arguments() as noted:
        c = function(x)
    return read_constraints(c, leaves, variables, noted)


def seen(function: Function, point: Tensor) -> ConstraintReading:
    reading = read(function, point)
    assert isinstance(reading, ConstraintReading)
    return reading


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_pieces_are_those_to_which_a_step_leads() -> None:
    reading = seen(lambda x: torch.stack([x.abs().sum() - 1, x[0] - x[1]]), tensor(2.0, 0.5))
    pieces = reading.pieces(np.array([-3.0, 0.0]))
    np.testing.assert_allclose(pieces.values_after_step, [0.5, -1.5])
    np.testing.assert_allclose(pieces.values, [-2.5, 1.5])  # −x₀ + x₁ − 1 at x
    np.testing.assert_allclose(reading.rows(np.array([0]), pieces.slopes[:1]), [[-1.0, 1.0]])


def test_a_maximum_of_a_product() -> None:
    reading = seen(lambda x: (3 * torch.stack([x[0], 2 * x[1], -x[0]]).max() - 1).reshape(1), tensor(1.0, 0.4))
    pieces = reading.pieces(np.array([0.0, 0.6]))
    np.testing.assert_allclose(pieces.values_after_step, [5.0])
    np.testing.assert_allclose(reading.rows(np.array([0]), pieces.slopes), [[0.0, 6.0]])


def test_shares_of_several_pieces_add_up() -> None:
    reading = seen(lambda x: (torch.stack([x[0], 2 * x[1], -x[0]]).max() + x.abs().sum()).reshape(1), tensor(0.0, 0.0))
    first, second = (reading.pieces(np.array(way)) for way in ([1.0, 0.2], [-1.0, 2.0]))
    shares = 0.25 * reading.shares(first.slopes) + 1.5 * reading.shares(second.slopes)
    rows = 0.25 * reading.rows(np.array([0]), first.slopes) + 1.5 * reading.rows(np.array([0]), second.slopes)
    np.testing.assert_allclose(reading.weighted_gradient(np.array([1.75]), shares), rows[0])


def test_kinks_that_bend_downwards_are_on_the_side_that_is_asked_for() -> None:
    reading = seen(lambda x: (1 - x.abs().sum()).reshape(1), tensor(0.5, -0.25))
    step = np.array([-1.0, 0.0])
    assert not reading.convex.any()
    np.testing.assert_allclose(reading.pieces(step).values_after_step, [0.25])
    # A concave term lies below its tangents.
    np.testing.assert_allclose(reading.pieces(step, reading.slopes_at_x).values_after_step, [1.25])


@pytest.mark.parametrize("seed", [*range(60), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(60, 1000))])
def test_models_of_random_constraints_are_right(seed: int) -> None:
    """Along 20 random rays they agree with the constraints to first order."""
    random = np.random.default_rng(seed)
    programs = [Program(1000 * seed + number) for number in range(1 + seed % 3)]
    point = programs[0].point

    def function(x: Tensor) -> Tensor:
        return torch.stack([program(x) for program in programs])

    reading = read(function, point)
    if not isinstance(reading, ConstraintReading):
        assert reading is None or reading
        return
    if not reading.finite or reading.is_nested(reading.terms.at_kink(1e-7)):
        return
    here, step = function(point), 1e-6
    for _ in range(20):
        way = random.standard_normal(len(point))
        there = function(point + step * torch.from_numpy(way))
        change = (there - here).detach().numpy()
        modeled = reading.pieces(step * way).values_after_step - reading.values
        close = np.abs(modeled - change) <= 1e-3 * step * (1 + np.abs(reading.jacobian).sum(axis=1)) + 1e-9
        assert close.all(), (reading.kinds, modeled, change)


REASONS: dict[str, Function] = {
    "sort": lambda x: x.sort().values - 1,
    "item": lambda x: (x.abs().sum() if float(x.detach()[0]) > 0 else -x.sum()).reshape(1),
    "norm": lambda x: (x - x.detach()).norm().reshape(1) + x.abs(),
}


@pytest.mark.parametrize("name", REASONS)
def test_what_cannot_be_seen_is_told(name: str) -> None:
    found = read(REASONS[name], tensor(1.0, 2.0))
    assert isinstance(found, str) and found


def test_smooth_constraints_have_no_reading() -> None:
    assert read(lambda x: x**2 - 1, tensor(1.0, 2.0)) is None


class Draws:
    """Random data of one problem."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator, dtype=torch.float64)


def bounded_sum(n: int, draw: Draws) -> tuple[Function, Tensor]:
    a, b = draw(2 * n, n), draw(2 * n)
    return lambda x: ((a @ x - b).square().sum(), x.abs().sum() - 0.4, None), draw(n)


def bounded_maximum(n: int, draw: Draws) -> tuple[Function, Tensor]:
    roots, slopes, target = draw(6, n, n) / n**0.5, draw(6, n), 3 * draw(n)
    return (
        lambda x: ((x - target).square().sum(), (0.5 * (roots @ x).square().sum(1) + slopes @ x).amax() - 1.0, None),
        torch.zeros(n, dtype=torch.float64),
    )


def bounded_variation(n: int, draw: Draws) -> tuple[Function, Tensor]:
    signal = draw(n)
    return lambda x: ((x - signal).square().sum(), (x[1:] - x[:-1]).abs().sum() - 0.5, None), torch.zeros_like(signal)


def network(n: int, draw: Draws) -> tuple[Function, Tensor]:
    first, second, last = draw(12, n), draw(12), draw(12).abs()
    target = 2 * draw(n)
    return lambda x: ((x - target).square().sum(), last @ torch.relu(first @ x + second) - 4.0, None), draw(n) * 0.1


def kinks_everywhere(n: int, draw: Draws) -> tuple[Function, Tensor]:
    a, b, rows = draw(2 * n, n), draw(2 * n), draw(3, n)
    return (
        lambda x: ((a @ x - b).abs().sum(), torch.cat([(rows @ x).abs() - 0.2, (x.abs().sum() - 1).reshape(1)]), None),
        0.1 * draw(n),
    )


CONVEX: dict[str, Callable[[int, Draws], tuple[Function, Tensor]]] = {
    "bounded sum": bounded_sum,
    "bounded maximum": bounded_maximum,
    "bounded variation": bounded_variation,
    "network": network,
    "kinks everywhere": kinks_everywhere,
}


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("n", [5, 12])
def test_fewer_evaluations_to_the_same_proven_answer(name: str, n: int) -> None:
    function, start = CONVEX[name](n, Draws(n))
    result = minimize(function, start, compile="never")
    stepped = minimize(function, start, compile="never", structure="off")
    assert result.status is stepped.status is Status.STATIONARY
    assert result.f == pytest.approx(stepped.f, abs=1e-5 * (1 + abs(stepped.f)))
    assert result.check().stationary
    assert result.evaluations <= 0.7 * stepped.evaluations


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(20, 300))])
def test_no_verdict_on_random_constraints_is_false(seed: int) -> None:
    """Programs that bend both ways, under a convex objective: beside a proven answer nothing is better to first order."""
    program, other = Program(7000 + seed, growth=1.0), Program(9000 + seed)
    target = 2 * program.point
    level = float(program(target)) - 1.0

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        return (x - target).square().sum() + (x - 1).abs().sum(), torch.stack([program(x) - level, other(x) - 50.0]), None

    result = minimize(function, program.point, compile="never", max_evaluations=2000)
    if result.status is not Status.STATIONARY:
        return
    random = torch.Generator().manual_seed(seed)
    x, f = torch.as_tensor(result.x), result.f
    for radius in (1e-3, 1e-4, 1e-5):
        for _ in range(100):
            way = torch.randn(x.shape, generator=random, dtype=torch.float64)
            value, inequalities, _ = function(x + radius * way / way.norm())
            gained = f - float(value) - 1e2 * float(inequalities.clamp(min=0).sum())
            assert gained <= (1e-3 * radius + 10 * radius**2) * (1 + abs(f)), (radius, gained, result.certificate)


def test_equalities_with_kinks() -> None:
    draw = Draws(3)
    a, b = draw(20, 10), draw(20)

    def function(x: Tensor) -> tuple[Tensor, None, Tensor]:
        return (a @ x - b).square().sum(), None, x.abs().sum() - 1.0

    result = minimize(function, draw(10), compile="never")
    assert result.status is Status.STATIONARY and result.check().stationary
    assert "kinks read from the program" in result.certificate.reason
    assert abs(float(torch.as_tensor(result.x).abs().sum()) - 1) < 1e-6


def test_soft_bounds_stand_beside_them() -> None:
    function, start = bounded_sum(6, Draws(1))
    hard = minimize(function, start.clamp(0, 1), bounds=(0.0, 1.0), compile="never")
    soft = minimize(function, start.clamp(0, 1), bounds=(0.0, 1.0), soft_bounds=True, compile="never")
    assert hard.status is soft.status is Status.STATIONARY
    assert hard.f == pytest.approx(soft.f, abs=1e-6)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(Draws(2)(6))


def test_a_module_under_a_constraint() -> None:
    module, target = Layer(), Draws(4)(6)

    def function(module: Layer) -> tuple[Tensor, Tensor, None]:
        return (module.weight - target).square().sum(), module.weight.abs().sum() - 1.0, None

    result = minimize(function, module, compile="never")
    plain = minimize(lambda w: ((w - target).square().sum(), w.abs().sum() - 1.0, None), Draws(2)(6), compile="never")
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(plain.f, abs=1e-8)


def test_a_resumed_run_takes_the_same_steps(tmp_path: Path) -> None:
    function, start = bounded_maximum(10, Draws(5))
    path = tmp_path / "run.state"

    def save(state: State) -> None:
        if state.iteration == 6:
            state.save(path)

    whole = minimize(function, start, compile="never", callback=save)
    resumed = minimize(function, start, compile="never", state=State.load(path))
    np.testing.assert_array_equal(resumed.history.f, whole.history.f)
    assert resumed.evaluations == whole.evaluations


def on_a_ball(x: Tensor) -> tuple[Tensor, Tensor, None]:
    return (x - 1).square().sum(), x.abs().sum() - 1.0, None


def test_a_pickled_result_is_checked_by_them() -> None:
    result = minimize(on_a_ball, tensor(0.3, -0.2, 0.1), compile="never")
    copied: Result = pickle.loads(pickle.dumps(result))
    assert result.status is Status.STATIONARY
    assert copied.check() == result.certificate
