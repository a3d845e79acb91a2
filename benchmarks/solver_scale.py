"""Time and memory of the solver as n grows, and the time of one update and one product of its matrices.

Every run is a fresh process: 75 iterations on a function with a kink in every variable, free, in a ball, or with a given
sum. Times are those of the processor, so that a busy machine matters less.

    python benchmarks/solver_scale.py --sizes 1e3,1e4,1e5,1e6
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rendering.solver_tables import growth_table, matrix_table
from stored_results import Measurement, add_output_argument

from nonsmooth.hessian import FullMemory, LimitedMemory, curvature_pair

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("free", "ball", "sum")


def runs(sizes: list[int], iterations: int) -> list[dict[str, Any]]:
    """One run of each size and kind of problem, in a process of its own."""
    records = []
    for size in sizes:
        for kind in KINDS:
            program = [sys.executable, str(ROOT / "tests/programs/solver_scale.py"), str(size), kind, str(iterations)]
            environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
            done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
            records.append({"size": size, "kind": kind, **json.loads(done.stdout.splitlines()[-1])})
            print(growth_table(records[-1:]).splitlines()[-1], flush=True)
    return records


def fastest(function: Callable[[], object], rounds: int) -> float:
    """Microseconds of the fastest of several calls."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times)


def matrices() -> list[dict[str, Any]]:
    """Updates and products of the whole matrix and of 20 pairs."""
    records = []
    sizes = {"whole": (10, 100, 500, 1000, 2000), "20 pairs": (10, 100, 2000, 10_000, 100_000, 1_000_000)}
    for name, each in sizes.items():
        for size in each:
            generator = np.random.default_rng(0)
            hessian = FullMemory(size) if name == "whole" else LimitedMemory(size, pairs=20)
            rounds = max(5, min(300, 10_000_000 // size**2 if name == "whole" else 5_000_000 // size))
            steps = generator.standard_normal((3, size))
            pairs = [curvature_pair(s, 2.0 * s + 0.01 * s[::-1], None, 0.0) for s in steps]
            for number in range(25):
                hessian.update(pairs[number % 3])
            columns = [np.asfortranarray(generator.standard_normal((size, count))) for count in (2, 12)]
            update = fastest(lambda hessian=hessian, pairs=pairs: [hessian.update(pair) for pair in pairs], rounds) / 3
            vectors = iter([generator.standard_normal(size) for _ in range(min(rounds, 10))])
            products = [fastest(lambda hessian=hessian, vectors=vectors: hessian.apply(next(vectors)), min(rounds, 10))]
            products += [fastest(lambda hessian=hessian, columns=few: hessian.apply(columns), rounds) for few in columns]
            records.append({"size": size, "matrix": name, "update_us": update, "product_us": products})
            print(matrix_table(records[-1:]).splitlines()[-1], flush=True)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6")
    parser.add_argument("--iterations", type=int, default=75)
    parser.add_argument("--only", choices=["runs", "matrices"])
    add_output_argument(parser, "solver_scale")
    options = parser.parse_args()
    measurement, samples = Measurement("solver_scale"), {"runs": [], "matrices": []}
    if options.only != "matrices":
        samples["runs"] = runs([int(float(size)) for size in options.sizes.split(",") if size], options.iterations)
        print("\n" + growth_table(samples["runs"]))
    if options.only != "runs":
        samples["matrices"] = matrices()
        print("\n" + matrix_table(samples["matrices"]))
    print(f"stored in {measurement.write(samples, notes=('Times are those of the processor.',), path=options.output)}")


if __name__ == "__main__":
    main()
