"""Growth with n: time per iteration and peak memory of L-BFGS with 20 pairs, n = 10³ to 10⁶.

The problem is separable: Σ dᵢ/2·(xᵢ − aᵢ)² + |xᵢ|, dᵢ from 1 to 100, aᵢ normal; its solution is known. Every n has a
process of its own and the same number of iterations. Memory is the largest resident size of the process (getrusage)
minus its resident size right before the run, when everything is imported, a small problem was solved and the data are
there. So it contains the function's own temporaries. It is compared with the 20 pairs: 2·20·8 bytes·n.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from rendering.solver_growth import draw_scale, scale_records, scale_table
from rendering.tables import duration

from solver_timing.processes import WorkerError, measure

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PAIRS = 20
PAGE = resource.getpagesize()


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="processes for each n (3)")
    parser.add_argument("--only", default=",".join(map(str, SIZES)), metavar="NUMBERS", help="values of n")
    parser.add_argument("--iterations", type=int, default=40, help="of each run (40)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw time and memory (.svg or .png; needs matplotlib)")


def resident() -> int:
    """Bytes this process holds now; where that cannot be read, the most it has held."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except OSError:
        return peak()


def peak() -> int:
    """The most bytes this process has held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one run."""
    import torch

    from nonsmooth import minimize
    from solver_timing import solving

    function, start, options = solving.minimize_arguments(solving.small())
    minimize(function, start, **options, memory=2)
    size = request["size"]
    generator = torch.Generator().manual_seed(0)
    center = 2 * torch.randn(size, generator=generator, dtype=torch.float64)
    curvature = torch.logspace(0, 2, size, dtype=torch.float64)

    def separable(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (curvature * (x - center) ** 2).sum() + x.abs().sum()

    solution = torch.sign(center) * torch.clamp(center.abs() - 1 / curvature, min=0)
    optimum = float(separable(solution))
    x = torch.zeros(size, dtype=torch.float64)
    function_seconds = _evaluation(separable, x)
    before, highest = resident(), peak()
    began = perf_counter()
    result = minimize(separable, x, memory=PAIRS, max_iterations=request["iterations"])
    seconds = perf_counter() - began
    return {
        "seconds": seconds,
        "iterations": result.iterations,
        "seconds_per_iteration": seconds / max(1, result.iterations),
        "evaluation_seconds": function_seconds,
        "evaluations": result.evaluations,
        "memory": peak() - before,
        "peak_was_reached": peak() > highest,
        "pairs": 2 * PAIRS * 8 * size,
        "status": result.status.name,
        "gap": (result.f - optimum) / (1 + abs(optimum)),
        "time": dict(result.time),
    }


def _evaluation(function: Any, x: Any) -> float:
    """What one value with its gradient costs by itself."""
    samples = []
    for _ in range(5):
        leaf = x.clone().requires_grad_()
        began = perf_counter()
        function(leaf).backward()
        samples.append(perf_counter() - began)
    return statistics.median(samples)


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    sizes = [int(text) for text in options.only.split(",") if text]
    runs_by_size: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    for _ in range(options.rounds):
        for size in sizes:
            try:
                runs_by_size[size].append(measure("scale.solve", {"size": size, "iterations": options.iterations}))
            except WorkerError as error:
                print(f"n = {size}: {error}", file=sys.stderr)
                continue
            last = runs_by_size[size][-1]
            print(f"n = {size}: {duration(last['seconds_per_iteration'])} per iteration", file=sys.stderr, flush=True)
    measured = {str(size): runs for size, runs in runs_by_size.items() if runs}
    records = scale_records(measured)
    if options.plot:
        try:
            draw_scale(records, options.plot)
        except ImportError:
            print("the picture is not drawn: pip install matplotlib", file=sys.stderr)
    return measured, scale_table(records)
