"""Long runs do not fill the memory.

The history grows by one row of nine numbers per iteration, some 350 bytes; that is allowed. Nothing else may grow.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch

from nonsmooth import State, Status, minimize
from nonsmooth.evaluate import Trial
from problems import build

PAGE = 4096
ROW = 400
"""Bytes of a row of the history: a tuple of nine numbers."""


def resident() -> int:
    """Bytes of memory this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def living() -> tuple[int, int]:
    """How many evaluated points and tensors there are."""
    gc.collect()
    objects = gc.get_objects()
    return sum(type(item) is Trial for item in objects), sum(type(item) is torch.Tensor for item in objects)


@pytest.mark.slow
def test_evaluated_points_and_their_graphs_are_let_go() -> None:
    counts: dict[int, tuple[int, int]] = {}

    def callback(state: State) -> None:
        if state.iteration in (50, 350):
            counts[state.iteration] = living()

    case = build("nesterov_chebyshev_rosenbrock", 8)
    result = minimize(case.function, case.initial(), max_iterations=350, callback=callback)
    assert result.iterations == 350
    for early, late in zip(counts[50], counts[350], strict=True):
        assert late <= early + 20


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("options", [{"max_null_steps": 2}, {"memory": 5, "max_null_steps": 0}], ids=["full", "limited"])
def test_a_hundred_thousand_iterations(options: dict[str, Any]) -> None:
    """In eight variables this function needs far more iterations than that. A few minutes."""
    sizes: dict[int, int] = {}

    def callback(state: State) -> None:
        if state.iteration in (10_000, 100_000):
            gc.collect()
            sizes[state.iteration] = resident()

    case = build("nesterov_chebyshev_rosenbrock", 8)
    result = minimize(
        case.function, case.initial(), max_iterations=100_000, stationarity_tolerance=1e-14, callback=callback, **options
    )
    assert result.status is Status.ITERATION_LIMIT and result.iterations == 100_000
    assert sizes[100_000] - sizes[10_000] <= 90_000 * ROW + 20e6
