"""Many variables: time and memory grow no faster than their number, and answers are still proven."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nonsmooth import Status, minimize
from nonsmooth.certify.certificate import check
from nonsmooth.evaluate import Evaluator
from nonsmooth.hessian import FullMemory, LimitedMemory
from nonsmooth.options import Options, Tolerances
from nonsmooth.problem import Problem
from nonsmooth.variables import Variables
from problems import build

PROGRAM = Path(__file__).parent.parent / "programs" / "solver_scale.py"
PAIRS = 20


def run(size: int, kind: str, iterations: int) -> dict[str, Any]:
    """A run in a process of its own: the most memory a process ever held cannot be asked for twice."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(PROGRAM), str(size), kind, str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["matrix"] == "LimitedMemory" and found["pairs"] == 16 * PAIRS * size
    assert found["iterations"] == iterations and np.isfinite(found["f"])
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="memory is asked of the resource module")
def test_memory_with_a_hundred_thousand_variables() -> None:
    found = run(100_000, "sum", 30)
    assert found["gradients_kept"] == 12
    assert found["memory"] <= 3.5 * found["pairs"]  # of which the gradients and points kept are 0.6


@pytest.mark.exhaustive
@pytest.mark.timeout(3000)
@pytest.mark.skipif(sys.platform == "win32", reason="memory is asked of the resource module")
@pytest.mark.parametrize("kind", ["free", "ball", "sum"])
def test_a_million_variables(kind: str) -> None:
    """Some minutes. Long enough for all pairs to be in use, for null steps, and for a valley to be followed."""
    small, large = run(100_000, kind, 75), run(1_000_000, kind, 75)
    assert large["memory"] <= 3.0 * large["pairs"]
    per_evaluation = [each["seconds"] / each["evaluations"] for each in (small, large)]
    assert per_evaluation[1] <= 15.0 * per_evaluation[0]  # 10 would be n; the machine may be busy


@pytest.mark.parametrize("size, kind", [(2000, FullMemory), (2001, LimitedMemory)])
def test_limited_memory_is_chosen_where_n_is_large(size: int, kind: type) -> None:
    result = minimize(lambda x: (x**2).sum(), torch.ones(size, dtype=torch.float64))
    assert result.status is Status.STATIONARY and isinstance(result.state.hessian, kind)
    if isinstance(result.state.hessian, LimitedMemory):
        assert result.state.hessian.pairs == PAIRS


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", ["chained_cb3_2", "active_faces"])
def test_many_variables_with_kinks(name: str, size: int) -> None:
    case = build(name, size)
    result = minimize(case.function, case.initial(), max_evaluations=600)
    assert result.status is Status.STATIONARY and (result.structure.active >= 1 or result.certificate.samples > 1)
    assert case.optimum is not None and result.f == pytest.approx(case.optimum, rel=1e-8, abs=1e-6)


@pytest.mark.parametrize("shift, stationary", [(0.0, True), (1e-3, False)])
def test_the_certificate_of_long_gradients(shift: float, stationary: bool) -> None:
    """The largest of two paraboloids, at its kink: from there two gradients are needed, and beside it there is descent."""
    size = 30_000
    start = torch.full((size,), shift, dtype=torch.float64)
    problem = Problem(lambda x: torch.maximum(((x - 1) ** 2).sum(), ((x + 1) ** 2).sum()) / size)
    evaluator = Evaluator(problem, Variables(start))
    found = check(evaluator, evaluator(start.numpy()), Tolerances.of(Options(), single=False)).certificate
    assert found.stationary == stationary and found.descent == (not stationary), found
    if stationary:
        assert found.residual < 1e-6 and found.samples >= 2
