"""Measurements in fresh processes: each starts a worker, hands it a request and takes its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "worker.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerError(Exception):
    """A measurement gave no answer."""


def measure(
    task: str,
    request: Mapping[str, Any],
    *,
    python: str = sys.executable,
    seconds: float = 600.0,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The answer of a task, named "module.function" within this package, on one thread in a process of its own."""
    surroundings = {**os.environ, **ONE_THREAD, "PYTHONWARNINGS": "ignore", **(environment or {})}
    surroundings.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            [python, str(WORKER), task], input=json.dumps(request), capture_output=True, text=True, encoding="utf-8",
            errors="replace", timeout=seconds, env=surroundings,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise WorkerError(f"{task} did not end within {seconds:g} s") from None
    except OSError as error:
        raise WorkerError(f"{python} cannot be started: {error}") from error
    if done.returncode or not done.stdout.strip():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise WorkerError(f"{task} ended with {done.returncode}: {lines[-1][:300] if lines else 'it printed nothing'}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
