"""Euclidean norms of few entries: read as balls of slopes, followed by runs, and used by certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_kink_reading import one_sided_derivative, reading_of
from torch import Tensor

from nonsmooth import Problem, State, Status, minimize
from nonsmooth.structure import Reading
from nonsmooth.structure.blocks import MAX_NORM_ENTRIES
from nonsmooth.structure.kink_reading import MAX_SOURCES, MAX_TOTAL_NORM_ENTRIES
from nonsmooth.terms import Abs, Norm2

norm = torch.linalg.vector_norm
Function = Callable[[Tensor], Any]


def draw(seed: int) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)


def group_lasso(n: int = 40, weight: float = 25.0) -> Function:
    normal = draw(1)
    a, truth = normal(2 * n, n), normal(n // 4, 4) * (normal(n // 4, 1) > 0.5)
    b = a @ truth.reshape(-1) + 0.1 * normal(2 * n)
    return lambda x: 0.5 * (a @ x - b).square().sum() + weight * norm(x.reshape(-1, 4), dim=1).sum()


def sparse_group_lasso(x: Tensor) -> Tensor:
    return group_lasso(weight=15.0)(x) + 5.0 * x.abs().sum()


def distances(heaviest: float = 1.0) -> Function:
    anchors, weights = draw(2)(20, 5), torch.ones(20, dtype=torch.float64)
    weights[0] = heaviest
    return lambda x: (weights * norm(x - anchors, dim=1)).sum()


def isotropic_variation(size: int) -> Function:
    picture = torch.zeros(size, size, dtype=torch.float64)
    picture[2:-2, 2:-2] = 1.0
    picture += 0.2 * draw(3)(size, size)

    def function(x: Tensor) -> Tensor:
        down = torch.nn.functional.pad(x.diff(dim=0), (0, 0, 0, 1))
        right = torch.nn.functional.pad(x.diff(dim=1), (0, 1))
        return 0.5 * (x - picture).square().sum() + 0.2 * norm(torch.stack([down, right]), dim=0).sum()

    return function


RUNS: dict[str, tuple[Function, tuple[int, ...], int, float]] = {
    # the function, the shape of x, the evaluations that are allowed, and how many times fewer they must be
    "group lasso": (group_lasso(), (40,), 100, 3.0),
    "sparse group lasso": (sparse_group_lasso, (40,), 40, 5.0),
    "distances": (distances(), (5,), 20, 0.8),
    "distances, least at an anchor": (distances(15.0), (5,), 15, 2.0),
    "isotropic variation 6": (isotropic_variation(6), (6, 6), 40, 10.0),
    "isotropic variation 8": (isotropic_variation(8), (8, 8), 40, 10.0),
}


def start(*shape: int) -> Tensor:
    return draw(1)(*shape)


@pytest.mark.parametrize("name", RUNS)
def test_norms_that_vanish_at_the_answer_take_few_evaluations(name: str) -> None:
    function, shape, most, ratio = RUNS[name]
    stepped = minimize(function, start(*shape), structure="off", scaling="none")
    result = minimize(function, start(*shape), scaling="none")
    assert result.status is Status.STATIONARY and result.evaluations <= most
    assert ratio * result.evaluations <= stepped.evaluations
    assert result.f <= stepped.f + 1e-8 * (1 + abs(stepped.f)) and stepped.f <= result.f + 1e-5 * (1 + abs(result.f))
    assert result.structure.followed and result.check().stationary
    if name != "distances":
        assert result.structure.active > 0
    if not name.endswith("lasso"):  # in other units, those may have to be certified by gradients around the answer
        assert name == "distances" or "read from the program" in result.certificate.reason


def test_groups_of_zeros_are_exactly_zero() -> None:
    result = minimize(group_lasso(), start(40))
    zeros = (result.x.reshape(-1, 4) == 0).all(dim=1)
    assert int(zeros.sum()) == result.structure.exact == result.structure.active > 3
    assert int((result.x == 0).sum()) == 4 * int(zeros.sum())
    (source,) = result.structure.sources
    assert (source.kind, source.terms) == ("norm", 10)


def test_constant_pieces_of_a_picture_are_exactly_constant() -> None:
    result = minimize(isotropic_variation(8), start(8, 8))
    assert result.structure.exact == result.structure.active > 10


@pytest.mark.parametrize("name", ["group lasso", "isotropic variation 8"])
def test_a_resumed_run_takes_the_same_steps(name: str, tmp_path: Path) -> None:
    function, shape, _, _ = RUNS[name]
    path = tmp_path / "run.state"
    whole = minimize(function, start(*shape), callback=lambda state: state.save(path) if state.iteration == 3 else None)
    resumed = minimize(function, start(*shape), state=State.load(path))
    assert whole.iterations > 3 and whole.structure.followed
    assert (resumed.iterations, resumed.evaluations, resumed.f) == (whole.iterations, whole.evaluations, whole.f)
    np.testing.assert_array_equal(np.asarray(resumed.x), np.asarray(whole.x))


SHAPES: dict[str, tuple[Function, int, int]] = {
    # a function of six variables, the entries of its norms, and how many norms there are
    "all of x": (lambda x: x.norm(), 6, 1),
    "rows": (lambda x: norm(x.reshape(3, 2), dim=1).sum(), 6, 3),
    "columns, kept": (lambda x: (norm(x.reshape(3, 2), dim=0, keepdim=True) * torch.tensor([1.0, 2.0])).sum(), 6, 2),
    "two dimensions": (lambda x: 3.0 * norm(x.reshape(1, 3, 2), dim=(1, 2)).sum(), 6, 1),
    "torch.norm": (lambda x: torch.norm(x.reshape(2, 3), dim=-1) @ torch.tensor([1.0, 3.0], dtype=torch.float64), 6, 2),
    "one number": (lambda x: norm(x[0] - x[1]), 1, 1),
    "weights below 0": (lambda x: -2.0 * norm(x[:3]) + norm(x[3:]), 6, 2),
    "with others": (lambda x: norm(x[:3]) + (x - 1).abs().sum() + x.max(), 14, 1),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("point", ["zero", "partly zero", "near zero", "elsewhere"])
def test_norms_are_read(name: str, point: str) -> None:
    function, terms, balls = SHAPES[name]
    x = torch.tensor([0.5, -1.0, 2.0, 0.25, 1.5, -0.75], dtype=torch.float64)
    x = x * {"zero": 0.0, "partly zero": (x > 0.3).double(), "near zero": 1e-14, "elsewhere": 1.0}[point]
    reading = reading_of(function, x)
    assert len(reading.terms) == terms and len(np.unique(reading.terms.balls[reading.terms.in_ball])) == balls
    for direction in np.random.default_rng(0).standard_normal((30, 6)):
        true = one_sided_derivative(function, x, torch.from_numpy(direction))
        assert reading.slope(direction, tolerance=1e-12) == pytest.approx(true, rel=1e-4, abs=1e-4)
        moved = float(function(x + 1e-6 * torch.from_numpy(direction)) - function(x))
        assert reading.change(1e-6 * direction) == pytest.approx(moved, abs=1e-10)
    if point == "elsewhere":
        there = torch.autograd.grad(function(x := x.requires_grad_()), x)[0]
        np.testing.assert_allclose(reading.gradient, there)


def test_shares_hold_a_ball_where_its_slopes_are_inside() -> None:
    terms = reading_of(lambda x: norm(x[:2]) + x[2:].abs().sum(), torch.zeros(4, dtype=torch.float64)).terms
    shares = np.array([0.5, 1.0, 0.3, 1.0])[np.argsort(~terms.in_ball, kind="stable").argsort()]
    on_sphere = np.where(terms.in_ball, shares, 0.5)
    assert not terms.between_slopes(on_sphere)[terms.in_ball].any() and terms.between_slopes(on_sphere)[~terms.in_ball].all()
    inside = np.where(terms.in_ball, 0.5 + 0.49 * np.sqrt(0.5), shares)
    assert terms.between_slopes(inside)[terms.in_ball].all() and terms.between_slopes(inside)[~terms.in_ball].sum() == 1
    assert not terms.between_slopes(np.full(4, np.nan)).any()


def test_norms_of_many_entries_hide_their_kinks() -> None:
    zero = torch.zeros(MAX_NORM_ENTRIES + 1, dtype=torch.float64)
    assert reading_of(norm, zero).hidden == ("norm of 0",) and not reading_of(norm, zero[1:]).hidden
    many = torch.zeros(MAX_TOTAL_NORM_ENTRIES // 2 + 1, 2, dtype=torch.float64)
    assert reading_of(lambda x: norm(x, dim=1).sum(), many).hidden == ("norm of 0",)
    assert not reading_of(lambda x: norm(x, dim=1).sum(), many[1:]).hidden
    assert not reading_of(lambda x: norm(x, dim=1).sum(), many + 1).hidden


def test_many_norms_leave_other_kinks_in_sight() -> None:
    anchors = draw(1)(MAX_SOURCES, 3)
    reading = reading_of(lambda x: sum((norm(x - anchor) for anchor in anchors), x.abs().sum()), start(3))
    assert reading.kinds == ("abs",) and not reading.hidden


def test_norms_in_constraints_stay_hidden() -> None:
    zero = torch.zeros(2, dtype=torch.float64)
    at_kink = minimize(lambda x: (x.abs().sum() + x @ x, norm(x).reshape(1) - 1, None), zero)
    assert at_kink.structure.unread == "norm of 0" and at_kink.success
    away = minimize(lambda x: ((x - 2).abs().sum() + x @ x, norm(x).reshape(1) - 1, None), start(2))
    assert away.structure.unread is None and away.success
    assert {source.constraint for source in away.structure.sources} == {False}


def test_a_norm_within_another() -> None:
    result = minimize(lambda x: norm(torch.stack([norm(x[:2]), x[2] - 1])) + 0.1 * (x[:2] - 1).square().sum(), start(3))
    assert result.success and result.f == pytest.approx(0.2, abs=1e-6)


def least_slope(function: Function, x: Tensor, seed: int) -> float:
    """The lowest of many one-sided derivatives in directions of length 1."""
    directions = draw(seed)(200, len(x))
    value = float(function(x))
    return min((float(function(x + 1e-5 * way / way.norm())) - value) / 1e-5 for way in directions)


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.exhaustive)], ids=["40", "400"])
def test_no_false_verdict_on_random_sums_of_norms(seeds: range) -> None:
    by_norms = 0
    for seed in seeds:
        normal, count = draw(seed), 1 + seed % 5
        n = 2 + seed % 7
        parts = [
            (normal(1 + (seed + k) % 4, n), normal(1 + (seed + k) % 4) * (k % 2), abs(float(normal())) + 0.1)
            for k in range(count)
        ]
        root, slope = normal(n, n) / n, 0.5 * normal(n)

        def function(x: Tensor, parts: Any = parts, root: Tensor = root, slope: Tensor = slope) -> Tensor:
            smooth = 0.5 * (root @ x).square().sum() + 1e-3 * x @ x + slope @ x
            return sum((weight * norm(a @ x - b) for a, b, weight in parts), smooth)

        result, stepped = minimize(function, normal(n)), minimize(function, normal(n), structure="off")
        assert result.success and result.check().stationary, seed
        assert result.f <= stepped.f + 1e-6 * (1 + abs(stepped.f)), seed
        assert least_slope(function, torch.as_tensor(result.x), seed) > -1e-4, seed
        by_norms += "read from the program" in result.certificate.reason
    assert by_norms > 0.2 * len(seeds)


def test_downward_norms_are_not_certified_by_sight() -> None:
    result = minimize(lambda x: -norm(x) + x @ x, torch.full((2,), 1e-3, dtype=torch.float64))
    assert result.success and result.f == pytest.approx(-0.25)
    here = minimize(lambda x: -norm(x) + x @ x, torch.zeros(2, dtype=torch.float64), max_iterations=0)
    assert not here.success and not here.check().stationary
    away = minimize(lambda x: -norm(x) + x @ x, torch.zeros(2, dtype=torch.float64))
    assert away.f == pytest.approx(-0.25)


def test_terms_that_are_norms_are_followed() -> None:
    def smooth(x: Tensor) -> Tensor:
        return 1e-2 * (x - 1).square().sum()

    problem = Problem(smooth=smooth, terms=[Norm2(lambda x: x), Abs(lambda x: x - 1, weight=0.1)])
    for x0 in (torch.zeros(3, dtype=torch.float64), start(3)):
        result = minimize(problem, x0)
        assert result.success and result.structure.followed and bool((result.x == 0).all())
        assert [(source.kind, source.terms, source.exact) for source in result.structure.sources] == [
            ("norm", 1, 1),
            ("abs", 3, 0),
        ]


def test_slopes_outside_the_ball_prove_nothing() -> None:
    """Within the box around the ball, slopes of 0.9 each cancel the gradient; within the ball none do."""

    def function(x: Tensor) -> Tensor:
        return norm(x) - 0.9 * x.sum() + 1e-3 * x @ x

    here = minimize(function, torch.zeros(2, dtype=torch.float64), max_iterations=0)
    assert not here.success and not here.check().stationary
    assert isinstance(reading_of(function, torch.zeros(2, dtype=torch.float64)), Reading)
    assert minimize(function, torch.zeros(2, dtype=torch.float64)).f < -1.0
