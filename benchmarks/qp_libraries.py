"""The native active-set method beside libraries for quadratic programs, on the programs of real runs.

    pip install daqp piqp clarabel proxsuite highspy
    python benchmarks/qp_libraries.py
    python benchmarks/qp_libraries.py --rounds 3 --only A3,MC100
    python benchmarks/qp_libraries.py --show

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
their programs: that is what is left when the C code is deleted. Results are kept in data/qp_libraries.json.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import random
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))
sys.path.insert(1, str(ROOT / "tests"))

from qp_comparison.libraries import LIBRARIES  # noqa: E402
from qp_comparison.recording import PROBLEMS, Recorded, python_method, record, run, sample  # noqa: E402
from solver_timing.tables import duration, geometric_mean, number, spread, table  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "qp_libraries.json"
TRUSTED = 1e-7
LONG_ROUND = 5.0
"""A library that takes more seconds than that for the programs of one problem solves them once."""


def main() -> None:
    """Measure, keep the results, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each library solves the programs (7)")
    parser.add_argument("--only", default=",".join(PROBLEMS), metavar="PROBLEMS", help="names, with commas between them")
    parser.add_argument("--show", action="store_true", help="print the tables of the stored results")
    parser.add_argument("--output", type=Path, default=DATA, metavar="FILE", help=f"where results are kept ({DATA.name})")
    options = parser.parse_args()
    if not options.show:
        results = {"about": about(), "rounds": options.rounds, "problems": {}}
        for name in options.only.split(","):
            results["problems"][name] = measure(name, options.rounds)
            print(f"{name}: done", file=sys.stderr)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(report(json.loads(options.output.read_text())))


def installed() -> list[str]:
    """The libraries that can be imported."""
    modules = {name: kind.package for name, kind in LIBRARIES.items() if name != "native"}
    return ["native", *(name for name, module in modules.items() if importlib.util.find_spec(module))]


def about() -> dict[str, Any]:
    """The machine, versions and commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ""
    )
    names = ["torch", "numpy", "scipy", *(LIBRARIES[name].package for name in installed() if name != "native")]
    versions = {name: importlib.metadata.version(name) for name in names}
    return {"machine": cpu, "python": platform.python_version(), "versions": versions, "commit": commit}


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
                if solved[each][way] and solved[each][way][0] > LONG_ROUND:
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
    large = sum(one > TRUSTED for one in known)
    return {"largest": max(known, default=0.0), "large": large, "missing": len(programs) - len(known)}


def report(results: dict[str, Any]) -> str:
    """The tables."""
    problems = results["problems"]
    names = [name for name in next(iter(problems.values()))["libraries"] if name != "native"]
    lines = [
        ", ".join(f"{key} {value}" for key, value in results["about"]["versions"].items()),
        results["about"]["machine"],
        "",
    ]
    rows = []
    for problem, measured in problems.items():
        runs = measured["runs"]["native"]
        rows.append([
            problem, measured["recorded"], "{} to {}".format(*measured["sizes"]),
            duration(per_program(measured, "native", "cold")), duration(per_program(measured, "native", "sequence")),
            f"{100 * statistics.median(one['QP'] / one['seconds'] for one in runs):.0f} %",
            duration(statistics.median(one["QP"] / one["programs"] for one in runs)),
        ])  # fmt: skip
    headings = [
        "problem",
        "programs",
        "entries",
        "native, cold",
        "native, sequence",
        "QP share of a native run",
        "QP in the run",
    ]
    lines += [table(headings, rows), ""]
    for way in ("cold", "sequence"):
        rows = [[problem, *(spread(ratios(measured, name, way)) for name in names)] for problem, measured in problems.items()]
        means = [
            number(geometric_mean(statistics.median(ratios(measured, name, way)) for measured in problems.values()))
            for name in names
        ]
        lines += [f"Time ÷ time of the native method, {way}:", "", table(["problem", *names], [*rows, ["mean", *means]]), ""]
    for way in ("cold", "sequence"):
        rows = []
        for name in ["native", *names]:
            found = [measured["libraries"][name][f"{way}_residuals"] for measured in problems.values()]
            counts = [sum(one[key] for one in found) for key in ("large", "missing")]
            programs = sum(measured["measured"] for measured in problems.values())
            rows.append([name, number(max(one["largest"] for one in found)), *counts, programs])
        headings = ["library", "largest", "over 1e-7", "no answer", "programs"]
        lines += [f"KKT residuals, {way}:", "", table(headings, rows), ""]
    for kind in ("QP", "no C"):
        rows = [[problem, *(number(effect(measured, name, kind)) for name in names)] for problem, measured in problems.items()]
        means = [number(geometric_mean(effect(measured, name, kind) for measured in problems.values())) for name in names]
        lines += [
            f"Time of a whole run ÷ that of a native run, {kind}:",
            "",
            table(["problem", *names], [*rows, ["mean", *means]]),
            "",
        ]
    return "\n".join(lines)


def per_program(measured: dict[str, Any], name: str, way: str) -> float:
    """The mean time of a program, the median of all rounds."""
    return float(statistics.median(measured["libraries"][name][way])) / int(measured["measured"])


def ratios(measured: dict[str, Any], name: str, way: str) -> list[float]:
    """One ratio of times for each round."""
    libraries = measured["libraries"]
    return [one / ours for one, ours in zip(libraries[name][way], libraries["native"][way], strict=False)]


def effect(measured: dict[str, Any], name: str, kind: str) -> float:
    """The time of a whole run where a library solves the programs ÷ that of a native run, both for one evaluation."""

    def per_evaluation(method: str, *keys: str) -> float:
        return statistics.median(sum(one[key] for key in keys) / one["evaluations"] for one in measured["runs"][method])

    programs = measured["recorded"] / measured["recorded_evaluations"]
    method = "native" if kind == "QP" else "python"
    rest = per_evaluation(method, "seconds") - per_evaluation(method, "QP")
    return (rest + programs * per_program(measured, name, "sequence")) / per_evaluation("native", "seconds")


if __name__ == "__main__":
    main()
