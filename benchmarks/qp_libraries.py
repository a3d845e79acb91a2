"""The native active-set method beside libraries for quadratic programs, on the programs of real runs.

    pip install daqp piqp clarabel proxsuite highspy
    python benchmarks/qp_libraries.py
    python benchmarks/qp_libraries.py --rounds 3 --only A3,MC100

The programs of a dozen problems are recorded: min ½ yᵀQy + qᵀy, where the first k entries are ≥ 0 and sum to 1 and the others
lie between bounds. Each library solves them

- cold: one by one, each with a new solver that knows nothing;
- in sequence: in the order of the run, with the last answer as the start and the same solver for all programs with the same
  matrix, as far as the library can.

All are called from Python, with arrays that are ready in the form the library wants, so what it would cost to prepare them is
left out. Libraries take turns; a ratio is that of the times for all programs of a problem in one round. Residuals are those of
`Program.residual`, by which the solver accepts answers up to 1e-7.

The effect on a whole run is estimated twice from the times in sequence. "QP" replaces the time of quadratic programs in native
runs and nothing else. "no C" takes runs with the Python method, whose models are built in Python, and replaces the time of
their programs: that is what would be left if the C code were deleted.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))
sys.path.insert(1, str(ROOT / "tests"))

from qp_comparison.libraries import LIBRARIES  # noqa: E402
from qp_comparison.recording import PROBLEMS, Recorded, python_method, record, run, sample  # noqa: E402
from rendering.solver_tables import qp_problem_tables, qp_summary_table  # noqa: E402
from stored_results import Measurement, add_output_argument  # noqa: E402

MAX_RESIDUAL = 1e-7
MAX_REPEATED_SECONDS = 5.0
"""A library that takes more seconds than that for the programs of one problem solves them once."""


def main() -> None:
    """Measure, print the tables and store the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each library solves the programs (7)")
    parser.add_argument("--only", default=",".join(PROBLEMS), metavar="PROBLEMS", help="names, with commas between them")
    add_output_argument(parser, "qp_libraries")
    options = parser.parse_args()
    packages = [LIBRARIES[name].package for name in installed() if name != "native"]
    measurement, problems = Measurement("qp_libraries", packages=packages), {}
    for name in options.only.split(","):
        problems[name] = measure(name, options.rounds)
        print(f"{name}: done", file=sys.stderr)
    print(qp_summary_table(problems))
    print("\n" + qp_problem_tables(problems))
    path = measurement.write({"rounds": options.rounds, "problems": problems}, notes=("One thread.",), path=options.output)
    print(f"stored in {path}")


def installed() -> list[str]:
    """The libraries that can be imported."""
    modules = {name: kind.package for name, kind in LIBRARIES.items() if name != "native"}
    return ["native", *(name for name, module in modules.items() if importlib.util.find_spec(module))]


def measure(name: str, rounds: int) -> dict[str, Any]:
    """One problem: its programs by every library, and its runs by both methods."""
    programs, recorded_run, too_large = record(name)
    chosen = sample(programs, windows=5, length=40)
    runs: dict[str, list[dict[str, float]]] = {"native": [], "python": []}
    run(name)  # what is loaded late
    for _ in range(rounds):
        runs["native"].append(summary(name))
        with python_method():
            runs["python"].append(summary(name))
    libraries = {each: LIBRARIES[each]() for each in installed()}
    prepared = {each: [library.prepare(program) for program in chosen] for each, library in libraries.items()}
    solved: dict[str, dict[str, Any]] = {each: {"cold": [], "sequence": []} for each in libraries}
    generator = random.Random(0)
    for number_of_round in range(rounds):
        for way in ("cold", "sequence"):
            for each in generator.sample(list(libraries), len(libraries)):
                if solved[each][way] and solved[each][way][0] > MAX_REPEATED_SECONDS:
                    continue
                seconds, answers = solve_all(libraries[each], prepared[each], warm=way == "sequence")
                solved[each][way].append(seconds)
                if number_of_round == 0:
                    solved[each][f"{way}_residuals"] = residuals(libraries[each], prepared[each], answers, chosen)
    return {
        "recorded": len(programs), "too_large": too_large, "measured": len(chosen),
        "recorded_evaluations": recorded_run.evaluations,
        "sizes": extent([program.program.size for program in chosen]),
        "simplex": extent([program.program.simplex for program in chosen]),
        "runs": runs, "libraries": solved,
    }  # fmt: skip


def extent(values: list[int]) -> list[int]:
    """The smallest and the largest."""
    return [min(values), max(values)]


def summary(name: str) -> dict[str, float]:
    """How long a run took, and its programs."""
    result = run(name)
    return {
        "seconds": result.time.total, "QP": result.time["QP"], "directions": result.time["directions"],
        "evaluations": result.evaluations, "programs": result.programs.solved,
    }  # fmt: skip


def solve_all(library: Any, prepared: list[Any], *, warm: bool) -> tuple[float, list[Any]]:
    """The seconds that all programs take, and the raw answers."""
    seconds, answers = 0.0, []
    for each in prepared:
        began = perf_counter()
        answer = library.solve(each, warm=warm)
        seconds += perf_counter() - began
        answers.append(answer)
    return seconds, answers


def residuals(library: Any, prepared: list[Any], answers: list[Any], programs: list[Recorded]) -> dict[str, float]:
    """How large the residuals of the answers are, once these are moved into the feasible set."""
    known = []
    for ready, raw, recorded in zip(prepared, answers, programs, strict=True):
        y = library.answer(ready, raw)
        y = None if y is None else recorded.program.feasible(y)
        if y is not None:
            known.append(recorded.program.residual(y))
    large = sum(one > MAX_RESIDUAL for one in known)
    return {"largest": max(known, default=0.0), "large": large, "missing": len(programs) - len(known)}


if __name__ == "__main__":
    main()
