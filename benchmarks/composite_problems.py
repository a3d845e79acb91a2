"""Problems whose kinks can be read from the program: evaluations with and without reading them.

    python benchmarks/composite_problems.py
    python benchmarks/composite_problems.py --only "total variation 80,sparse PCA 40x3" --output try.json

Each of 54 problems is solved twice from the same start, with `structure="auto"` and "off", within 20,000 evaluations and two
minutes. Evaluations are values and Jacobians together: a Jacobian that is read from the program counts as well. Where cvxpy and
casadi are installed, Clarabel solves the convex problems too, and IPOPT some of the others.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "src"))

from composite.families import PROBLEMS, Convex, Split  # noqa: E402
from composite.peers import solve_by_cvxpy, solve_by_ipopt  # noqa: E402
from rendering.solver_tables import composite_summary, composite_table  # noqa: E402
from stored_results import Measurement, add_output_argument  # noqa: E402

from nonsmooth import minimize  # noqa: E402


def measure(name: str) -> dict[str, Any]:
    """Solve a problem both ways."""
    record: dict[str, Any] = {"problem": name}
    for key, structure in (("kinks_read", "auto"), ("kinks_not_read", "off")):
        function, start, *forms = PROBLEMS[name]()
        began = perf_counter()
        result = minimize(function, start, structure=structure, compile="never", max_evaluations=20_000, max_seconds=120)
        record[key] = {
            "status": result.status.name, "f": result.f, "values": result.costs.values,
            "jacobians": result.costs.jacobians + result.costs.gradients, "seconds": perf_counter() - began,
            "kinks": result.structure.terms, "active": result.structure.active, "used": result.structure.followed,
        }  # fmt: skip
        for form in forms if structure == "auto" else ():
            if isinstance(form, Convex) and find_spec("cvxpy"):
                record["peer"] = solve_by_cvxpy(function, start, form)
            elif isinstance(form, Split) and find_spec("casadi"):
                record["peer"] = solve_by_ipopt(function, start, form)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between them")
    add_output_argument(parser, "composite_problems")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = options.only.split(",") if options.only else list(PROBLEMS)
    unknown = set(chosen) - set(PROBLEMS)
    if unknown:
        parser.error(f"there is no problem {sorted(unknown)[0]!r}; the problems are {', '.join(PROBLEMS)}")
    measurement, records = Measurement("composite_problems", packages=("cvxpy", "clarabel", "casadi")), []
    for name in chosen:
        records.append(measure(name))
        print(composite_table(records[-1:]).splitlines()[-1], flush=True)
        path = measurement.write(records, notes=("One thread.",), path=options.output)
    print(composite_summary(records))
    print(f"stored in {path}")


if __name__ == "__main__":
    main()
