"""Problems whose kinks stand in the program: evaluations with and without looking at them.

    python benchmarks/composite_problems.py
    python benchmarks/composite_problems.py --only "total variation 80,sparse PCA 40x3" --output try.json
    python benchmarks/composite_problems.py --page

Each of 54 problems is solved twice from the same start, with `structure="auto"` and "off", within 20,000 evaluations and two
minutes. Evaluations are values and Jacobians together: a Jacobian that is read from the program counts as well. Where cvxpy and
casadi are installed, convex problems are solved by Clarabel too, and some others by IPOPT. Results are kept in
data/composite_problems.json; --page writes their table into docs/explanation/what-the-solver-sees.md.
"""

from __future__ import annotations

import argparse
import json
import math
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

from nonsmooth import minimize  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "composite_problems.json"
PAGE = ROOT / "docs" / "explanation" / "what-the-solver-sees.md"
CLOSE = 1e-4
"""Relative difference of objectives up to which two answers count as the same."""


def measure(name: str) -> dict[str, Any]:
    """Solve a problem both ways."""
    found: dict[str, Any] = {"name": name}
    for structure in ("auto", "off"):
        function, start, *forms = PROBLEMS[name]()
        began = perf_counter()
        result = minimize(function, start, structure=structure, compile="never", max_evaluations=20_000, max_seconds=120)
        found[structure] = {
            "status": result.status.name, "f": result.f, "values": result.costs.values,
            "jacobians": result.costs.jacobians + result.costs.gradients, "seconds": perf_counter() - began,
            "kinks": result.structure.terms, "active": result.structure.active, "followed": result.structure.followed,
        }  # fmt: skip
        for form in forms if structure == "auto" else ():
            if isinstance(form, Convex) and find_spec("cvxpy"):
                found["peer"] = solve_by_cvxpy(function, start, form)
            elif isinstance(form, Split) and find_spec("casadi"):
                found["peer"] = solve_by_ipopt(function, start, form)
    return found


def work(run: dict[str, Any]) -> int:
    return int(run["values"] + run["jacobians"])


def table(results: list[dict[str, Any]]) -> list[str]:
    """A row for each problem, and what they come to."""
    lines = [
        "| problem | kinks | at the answer | seen: evaluations, seconds | not seen: evaluations, seconds | ratio "
        "| another solver: f apart, seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for result in results:
        seen, stepped = result["auto"], result["off"]
        ratio = work(seen) / work(stepped)
        ratios.append(ratio)
        cells = [_cell(run) for run in (seen, stepped)]
        apart = (seen["f"] - stepped["f"]) / (1 + abs(stepped["f"]))
        other = "" if abs(apart) <= CLOSE else ", higher f" if apart > 0 else ", lower f"
        lines.append(
            f"| {result['name']} | {seen['kinks']} | {seen['active']} | {cells[0]} | {cells[1]} | {ratio:.3f}{other} | "
            f"{_peer(result)} |"
        )
    proven = [sum(result[way]["status"] == "STATIONARY" for result in results) for way in ("auto", "off")]
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    told = f"Proven: {proven[0]} with kinks seen, {proven[1]} without, of {len(results)}. "
    return [f"{told}Geometric mean of the ratios: {mean:.3f}, the largest {max(ratios):.2f}.", "", *lines]


def _peer(result: dict[str, Any]) -> str:
    """How far our objective is above the peer's, its seconds, and whether it finds the same kinks."""
    peer, seen = result.get("peer"), result["auto"]
    if peer is None:
        return "–"
    apart = (seen["f"] - peer["f"]) / (1 + abs(peer["f"]))
    kinks = "same kinks" if peer["active"] == seen["active"] else f"{peer['active']} kinks"
    return f"{peer['name']} {apart:+.0e}, {peer['seconds']:.2f}, {kinks}"


def _cell(run: dict[str, Any]) -> str:
    verdict = "" if run["status"] == "STATIONARY" else f" ({run['status'].lower().replace('_', ' ')})"
    return f"{work(run)}, {run['seconds']:.2f}{verdict}"


def write_page(results: list[dict[str, Any]]) -> None:
    head, _, rest = PAGE.read_text().partition("<!-- composite problems -->\n")
    _, _, tail = rest.partition("<!-- end of composite problems -->")
    lines = "\n".join(["", *table(results), "", ""])
    PAGE.write_text(f"{head}<!-- composite problems -->\n{lines}<!-- end of composite problems -->{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--output", type=Path, default=DATA, metavar="FILE", help=f"where results are kept ({DATA.name})")
    parser.add_argument("--page", action="store_true", help="write the table of the stored results into the documentation")
    options = parser.parse_args()
    if options.page:
        write_page(json.loads(DATA.read_text()))
        return
    torch.set_num_threads(1)
    chosen = options.only.split(",") if options.only else list(PROBLEMS)
    unknown = set(chosen) - set(PROBLEMS)
    if unknown:
        parser.error(f"there is no problem {sorted(unknown)[0]!r}; the problems are {', '.join(PROBLEMS)}")
    results = []
    for name in chosen:
        results.append(measure(name))
        print(table(results[-1:])[-1], flush=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results)[0])


if __name__ == "__main__":
    main()
