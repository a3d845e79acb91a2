"""Single iterations: what is done where values are rounded away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, State, Status, iteration, minimize

torch.manual_seed(3)
MATRIX = (lambda a: a + a.T)(torch.randn(30, 30, dtype=torch.float64))
STARTS = [torch.linalg.qr(torch.randn(30, 5, dtype=torch.float64))[0].contiguous() for _ in range(4)]
IDENTITY = torch.eye(5, dtype=torch.float64)


def trace(basis: Tensor) -> Any:
    """The sum of the largest eigenvalues, with 25 equalities of which 15 are different."""
    return -(basis.T @ MATRIX @ basis).diagonal().sum(), None, basis.T @ basis - IDENTITY


def solve(start: Tensor, **more: Any) -> Result:
    return minimize(trace, start, stationarity_tolerance=1e-9, compile="never", **more)


@pytest.mark.parametrize("start", STARTS)
def test_nine_digits_of_a_smooth_problem(start: Tensor) -> None:
    result = solve(start)
    assert result.status is Status.STATIONARY, result
    assert result.certificate.residual <= 1e-9 and result.check().stationary
    assert result.f == pytest.approx(-float(torch.linalg.eigvalsh(MATRIX)[-5:].sum()), rel=1e-12)
    assert result.violation < 1e-10


def test_values_alone_do_not_lead_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without steps that only the gradients judge, some of these runs end before."""
    monkeypatch.setattr(iteration, "MOST_BLIND", 0)
    assert not all(solve(start).status is Status.STATIONARY for start in STARTS)


def test_no_end_to_what_rounding_hides_is_noticed() -> None:
    """Digits that are not there are not looked for forever: the steps end, and the verdict is no success."""
    result = minimize(trace, STARTS[0], stationarity_tolerance=1e-17, compile="never")
    assert not result.success and not result.certificate.stationary
    assert result.iterations < 300


def test_a_run_saved_among_such_steps_goes_on_the_same_way(tmp_path: Path) -> None:
    saved: list[int] = []

    def save(state: State) -> None:
        if state.blind[1] < float("inf") and not saved:
            state.save(tmp_path / "state")
            saved.append(state.iteration)

    whole = solve(STARTS[1], callback=save)
    assert saved, "no step was of that kind"
    continued = solve(STARTS[1], state=State.load(tmp_path / "state"))
    assert continued.iterations == whole.iterations
    assert torch.equal(continued.x, whole.x)
