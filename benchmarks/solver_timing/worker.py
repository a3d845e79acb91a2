"""A process that does one measurement: the task is its argument, the request comes from stdin, the answer goes to stdout.

What the task or a solver prints goes to stderr. With NONSMOOTH_BENCHMARK_CLOCK=cpu all clocks of the task and of nonsmooth
show the CPU time of the process, which other work on the machine does not stop.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0:1] = [str(ROOT / folder) for folder in ("benchmarks", "src", "tests")]


def main() -> None:
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    if os.environ.get("NONSMOOTH_BENCHMARK_CLOCK") == "cpu":
        time.perf_counter = time.process_time  # before anything has imported it

    import torch

    torch.set_num_threads(1)
    module, function = sys.argv[1].rsplit(".", 1)
    answer = getattr(importlib.import_module(f"solver_timing.{module}"), function)(request)
    pipe.write(json.dumps(answer))
    pipe.close()


if __name__ == "__main__":
    main()
