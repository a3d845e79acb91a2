"""The problem set is what it says: values, solutions, shapes, types and gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from problems import ALL, CONSTRAINED, FAMILIES, NEGATIVE, PUBLISHED, SMOOTH, UNCONSTRAINED, Case, Published, build, lifted

CASES = {**ALL, **{f"negative-{name}": case for name, case in NEGATIVE.items()}}
MINIMAX = {name: case for name, case in ALL.items() if case.pieces is not None}

STARTED = {name: case for name, case in CASES.items() if case.start_value is not None}
SOLVED = {name: case for name, case in CASES.items() if case.solution is not None}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_published = pytest.mark.parametrize("name", PUBLISHED)


def sizes(case: Case, x: Tensor) -> tuple[int, int]:
    value, inequality, equality = case.function(x)
    assert value.shape == ()
    for part in (inequality, equality):
        assert part is None or (part.dim() == 1 and part.dtype == x.dtype and part.device == x.device)
    assert value.dtype == x.dtype
    return 0 if inequality is None else inequality.numel(), 0 if equality is None else equality.numel()


@every_case
def test_shapes_are_as_declared(case: Case) -> None:
    x = case.initial()
    assert x.shape == (case.n,)
    assert x.dtype == torch.float64
    assert sizes(case, x) == (case.inequalities, case.equalities)
    assert sizes(case, x.float()) == (case.inequalities, case.equalities)


@every_case
def test_single_precision_gives_the_same_value(case: Case) -> None:
    x = case.initial()
    value = case.objective(x)
    assert torch.isfinite(value)
    torch.testing.assert_close(case.objective(x.float()).double(), value, rtol=1e-4, atol=1e-4)


@every_case
def test_the_start_is_new_every_time(case: Case) -> None:
    x = case.initial()
    expected = x.clone()
    x.fill_(7.0)
    assert torch.equal(case.initial(), expected)


@every_case
def test_everything_is_on_the_device_of_x(case: Case) -> None:
    """A constant left on the CPU could not be combined with a tensor on another device, of which `meta` is one."""
    x = case.initial(device="meta")
    assert sizes(case, x) == (case.inequalities, case.equalities)


@pytest.mark.parametrize("case", STARTED.values(), ids=STARTED)
def test_value_at_the_start(case: Case) -> None:
    assert float(case.objective(case.initial())) == pytest.approx(case.start_value, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("case", SOLVED.values(), ids=SOLVED)
def test_solution_is_feasible_and_has_the_optimum(case: Case) -> None:
    assert case.solution is not None
    assert len(case.solution) == case.n
    x = case.answer()
    assert float(case.objective(x)) == pytest.approx(case.optimum, rel=1e-12, abs=1e-12)
    assert case.violation(x) < 1e-9


@every_case
def test_gradients_are_finite_at_the_start(case: Case) -> None:
    x = case.initial().requires_grad_()
    value, inequality, equality = case.function(x)
    for part in (value, inequality, equality):
        if part is not None:
            (gradient,) = torch.autograd.grad(part.sum(), x, retain_graph=True)
            assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("case", MINIMAX.values(), ids=MINIMAX)
def test_objective_is_the_largest_piece(case: Case) -> None:
    x = case.initial()
    assert case.pieces is not None
    assert float(case.pieces(x).max()) == float(case.objective(x))


@pytest.mark.parametrize("case", MINIMAX.values(), ids=MINIMAX)
def test_no_nearby_point_is_better(case: Case) -> None:
    """Feasible points around the solution are not below the optimum."""
    assert case.optimum is not None
    draws = torch.Generator().manual_seed(0)
    for scale in (1e-4, 1e-2):
        for _ in range(20):
            x = case.answer() + scale * torch.randn(case.n, dtype=torch.float64, generator=draws)
            assert case.violation(x) > 0 or float(case.objective(x)) >= case.optimum - 1e-12


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [3, 7])
def test_families_in_other_sizes(family: str, n: int) -> None:
    case = build(family, n)
    x = case.initial()
    assert x.shape == (n,)
    assert sizes(case, x) == (case.inequalities, case.equalities)
    if case.start_value is not None:
        assert float(case.objective(x)) == pytest.approx(case.start_value)
    if case.solution is not None:
        assert float(case.objective(case.answer())) == pytest.approx(case.optimum, abs=1e-12)
        assert case.violation(case.answer()) < 1e-12


def test_lookups_are_consistent() -> None:
    assert {**UNCONSTRAINED, **CONSTRAINED} == ALL
    assert not UNCONSTRAINED.keys() & CONSTRAINED.keys()
    assert all(case.smooth for case in SMOOTH.values())
    assert all(case.source for case in ALL.values())
    assert all(name == case.name for name, case in ALL.items())


def test_lifted_form_has_the_same_answer() -> None:
    case = lifted(ALL["mad1"])
    assert sizes(case, case.initial()) == (case.inequalities, case.equalities) == (4, 0)
    assert float(case.objective(case.answer())) == ALL["mad1"].optimum
    assert case.violation(case.answer()) < 1e-12
    with pytest.raises(ValueError, match="'wolfe' is not a minimax problem"):
        lifted(ALL["wolfe"])


def evaluate(problem: Published, x: Tensor) -> tuple[Tensor, list[Tensor] | None, list[Tensor] | None]:
    if isinstance(problem.variables, nn.Module):
        return problem.function(problem.variables)
    return problem.function(problem.unflatten(x))


@every_published
def test_published_examples(name: str) -> None:
    state = torch.random.get_rng_state()
    problem = PUBLISHED[name]()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert problem.name == name
    assert problem.start.shape == (problem.n, 1)
    assert problem.start.dtype == torch.float64
    value, inequality, equality = evaluate(problem, problem.start)
    assert value.shape == ()
    assert math.isfinite(float(value.detach()))
    assert all(torch.isfinite(part).all() for part in [*(inequality or []), *(equality or [])])
    if problem.optimum is not None and problem.peer_objective is not None:
        assert problem.optimum <= problem.peer_objective + 1e-5


def test_exact_references() -> None:
    pytest.importorskip("scipy")
    from problems.reference import reference

    for name, value in reference().items():
        assert ALL[name].optimum == pytest.approx(value, rel=1e-12)


@pytest.mark.exhaustive
def test_smooth_solver_confirms_the_optima() -> None:
    """SLSQP from the usual start ends in the optimum, to 1e-6. Takes a minute."""
    pytest.importorskip("scipy")
    from problems.reference import SHIFTED_STARTS, confirmable, solve

    for name, case in confirmable().items():
        start = SHIFTED_STARTS.get(name)
        value, violation, _ = solve(case, None if start is None else torch.tensor(start, dtype=torch.float64))
        assert value == pytest.approx(case.optimum, rel=1e-6, abs=1e-6), name
        assert violation < 1e-6, name
