"""Quality of solvers: the fraction of problems solved against the evaluations spent, nonsmooth beside its peers.

    python benchmarks/solver_quality.py --pygranso-python PATH --ncopt-python PATH

PATH is the Python of an environment with that peer (its own, because their dependencies exclude each other):

    PyGRANSO   pip install torch "numpy<2" scipy "osqp<1" gurobipy && pip install --no-deps pygranso==1.2.0
    ncOPT      pip install torch ncopt==0.2.0

SLSQP needs scipy here, the picture matplotlib. A peer without PATH keeps the results it has. Results are stored after
every problem in benchmarks/data/solver_quality.json; from them docs/explanation/solver-quality.md and its picture are written.

    python benchmarks/solver_quality.py --solvers nonsmooth            # only ours again
    python benchmarks/solver_quality.py --solvers nonsmooth --only hs71,cb2
    python benchmarks/solver_quality.py --plot-only
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "src")]

from solver_peers import report  # noqa: E402
from solver_peers.conductor import Conductor, WorkerError  # noqa: E402

from problems import ALL  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "solver_quality.json"
PAGE = ROOT / "docs" / "explanation" / "solver-quality.md"
PICTURE = ROOT / "docs" / "images" / "solver-quality.svg"
UNBOUNDED = ("hs78_penalty",)
CASES = {name: case for name, case in ALL.items() if case.optimum is not None and name not in UNBOUNDED}
SOLVERS = ("nonsmooth", "pygranso", "pygranso_tight", "ncopt", "slsqp")
GRACE = 2.0


def load() -> dict[str, Any]:
    if DATA.exists():
        return json.loads(DATA.read_text(encoding="utf-8"))
    return {"limits": {}, "versions": {}, "results": {}}


def save(stored: dict[str, Any], solver: str) -> None:
    """Store what is new of one solver. One line for each run, so that changes can be read in a diff."""
    others = load()  # another process may have measured another solver
    stored["results"] = {**others["results"], solver: stored["results"][solver]}
    stored["versions"] = {**others["versions"], solver: stored["versions"][solver]}
    results = {
        solver: {name: stored["results"][solver][name] for name in CASES if name in stored["results"][solver]}
        for solver in SOLVERS
        if solver in stored["results"]
    }
    lines = [
        "{",
        f'"limits": {json.dumps(stored["limits"])},',
        f'"versions": {json.dumps(stored["versions"], indent=1)},',
        '"results": {',
    ]
    for number, (solver, runs) in enumerate(results.items()):
        entries = [f" {json.dumps(name)}: {json.dumps(run)}" for name, run in runs.items()]
        lines += [f'"{solver}": {{', ",\n".join(entries), "}" + ("," if number + 1 < len(results) else "")]
    DATA.parent.mkdir(exist_ok=True)
    partial = DATA.with_suffix(".partial")
    partial.write_text("\n".join([*lines, "}", "}"]) + "\n", encoding="utf-8")
    partial.replace(DATA)


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The Python of each solver that can run; says what is missing for the others."""
    found = {"nonsmooth": sys.executable}
    for solver, peer in (("pygranso", "pygranso"), ("pygranso_tight", "pygranso"), ("ncopt", "ncopt")):
        given = getattr(options, f"{peer}_python")
        if given and Path(given).exists():
            found[solver] = given
        elif solver in options.solvers:
            what = f"{given} does not exist" if given else "no environment given"
            print(f"{solver} is left out: {what}; use --{peer}-python or {peer.upper()}_PYTHON", file=sys.stderr)
    if importlib.util.find_spec("scipy"):
        found["slsqp"] = sys.executable
    elif "slsqp" in options.solvers:
        print("slsqp is left out: pip install scipy", file=sys.stderr)
    return {solver: python for solver, python in found.items() if solver in options.solvers}


def describe(run: dict[str, Any]) -> str:
    if run["hit"] is not None:
        return f"solved after {run['hit']} evaluations ({run['evaluations']} in all, {run['status']})"
    reached = f"gap {run['gap']:.1e}" if run["gap"] is not None else f"violation {run['violation']}"
    return f"not solved: {reached}, {run['evaluations']} evaluations, {run['status']}"


def measure(solver: str, python: str, names: list[str], stored: dict[str, Any], options: argparse.Namespace) -> None:
    runs = stored["results"].setdefault(solver, {})
    began = time.monotonic()
    with Conductor(solver, python) as conductor:
        for number, name in enumerate(names, 1):
            if options.missing and name in runs:
                continue
            runs[name] = conductor.solve(name, evaluations=options.evaluations, seconds=options.seconds, grace=GRACE)
            stored["versions"][solver] = conductor.versions
            save(stored, solver)
            print(
                f"{solver} {number}/{len(names)} {time.monotonic() - began:5.0f} s  {name}: {describe(runs[name])}",
                file=sys.stderr,
                flush=True,
            )


def write(stored: dict[str, Any]) -> None:
    """The picture and the page, over the problems every solver shown was run on."""
    results = {solver: stored["results"][solver] for solver in SOLVERS if stored["results"].get(solver)}
    if not results:
        sys.exit(f"there are no results in {DATA} yet")
    problems = report.Problems(CASES)
    for solver, runs in results.items():
        lacking = len([name for name in (problems.smooth if solver == "slsqp" else problems.names) if name not in runs])
        if lacking:
            print(f"{solver} was not run on {lacking} problems; they count as not solved", file=sys.stderr)
    try:
        report.draw(results, problems, PICTURE)
    except ImportError:
        print("the picture is not drawn: pip install matplotlib", file=sys.stderr)
    PAGE.write_text(report.page(stored, results, problems), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)}", file=sys.stderr)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pygranso-python", default=os.environ.get("PYGRANSO_PYTHON"), metavar="PATH")
    parser.add_argument("--ncopt-python", default=os.environ.get("NCOPT_PYTHON"), metavar="PATH")
    parser.add_argument("--solvers", default=",".join(SOLVERS), metavar="NAMES", help=f"of {', '.join(SOLVERS)}")
    parser.add_argument("--only", default="", metavar="PROBLEMS", help="names, with commas between them")
    parser.add_argument("--missing", action="store_true", help="only what has no result yet, to continue a run")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (60)")
    parser.add_argument("--evaluations", type=int, default=10_000, help="for each problem (10000)")
    parser.add_argument("--plot-only", action="store_true", help="write page and picture from the stored results")
    options = parser.parse_args()
    options.solvers = [name.strip() for name in options.solvers.split(",") if name.strip()]
    options.only = [name.strip() for name in options.only.split(",") if name.strip()]
    for name in options.solvers:
        if name not in SOLVERS:
            parser.error(f"there is no solver {name!r}; choose from {', '.join(SOLVERS)}")
    for name in options.only:
        if name not in CASES:
            parser.error(f"there is no problem {name!r} with a known optimum")
    return options


def main() -> None:
    options = arguments()
    stored = load()
    if not options.plot_only:
        limits = {"evaluations": options.evaluations, "seconds": options.seconds}
        if stored["limits"] not in ({}, limits):
            print(f"note: stored results of other solvers were made with {stored['limits']}", file=sys.stderr)
        stored["limits"] = limits
        for solver, python in pythons(options).items():
            names = [name for name, case in CASES.items() if case.smooth or solver != "slsqp"]
            names = [name for name in names if not options.only or name in options.only]
            try:
                measure(solver, python, names, stored, options)
            except WorkerError as error:
                print(error, file=sys.stderr)
    write(stored)


if __name__ == "__main__":
    main()
