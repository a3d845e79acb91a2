"""How fast the solver is: beside PyGRANSO, beside the cost of the function itself, and as problems grow.

    python benchmarks/solver_speed.py published --pygranso-python PATH
    python benchmarks/solver_speed.py overhead --rounds 1 --only A1,C2 --output trial.json

Each subcommand measures one thing, prints a Markdown table and stores what was measured in benchmarks/results.
Measurements are fresh processes on one thread; where two things are compared they take turns, and ratios have their
spread, because the machine may be busy. PATH is the Python of an environment with PyGRANSO:

    pip install torch "numpy<2" scipy "osqp<1" gurobipy && pip install --no-deps pygranso==1.2.0
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "src")]

from solver_timing import constraints, gpu, overhead, phases, published, scale, tiers  # noqa: E402
from stored_results import Measurement, add_output_argument  # noqa: E402

SUBCOMMANDS = {
    "published": published,
    "overhead": overhead,
    "tiers": tiers,
    "constraints": constraints,
    "scale": scale,
    "gpu": gpu,
    "phases": phases,
}
NEED_PEER = ("published",)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    for name, module in SUBCOMMANDS.items():
        summary = (module.__doc__ or "").splitlines()[0]
        subparser = subparsers.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.arguments(subparser)
        add_output_argument(subparser, f"solver_speed_{name}")
        subparser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a machine with other work")
        subparser.add_argument("--pygranso-python", default=os.environ.get("PYGRANSO_PYTHON"), metavar="PATH")
    options = parser.parse_args()
    if options.subcommand in NEED_PEER and not (options.pygranso_python and Path(options.pygranso_python).exists()):
        parser.error("PyGRANSO's environment is needed: --pygranso-python PATH or PYGRANSO_PYTHON")
    return options


def main() -> None:
    options = arguments()
    os.environ["NONSMOOTH_BENCHMARK_CLOCK"] = options.clock
    measurement = Measurement(f"solver_speed_{options.subcommand}")
    measured, text = SUBCOMMANDS[options.subcommand].run(options)
    print(text + (f"\n\nAll times are {options.clock} time." if options.clock != "wall" else ""))
    notes = ["One thread.", f"All times are {options.clock} time."]
    versions = {"pygranso": _pygranso_version(options.pygranso_python)} if options.pygranso_python else {}
    print(f"stored in {measurement.write(measured, notes=notes, versions=versions, path=options.output)}")


def _pygranso_version(python: str) -> str:
    """The version of PyGRANSO in its environment."""
    program = "import importlib.metadata; print(importlib.metadata.version('pygranso'))"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
