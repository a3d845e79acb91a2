"""A process that runs one solver on problems it is told, one after the other.

It reads a line of JSON for each problem from stdin, and writes lines of JSON to stdout: "ready" with versions at the
start, "hit" as soon as a solution was evaluated, "done" at the end of a problem. Where a solver has to be stopped, the
process ends after "done", because solvers catch exceptions of their own accord; the conductor starts another.
Everything the solver itself prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "src"), str(ROOT / "tests")]

pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def tell(**event: Any) -> None:
    pipe.write(json.dumps(event) + "\n")
    pipe.flush()


class Task:
    """One problem with one solver."""

    def __init__(self, solver: str, request: dict[str, Any]) -> None:
        import torch
        from recorder import Limits, Recorder

        from problems import ALL

        torch.manual_seed(0)
        self._solver = solver
        self._lock = threading.Lock()
        self._over = False
        limits = Limits(request["evaluations"], request["seconds"], request["grace"])
        self._recorder = Recorder(ALL[request["problem"]], limits, self._stop, self._hit)

    def run(self) -> None:
        from solvers import SOLVERS

        threading.Thread(target=self._watch, daemon=True).start()
        try:
            status = SOLVERS[self._solver][0](self._recorder)
        except BaseException as error:  # solvers end the process, too
            status = f"{type(error).__name__}: {error}"[:200]
        self._finish(status)

    def _hit(self) -> None:
        tell(event="hit", **self._recorder.summary("killed after the hit"))

    def _watch(self) -> None:
        while not self._over:
            reason = self._recorder.overdue()
            if reason:
                self._stop(reason)
            time.sleep(0.05)

    def _stop(self, reason: str) -> None:
        self._finish(reason)
        os._exit(0)

    def _finish(self, status: str) -> None:
        with self._lock:
            if not self._over:
                self._over = True
                tell(event="done", **self._recorder.summary(status))


def main() -> None:
    import torch
    from solvers import SOLVERS, versions

    solver = sys.argv[1]
    if solver not in SOLVERS:
        sys.exit(f"no such solver: {solver}")
    torch.set_num_threads(1)
    tell(event="ready", versions=versions(solver))
    for line in sys.stdin:
        Task(solver, json.loads(line)).run()


if __name__ == "__main__":
    main()
