"""One run of the solver on a function with a kink in every variable; what it cost, as JSON.

    python tests/programs/solver_scale.py SIZE free|ball|sum ITERATIONS

Memory is the most the process ever held less what it held with the data of the problem, before the run.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nonsmooth import minimize
from nonsmooth.hessian import LimitedMemory


def problem(size: int, kind: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    """Σ wᵢ |xᵢ − aᵢ| + ½ (xᵢ − bᵢ)², free, in a ball, or with a given sum."""
    generator = torch.Generator().manual_seed(0)
    a, b, start = torch.randn(3, size, generator=generator, dtype=torch.float64).unbind()
    w = torch.rand(size, generator=generator, dtype=torch.float64)

    def function(x: Tensor) -> Any:
        f = (w * (x - a).abs()).sum() + 0.5 * ((x - b) ** 2).sum()
        if kind == "ball":
            return f, x @ x / size - 0.25, None
        return (f, None, x.sum() / size**0.5 - 0.1 * size**0.5) if kind == "sum" else f

    return function, 2.0 * start.clone()


def most_memory() -> int:
    """Bytes that this process held at most until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(size: int, kind: str, iterations: int) -> None:
    torch.set_num_threads(1)
    minimize(*problem(500, kind), memory=20, max_iterations=iterations)  # everything that is needed is loaded now
    function, start = problem(size, kind)
    memory, seconds = most_memory(), time.process_time()
    result = minimize(function, start, max_iterations=iterations)
    seconds = time.process_time() - seconds
    hessian = result.state.hessian
    own = sum(result.time[name] for name in ("values", "gradients", "Jacobians")) / sum(result.time.values())
    print(
        json.dumps(
            {
                "size": size,
                "kind": kind,
                "status": result.status.name,
                "f": result.f,
                "violation": result.violation,
                "iterations": result.iterations,
                "evaluations": result.evaluations,
                "seconds": seconds,
                "share_of_the_function": own,
                "memory": most_memory() - memory,
                "pairs": 16 * size * hessian.pairs if isinstance(hessian, LimitedMemory) else None,
                "matrix": type(hessian).__name__,
                "gradients_kept": len(result.state.bundle),
            }
        )
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])), sys.argv[2], int(sys.argv[3]))
