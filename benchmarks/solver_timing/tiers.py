"""What compilation brings: `compile="auto"` beside `compile="never"`.

Three parts, each with the ratio never ÷ auto of the run time, in processes that take turns:

- `problems`: the published problems, caches empty. Runs this short should not be slower with "auto".
- `long`: about a minute of work, caches empty: dictionary learning (n = 30) and trace (50×10) from many starts.
- `kept`: C2 and A3 with the package that an earlier process has built and stored; --prime says how long that process runs.

Empty caches are a new folder for HOME, XDG_CACHE_HOME and Inductor's and Triton's caches. Skipped, with a message, where
`minimize` has no option `compile`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from rendering.solver_speed import tier_records, tier_table
from rendering.tables import number

from solver_timing.processes import WorkerError, measure
from solver_timing.published import NAMES
from solver_timing.solving import has_compile_option

PARTS = ("problems", "long", "kept")
LONG_PROBLEMS = ("dictionary", "trace")
CACHED_PROBLEMS = ("C2", "A3")
TIERS = ("never", "auto")
REPEATS, REPEAT_SECONDS = 5, 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="turns for each problem (3)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--only", default="", metavar="PROBLEMS", help="names, with commas between them")
    parser.add_argument("--starts", type=int, default=60, help="starts of each long run (60)")
    parser.add_argument("--prime", type=float, default=120.0, help="seconds of the run before those of the part kept (120)")


@contextmanager
def empty_caches() -> Iterator[dict[str, str]]:
    """Environment variables that point every cache to a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("HOME", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        for name in names:
            (Path(folder) / name.lower()).mkdir()
        yield {name: str(Path(folder) / name.lower()) for name in names}


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: a published problem, some times (for `seconds`, where that is given)."""
    from nonsmooth import minimize
    from problems import PUBLISHED
    from solver_timing import solving

    function, start, options = solving.minimize_arguments(solving.small())
    minimize(function, start, **options, compile="never")
    limit = request.get("seconds")
    runs: list[float] = []
    began = perf_counter()
    while not runs or (perf_counter() - began < limit if limit else _again(runs)):
        function, start, options = solving.minimize_arguments(PUBLISHED[request["problem"]]())
        call = perf_counter()
        result = minimize(function, start, **options, compile=request["compile"])
        runs.append(perf_counter() - call)
    return {
        "first": runs[0],
        "seconds": statistics.median(runs),
        "f": result.f,
        "status": result.status.name,
        "evaluations": result.evaluations,
        "compilation": str(getattr(result, "compilation", "")),
    }


def _again(runs: list[float]) -> bool:
    return len(runs) < REPEATS and sum(runs) < REPEAT_SECONDS


def solve_long(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one problem from many random starts, one after the other."""
    import torch

    from nonsmooth import minimize
    from problems.published import dictionary_learning, trace
    from solver_timing import solving

    problem = dictionary_learning(30) if request["problem"] == "dictionary" else trace(50, 10)
    function, start, options = solving.minimize_arguments(problem)
    options["stationarity_tolerance"] = 1e-8
    generator = torch.Generator().manual_seed(7)
    began, evaluations, values = perf_counter(), 0, []
    for _ in range(request["starts"]):
        point = {name: torch.randn(value.shape, generator=generator, dtype=value.dtype) for name, value in start.items()}
        point = {name: value / torch.linalg.vector_norm(value) for name, value in point.items()}
        result = minimize(function, point, **options, compile=request["compile"])
        evaluations += result.evaluations
        values.append(result.f)
    return {
        "seconds": perf_counter() - began,
        "evaluations": evaluations,
        "f": statistics.fmean(values),
        "status": result.status.name,
        "compilation": str(getattr(result, "compilation", "")),
    }


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure part after part; what was measured, and the tables."""
    if not has_compile_option():
        return {}, "Skipped: `minimize` has no option `compile` here."
    words = [name for name in options.only.split(",") if name]
    measured, texts = {}, []
    for part in options.parts.split(","):
        names = {"problems": NAMES, "long": LONG_PROBLEMS, "kept": CACHED_PROBLEMS}[part]
        rounds_by_name = {name: turns(part, name, options) for name in names if not words or name in words}
        measured[part] = {name: rounds for name, rounds in rounds_by_name.items() if rounds}
        texts += [f"**{part}**", "", tier_table(tier_records(measured[part])), ""]
    return measured, "\n".join(texts)


def turns(part: str, name: str, options: argparse.Namespace) -> list[dict[str, dict[str, Any]]]:
    """All rounds of one problem: never, auto, never, auto."""
    task = "tiers.solve_long" if part == "long" else "tiers.solve"
    request = {"problem": name, "starts": options.starts}
    rounds = []
    try:
        with empty_caches() as filled:
            if part == "kept":
                primed = {**request, "compile": "auto", "seconds": options.prime}
                measure("tiers.solve", primed, environment=filled, seconds=options.prime + 600)
            for _ in range(options.rounds):
                round_ = {}
                for tier in TIERS:
                    with empty_caches() as fresh:
                        environment = filled if part == "kept" else fresh
                        round_[tier] = measure(task, {**request, "compile": tier}, environment=environment, seconds=1800)
                rounds.append(round_)
                print(f"{part} {name}: {number(ratio(round_))}", file=sys.stderr, flush=True)
    except WorkerError as error:
        print(f"{part} {name}: {error}", file=sys.stderr)
    return rounds


def ratio(round_: dict[str, dict[str, Any]], what: str = "seconds") -> float:
    """never ÷ auto."""
    return float(round_["never"][what] / round_["auto"][what])
