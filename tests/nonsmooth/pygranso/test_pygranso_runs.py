"""Callbacks, restarts, printing, and functions that fail."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
import torch
from published_adapter import solve

from nonsmooth import ProblemError, Status
from nonsmooth.pygranso import pygranso, pygransoStruct
from nonsmooth.pygranso.termination import CODES, MEANINGS
from problems import PUBLISHED

PARTS = [
    "x", "f", "f_grad", "ci", "ci_grad", "ce", "ce_grad", "tvi", "tve", "tv", "tvi_l1", "tvi_l1_grad", "tve_l1",
    "tve_l1_grad", "tv_l1", "tv_l1_grad", "p", "p_grad", "mu", "feasible_to_tol", "stat_value",
]  # fmt: skip
ARGUMENTS = (
    "iteration", "x", "penaltyfn_parts", "d", "get_BFGS_state_fn", "H_regularized", "ls_evals", "alpha", "n_gradients",
    "stat_vec", "stat_val", "fallback_level",
)  # fmt: skip


def circle(X: Any) -> list[Any]:  # noqa: N803
    ci, ce = pygransoStruct(c=X.x[1] - 0.5), pygransoStruct(c=(X.x**2).sum() - 1)
    return [abs(X.x[0] - 2) + X.x[1] ** 2, ci, ce]


def run(function: Any = circle, **options: Any) -> pygransoStruct:
    return pygranso({"x": [2]}, function, pygransoStruct(**{"x0": torch.tensor([0.5, 2.0]), "print_level": 0, **options}))


def test_callback_arguments() -> None:
    calls: list[dict[str, Any]] = []

    def log(*arguments: Any) -> bool:
        calls.append(dict(zip(ARGUMENTS, arguments, strict=True)))
        return False

    answer = run(halt_log_fn=log)
    assert [call["iteration"] for call in calls] == list(range(answer.iters + 1))
    first, last = calls[0], calls[-1]
    assert torch.equal(first["d"], torch.zeros(2, 1).double())
    assert first["ls_evals"] == 1 and first["alpha"] == 0 and first["n_gradients"] == 1
    assert torch.equal(last["x"], answer.final.x) and last["x"].shape == (2, 1)
    assert torch.equal(last["get_BFGS_state_fn"](), answer.H_final)
    assert last["H_regularized"] is None and last["stat_vec"].shape == (2, 1)
    assert sum(call["ls_evals"] for call in calls) <= answer.fn_evals
    for before, call in itertools.pairwise(calls):
        if call["alpha"] > 0:
            assert torch.allclose(before["x"] + call["alpha"] * call["d"], call["x"], atol=1e-12)
    for call in calls:
        parts, x = call["penaltyfn_parts"], call["x"].flatten()
        assert list(parts) == PARTS
        assert parts.f_grad.shape == parts.p_grad.shape == (2, 1)
        assert parts.ci_grad.shape == parts.ce_grad.shape == (2, 1) and parts.ci.shape == parts.ce.shape == (1, 1)
        assert torch.allclose(parts.ce_grad.flatten(), 2 * x)
        assert parts.f == pytest.approx(float(abs(x[0] - 2) + x[1] ** 2))
        assert parts.tv_l1 == pytest.approx(parts.tvi + parts.tve) and parts.tv == max(parts.tvi, parts.tve)
        assert parts.p == pytest.approx(parts.mu * parts.f + parts.tv_l1)
        gradient = parts.mu * parts.f_grad + parts.tvi_l1_grad + parts.tve_l1_grad
        assert torch.allclose(parts.p_grad, gradient) and torch.allclose(parts.tv_l1_grad, gradient - parts.mu * parts.f_grad)
    assert calls[-1]["penaltyfn_parts"].feasible_to_tol


def test_callback_with_regularized_matrix_and_with_limited_memory() -> None:
    kept: list[Any] = []

    def log(*arguments: Any) -> None:
        kept.append((arguments[5], arguments[4]()))

    run(halt_log_fn=log, regularize_threshold=10.0)
    assert all(matrix.shape == (2, 2) and torch.linalg.cond(matrix) <= 10.001 for matrix, _ in kept)
    kept.clear()
    run(halt_log_fn=log, limited_mem_size=3)
    regularized, state = kept[-1]
    assert regularized is None
    assert state["S"].shape == state["Y"].shape and state["S"].shape[0] == 2 and state["S"].shape[1] <= 3
    assert torch.allclose(state["rho"], 1 / (state["S"] * state["Y"]).sum(0, keepdim=True))
    assert state["gamma"].shape == (1, 1)


def test_callback_stops_the_run() -> None:
    answer = run(halt_log_fn=lambda iteration, *_: iteration == 2)
    assert answer.termination_code == 3 and answer.iters == 2


@pytest.mark.parametrize("error", [ValueError("in the callback"), KeyError("name"), KeyboardInterrupt()])
def test_an_exception_of_the_callback_is_raised_as_it_is(error: BaseException) -> None:
    def log(*_: Any) -> bool:
        raise error

    with pytest.raises(type(error)) as caught:
        run(halt_log_fn=log)
    assert caught.value is error


def test_an_exception_at_the_start_is_raised_as_it_is() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        raise LookupError("no data")

    for options in ({}, {"prescaling_threshold": 1.0}, {"globalAD": False}):
        with pytest.raises(LookupError, match="no data"):
            run(function, **options)


def test_a_later_exception_ends_the_run_with_the_best_point(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def function(X: Any) -> list[Any]:  # noqa: N803
        nonlocal calls
        calls += 1
        if calls > 6:
            raise RuntimeError("the disk is full")
        return circle(X)

    with caplog.at_level(logging.CRITICAL, logger="nonsmooth"):
        answer = run(function)
    assert answer.termination_code == 11
    assert isinstance(answer.error, RuntimeError) and answer.fn_evals == 6
    assert answer.final.x.shape == (2, 1) and answer.most_feasible.tv <= 3.25


@pytest.mark.parametrize("answer", [None, "f", [1, 2], [torch.ones(2), None, None], [torch.ones(()), object(), None]])
def test_answers_that_are_no_problem(answer: Any) -> None:
    with pytest.raises(ProblemError):
        run(lambda _: answer)


def test_unbounded_and_infeasible() -> None:
    unbounded = run(lambda at: [at.x.sum(), pygransoStruct(c=at.x[0] - 5), None])
    assert unbounded.termination_code == 8 and unbounded.mu_lowest <= 1
    infeasible = run(lambda at: [at.x.sum(), pygransoStruct(c=(at.x**2).sum() + 1), None])
    assert infeasible.termination_code == 7
    assert not infeasible.final.feasible_to_tol and not hasattr(infeasible, "best")


def test_every_status_has_a_code_and_every_code_a_meaning() -> None:
    assert set(CODES) == set(Status)
    assert set(CODES.values()) == set(MEANINGS)


def test_restart_with_the_whole_matrix() -> None:
    whole = solve(PUBLISHED["A3"]())
    first = solve(PUBLISHED["A3"](), maxit=25)
    assert first.termination_code == 4
    recipe = {"x0": first.final.x, "mu0": first.final.mu, "H0": first.H_final, "scaleH0": False}
    second = solve(PUBLISHED["A3"](), **recipe)
    assert second.termination_code == 0
    assert second.final.f == pytest.approx(whole.final.f, abs=1e-7)
    cold = solve(PUBLISHED["A3"](), x0=first.final.x, mu0=first.final.mu)
    assert second.iters <= cold.iters + 5
    again = solve(PUBLISHED["A3"](), **{**recipe, "x0": second.final.x, "H0": second.H_final, "mu0": second.final.mu})
    assert again.termination_code == 0 and again.final.f <= second.final.f + 1e-12


def rosenbrock(X: Any) -> list[Any]:  # noqa: N803
    ci = pygransoStruct(c1=2**0.5 * X.x1 - 1, c2=2 * X.x2 - 1)
    return [8 * abs(X.x1**2 - X.x2) + (1 - X.x1) ** 2, ci, None]


@pytest.mark.parametrize("scale", [True, False])
def test_a_restart_far_from_a_curved_kink_does_not_stall(scale: bool) -> None:
    """The restart of PyGRANSO's documentation, and others beside it: gradients from the far side of the kink must go."""
    iterations = []
    for shift in (0.0, -0.2, -0.1, 0.1, 0.2):
        start = torch.tensor([[5.5 + shift], [5.5 - shift]], dtype=torch.double)
        shapes = {"x1": [1], "x2": [1]}
        first = pygranso(shapes, rosenbrock, pygransoStruct(x0=start, maxit=10, mu0=100, print_level=0))
        options = pygransoStruct(x0=first.final.x, mu0=first.final.mu, H0=first.H_final, scaleH0=scale, print_level=0)
        second = pygranso(shapes, rosenbrock, options)
        assert second.termination_code == 0 and second.final.f == pytest.approx(0.08578643762690492, abs=1e-8)
        iterations.append(second.iters)
    assert max(iterations) <= 65, iterations


def test_the_matrix_goes_round_unchanged() -> None:
    first = solve(PUBLISHED["B3"](), maxit=10)
    same = solve(PUBLISHED["B3"](), x0=first.final.x, mu0=first.final.mu, H0=first.H_final, scaleH0=False, maxit=0)
    assert torch.allclose(same.H_final, first.H_final, rtol=1e-12)
    assert torch.equal(same.final.x, first.final.x) and same.final.mu == pytest.approx(first.final.mu)


@pytest.mark.parametrize(
    "pairs", [pytest.param(1, marks=pytest.mark.exhaustive), 3, pytest.param(10, marks=pytest.mark.exhaustive)]
)
def test_restart_with_limited_memory(pairs: int) -> None:
    first = solve(PUBLISHED["B2"](), limited_mem_size=10, maxit=pairs)
    assert first.H_final["S"].shape[1] <= pairs
    restart = {"x0": first.final.x, "mu0": first.final.mu, "limited_mem_size": 10}
    same = solve(PUBLISHED["B2"](), **restart, limited_mem_warm_start=first.H_final, maxit=0)
    for name in ("S", "Y", "rho", "gamma"):
        assert torch.allclose(same.H_final[name], first.H_final[name])
    second = solve(PUBLISHED["B2"](), **restart, limited_mem_warm_start=first.H_final)
    assert second.termination_code == 0


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(print_level=1)
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert lines[0] == "nonsmooth: 2 variables, 1 inequalities, 1 equalities"
    for title in ("penalty function", "violation", "line search", "stationarity", "objective", "evals", "grads"):
        assert title in output
    assert sum(line.split()[0].isdigit() for line in lines if line.split()) == answer.iters + 1
    assert lines[-1] == "termination code: 0, feasible, and proven stationary to opt_tol"
    assert all(any(line.split()[:1] == [name] for line in lines) for name in ("F", "B", "MF"))
    assert max(map(len, lines[:-3])) < 125


def test_table_options(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(print_level=2, print_frequency=3, print_width=9, print_ascii=True)
    output = capsys.readouterr().out
    shown = [int(line.split()[0]) for line in output.splitlines() if line.split() and line.split()[0].isdigit()]
    assert shown == list(range(0, answer.iters + 1, 3))
    assert output.isascii()
    run(print_width=23, print_level=1)
    assert max(map(len, capsys.readouterr().out.splitlines())) > 110


def test_silence(capfd: pytest.CaptureFixture[str]) -> None:
    run(print_level=0)
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
