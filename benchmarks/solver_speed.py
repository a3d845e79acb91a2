"""How fast the solver is: beside PyGRANSO, beside the cost of the function itself, and as problems grow.

    python benchmarks/solver_speed.py published --pygranso-python PATH
    python benchmarks/solver_speed.py overhead --output overhead.json

Each subcommand measures one thing, prints a Markdown table and, with --output, writes what was measured as JSON.
Measurements are fresh processes on one thread; where two things are compared they take turns, and ratios have their
spread, because the machine may be busy. PATH is the Python of an environment with PyGRANSO:

    pip install torch "numpy<2" scipy "osqp<1" gurobipy && pip install --no-deps pygranso==1.2.0
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "src")]

from solver_timing import constraints, gpu, overhead, phases, published, scale, tiers  # noqa: E402

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
        subparser.add_argument("--output", type=Path, metavar="FILE", help="write what was measured as JSON")
        subparser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a machine with other work")
        subparser.add_argument("--pygranso-python", default=os.environ.get("PYGRANSO_PYTHON"), metavar="PATH")
    options = parser.parse_args()
    if options.subcommand in NEED_PEER and not (options.pygranso_python and Path(options.pygranso_python).exists()):
        parser.error("PyGRANSO's environment is needed: --pygranso-python PATH or PYGRANSO_PYTHON")
    return options


def main() -> None:
    options = arguments()
    os.environ["NONSMOOTH_BENCHMARK_CLOCK"] = options.clock
    measured, text = SUBCOMMANDS[options.subcommand].run(options)
    print(text + (f"\n\nAll times are {options.clock} time." if options.clock != "wall" else ""))
    if options.output:
        options.output.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
