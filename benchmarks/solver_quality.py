"""Quality of solvers: the fraction of problems solved against the evaluations spent, nonsmooth beside its peers.

    python benchmarks/solver_quality.py --pygranso-python PATH --ncopt-python PATH

PATH is the Python of an environment with that peer (its own, because their dependencies exclude each other):

    PyGRANSO   pip install torch "numpy<2" scipy "osqp<1" gurobipy && pip install --no-deps pygranso==1.2.0
    ncOPT      pip install torch ncopt==0.2.0

SLSQP needs scipy here. A peer without PATH keeps the results it has. Results are stored after every problem; `make results`
writes docs/explanation/solver-quality.md and its picture from them.

    python benchmarks/solver_quality.py --solvers nonsmooth            # only ours again
    python benchmarks/solver_quality.py --solvers nonsmooth --only hs71,cb2
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "src")]

import stored_results  # noqa: E402
from rendering import solver_quality  # noqa: E402
from solver_peers.conductor import Conductor, WorkerError  # noqa: E402

from problems import ALL  # noqa: E402

NAME = "solver_quality"
NOTES = ("Solvers may be measured at different times; `measured` has the date and commit of each.",)
UNBOUNDED = ("hs78_penalty",)
CASES = {name: case for name, case in ALL.items() if case.optimum is not None and name not in UNBOUNDED}
SOLVERS = ("nonsmooth", "pygranso", "pygranso_tight", "ncopt", "slsqp")
GRACE = 2.0


class Store:
    """The results of all solvers, stored after every problem."""

    def __init__(self, path: Path | None) -> None:
        self._path = path or stored_results.path_of(NAME)
        self._measurement = stored_results.Measurement(NAME)
        self.samples: dict[str, Any] = self._read()

    def _read(self) -> dict[str, Any]:
        if self._path.exists():
            samples: dict[str, Any] = stored_results.load(self._path)["samples"]
            return samples
        return {"limits": {}, "problems": {}, "versions": {}, "measured": {}, "results": {}}

    def save(self, solver: str, versions: dict[str, str], runs: dict[str, Any]) -> None:
        """Store the runs of one solver; another process may have measured another one."""
        others, about = self._read(), self._measurement.about()
        parts = {
            "versions": versions,
            "measured": {"date": about["date"], "commit": about["commit"]},
            "results": {name: runs[name] for name in CASES if name in runs},
        }
        for key, value in parts.items():
            merged = {**others[key], solver: value}
            self.samples[key] = {name: merged[name] for name in SOLVERS if name in merged}
        self.samples["problems"] = {
            name: {
                "n": case.n, "inequalities": case.inequalities, "equalities": case.equalities, "smooth": case.smooth,
                "convex": case.convex,
            }
            for name, case in CASES.items()
        }  # fmt: skip
        self._measurement.write(self.samples, notes=NOTES, path=self._path)


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The Python of each solver that can run; says what is missing for the others."""
    environments = {"nonsmooth": sys.executable}
    for solver, peer in (("pygranso", "pygranso"), ("pygranso_tight", "pygranso"), ("ncopt", "ncopt")):
        python = getattr(options, f"{peer}_python")
        if python and Path(python).exists():
            environments[solver] = python
        elif solver in options.solvers:
            what = f"{python} does not exist" if python else "no environment given"
            print(f"{solver} is left out: {what}; use --{peer}-python or {peer.upper()}_PYTHON", file=sys.stderr)
    if importlib.util.find_spec("scipy"):
        environments["slsqp"] = sys.executable
    elif "slsqp" in options.solvers:
        print("slsqp is left out: pip install scipy", file=sys.stderr)
    return {solver: python for solver, python in environments.items() if solver in options.solvers}


def describe(run: dict[str, Any]) -> str:
    if run["hit"] is not None:
        return f"solved after {run['hit']} evaluations ({run['evaluations']} in all, {run['status']})"
    reached = f"gap {run['gap']:.1e}" if run["gap"] is not None else f"violation {run['violation']}"
    return f"not solved: {reached}, {run['evaluations']} evaluations, {run['status']}"


def measure(solver: str, python: str, names: list[str], store: Store, options: argparse.Namespace) -> None:
    """Run one solver on the problems, in a process of its own."""
    runs = dict(store.samples["results"].get(solver, {}))
    began = time.monotonic()
    with Conductor(solver, python) as conductor:
        for number, name in enumerate(names, 1):
            if options.missing and name in runs:
                continue
            runs[name] = conductor.solve(name, evaluations=options.evaluations, seconds=options.seconds, grace=GRACE)
            store.save(solver, conductor.versions, runs)
            print(
                f"{solver} {number}/{len(names)} {time.monotonic() - began:5.0f} s  {name}: {describe(runs[name])}",
                file=sys.stderr,
                flush=True,
            )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pygranso-python", default=os.environ.get("PYGRANSO_PYTHON"), metavar="PATH")
    parser.add_argument("--ncopt-python", default=os.environ.get("NCOPT_PYTHON"), metavar="PATH")
    parser.add_argument("--solvers", default=",".join(SOLVERS), metavar="NAMES", help=f"of {', '.join(SOLVERS)}")
    parser.add_argument("--only", default="", metavar="PROBLEMS", help="names, with commas between them")
    parser.add_argument("--missing", action="store_true", help="only what has no result yet, to continue a run")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (60)")
    parser.add_argument("--evaluations", type=int, default=10_000, help="for each problem (10000)")
    stored_results.add_output_argument(parser, NAME)
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
    store = Store(options.output)
    limits = {"evaluations": options.evaluations, "seconds": options.seconds}
    if store.samples["limits"] not in ({}, limits):
        print(f"note: stored results of other solvers were made with {store.samples['limits']}", file=sys.stderr)
    store.samples["limits"] = limits
    for solver, python in pythons(options).items():
        names = [name for name, case in CASES.items() if case.smooth or solver != "slsqp"]
        names = [name for name in names if not options.only or name in options.only]
        try:
            measure(solver, python, names, store, options)
        except WorkerError as error:
            print(error, file=sys.stderr)
    for title, group in solver_quality.groups(store.samples):
        print(f"{title}\n\n{solver_quality.summary(group)}\n")


if __name__ == "__main__":
    main()
