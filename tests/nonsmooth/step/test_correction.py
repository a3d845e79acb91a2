"""Second-order corrections: steps along curved constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize
from nonsmooth.evaluate import Trial
from nonsmooth.step import attempt
from nonsmooth.step.correction import correct, correct_shorter
from nonsmooth.step.fallback import plain_step


def eigenvector(size: int) -> tuple[Any, Tensor]:
    """The largest eigenvalue on the sphere: every full step leaves it."""
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(size, size, generator=generator, dtype=torch.float64)
    matrix = root @ root.T

    def function(x: Tensor) -> Any:
        return -(x @ matrix @ x), None, x @ x - 1

    return function, torch.randn(size, generator=generator, dtype=torch.float64)


def test_full_steps_along_a_sphere_are_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    function, start = eigenvector(120)
    options: dict[str, Any] = {"penalty_parameter": 0.01, "compile": "never", "scaling": "none"}
    corrected = minimize(function, start, **options)
    monkeypatch.setattr(attempt, "correct", lambda *given, **how: None)
    plain = minimize(function, start, **options)
    assert corrected.success and corrected.f == pytest.approx(plain.f, rel=1e-6)
    assert corrected.evaluations < 0.9 * plain.evaluations


def on_sphere(x: np.ndarray) -> Trial:
    return Trial.stored(x, -float(x[0]), np.array([x @ x - 1.0]), 1, np.array([-1.0, 0.0]), 2.0 * x[None])


def test_a_correction_leads_back_to_the_constraint() -> None:
    at, direction = on_sphere(np.array([0.0, 1.0])), np.array([0.4, 0.0])
    step = plain_step(at, direction, at.gradient, -0.4, 10.0)
    trial = on_sphere(at.x + direction)
    assert trial.penalty(10.0) > at.penalty(10.0)  # the Maratos effect
    found = correct(on_sphere, at, step, trial, at.penalty(10.0) - 0.3, uses_pieces=False)
    assert found is not None and found.low_enough and abs(found.trial.c[0]) < 1e-2
    assert found.trial.penalty(10.0) < at.penalty(10.0) - 0.3


@pytest.mark.parametrize("curvature", [4.0, 10.0, 30.0])
def test_parts_of_a_step_that_is_too_long_are_corrected(curvature: float) -> None:
    """The objective rises on the way to the corrected step, and no point on the straight way is low enough."""

    def curved(x: np.ndarray) -> Trial:
        f, gradient = 0.5 * curvature * float(x[0] ** 2) - float(x[0]), np.array([curvature * x[0] - 1.0, 0.0])
        return Trial.stored(x, f, np.array([x @ x - 1.0]), 1, gradient, 2.0 * x[None])

    at, direction, weight = curved(np.array([0.0, 1.0])), np.array([3.0 / curvature, 0.0]), 1e3
    step = plain_step(at, direction, at.gradient, -3.0 / curvature, weight)
    full = correct(curved, at, step, curved(at.x + direction), at.penalty(weight), uses_pieces=False)
    assert full is not None and not full.low_enough
    straight = [curved(at.x + 0.5**k * direction).penalty(weight) for k in range(1, 5)]
    assert min(straight) > at.penalty(weight)
    part = correct_shorter(curved, at, step, at.penalty(weight), 1e-4)
    assert part is not None
    trial, length = part
    assert length in (0.5, 0.25) and trial.penalty(weight) < at.penalty(weight) - 1e-4 * length * 3.0 / curvature
    assert abs(trial.c[0]) < 1e-4


@pytest.mark.parametrize("weight", [1e-3, 0.1])
def test_where_the_objective_is_to_blame_nothing_is_corrected(weight: float) -> None:
    at = on_sphere(np.array([0.0, 1.0]))
    step = plain_step(at, np.array([0.4, 0.0]), at.gradient, -0.4, weight)
    risen = Trial.stored(np.array([0.4, 1.0]), 5.0, np.array([0.16]), 1, np.zeros(2), np.zeros((1, 2)))
    calls: list[Any] = []
    assert correct(calls.append, at, step, risen, -1.0, uses_pieces=False) is None and not calls  # type: ignore[arg-type]


def test_dependent_rows_are_corrected_together() -> None:
    """The same constraint twice, and more constraints than variables."""

    def function(x: Tensor) -> Any:
        sphere = x @ x - 1
        return -(x @ torch.arange(1.0, 4.0, dtype=torch.float64)), None, torch.stack([sphere, sphere, 2 * sphere, sphere**3])

    result = minimize(function, torch.tensor([1.0, 0.3, -0.5], dtype=torch.float64), compile="never")
    assert result.violation < 1e-6 and result.f == pytest.approx(-(14**0.5), rel=1e-5)


@pytest.mark.filterwarnings("error")
def test_gradients_too_long_to_be_multiplied_end_nothing() -> None:
    """The square of their lengths is infinite, of which numpy need not tell the user."""

    def huge(x: Tensor) -> tuple[Tensor, None, Tensor]:
        return (x - 1).abs().sum(), None, 1e200 * x[0].abs()

    result = minimize(huge, torch.zeros(2, dtype=torch.float64), max_evaluations=200, compile="never")
    assert result.exception is None and result.status is not Status.SOLVER_ERROR
