"""Does what `bench` says about a build depend on the order of the variants?

Every workload is timed by `time_variants` with its variants in several orders, each run in a process of its own that starts
with an empty cache folder. For every variant the table compares, over the orders, the build in the measuring process
(order-dependent), the cold build, its CPU time (which other work on the machine changes less), and the payback of the cold
build. The spread of a figure is the largest value over the orders divided by the smallest. Bound: 1.25 for cold builds and
paybacks, on a machine that does nothing else.

    python benchmarks/build_order.py                   # measure, store data/build_order.json, write the table into RESULTS.md
    python benchmarks/build_order.py --rounds 3        # every order three times, the median of each counts
    python benchmarks/build_order.py --render-only     # the table again, from what is stored
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "build_order.json"
RESULTS = HERE / "RESULTS.md"
BEGIN, END = "<!-- build order: begin (build_order.py) -->", "<!-- build order: end -->"
WORKLOADS = ("60 pointwise operations", "information scorer")
VARIANTS = ("inductor", "inductor-callable", "aot-inductor")
BOUND = 1.25


def observe(workload: str, order: list[str], seconds: float, builds: int) -> dict[str, dict[str, float | None]]:
    """What `time_variants` says about every variant, in one order."""
    import torch
    from workloads import workloads

    import compile_inspect

    torch.set_num_threads(1)
    torch.manual_seed(0)
    target = workloads("cuda" if torch.cuda.is_available() else "cpu")[workload]()
    timing = compile_inspect.time_variants(target, variants=order, seconds=seconds, builds=builds)
    found: dict[str, dict[str, float | None]] = {}
    for item in timing.points[0].measurements:
        if item.variant == "eager" or item.build is None:
            continue
        found[item.variant] = {
            "order_dependent": item.build.seconds,
            "cold": item.build.cold_seconds,
            "cpu": item.build.cold_cpu_seconds,
            "warm": item.build.warm_seconds,
            "payback": None if item.payback is None else item.payback.calls,
            "gain": None if item.payback is None else item.payback.gain_seconds,
            "unclear": item.payback is not None and item.payback.is_unclear,
        }
    return found


def in_own_process(workload: str, order: list[str], seconds: float, builds: int) -> dict[str, dict[str, float | None]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        command = [sys.executable, __file__, "--child", workload, ",".join(order), str(seconds), str(builds)]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(options: argparse.Namespace) -> None:
    import torch

    names = options.variants.split(",")
    orders = [list(names[start:] + names[:start]) for start in range(len(names))]
    runs = []
    for _, workload, order in itertools.product(range(options.rounds), WORKLOADS, orders):
        if options.only in workload:
            seen = in_own_process(workload, order, options.seconds, options.builds)
            runs.append({"workload": workload, "order": order, "seen": seen})
            print(workload, ", ".join(order), {name: round(item["cold"] or 0, 2) for name, item in seen.items()}, flush=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
    about = {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "commit": commit.stdout.strip(),
        "load": f"{os.getloadavg()[2]:.1f} (mean of the last 15 minutes)",
        "builds": options.builds,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }
    DATA.write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n")


def render() -> str:
    """The stored measurements as a table."""
    stored = json.loads(DATA.read_text())
    about, runs = stored["about"], stored["runs"]
    lines = [
        f"torch {about['torch']}, Python {about['python']}, {about['processors']} processors, one thread, commit "
        f"{about['commit']}, load average {about['load']}; "
        f"runs of each order: {about['rounds']}, cold builds in each: {about['builds']}, {about['seconds']:g} s of samples.",
        "",
        "| Workload | Variant | In the measuring process | Spread | Cold | Spread | Cold, CPU time | Spread | Warm "
        "| Payback in calls | Spread |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for workload in dict.fromkeys(run["workload"] for run in runs):
        mine = [run for run in runs if run["workload"] == workload]
        for variant in sorted({name for run in mine for name in run["seen"]}):
            by_order: dict[str, list[dict[str, float]]] = {}
            for run in mine:
                by_order.setdefault(",".join(run["order"]), []).append(run["seen"][variant])
            cells = [workload, variant]
            for key in ("order_dependent", "cold", "cpu", "warm", "payback"):
                medians = [_median(seen, key) for seen in by_order.values()]
                cells += _cells(medians, key)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _median(seen: list[dict[str, float]], key: str) -> float | None:
    """The median of a figure; a payback that `bench` itself calls unclear is none."""
    clear = [item for item in seen if key != "payback" or not item["unclear"]]
    known = [item[key] for item in clear if item[key] is not None]
    return median(known) if known else None


def _cells(medians: list[float | None], key: str) -> list[str]:
    """The range over the orders and, but for warm builds, its spread."""
    if None in medians:
        return ["never or unclear" if key == "payback" else "not known", ""]
    low, high = min(medians), max(medians)
    text = f"{low:,.0f} to {high:,.0f}" if key == "payback" else f"{low:.1f} to {high:.1f} s"
    return [text] if key == "warm" else [text, f"{high / low:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--builds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--render-only", action="store_true")
    parser.add_argument("--child", nargs=4, metavar=("WORKLOAD", "ORDER", "SECONDS", "BUILDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        workload, order, seconds, builds = options.child
        print(json.dumps(observe(workload, order.split(","), float(seconds), int(builds))))
        return
    if not options.render_only:
        measure(options)
    text = RESULTS.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    RESULTS.write_text(f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
