"""Does what `bench` says about a build depend on the order of the variants?

Every workload is timed by `time_variants` with its variants in several orders, each run in a process of its own that starts
with an empty cache folder. For every variant the table compares, over the orders, the build in the measuring process
(order-dependent), the cold build, its CPU time (which other work on the machine changes less), and the payback of the cold
build. The spread of a figure is the largest value over the orders divided by the smallest.

    python benchmarks/build_order.py
    python benchmarks/build_order.py --rounds 3        # every order three times, the median of each counts
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

from rendering.compile_tables import build_order_table
from stored_results import Measurement, add_output_argument

WORKLOADS = ("60 pointwise operations", "information scorer")
VARIANTS = ("inductor", "inductor-callable", "aot-inductor")


def observe(workload: str, order: list[str], seconds: float, builds: int) -> dict[str, dict[str, float | None]]:
    """What `time_variants` says about every variant, in one order."""
    import torch
    from workloads import workloads

    import compile_inspect

    torch.set_num_threads(1)
    torch.manual_seed(0)
    target = workloads("cuda" if torch.cuda.is_available() else "cpu")[workload]()
    timing = compile_inspect.time_variants(target, variants=order, seconds=seconds, builds=builds)
    builds_by_variant: dict[str, dict[str, float | None]] = {}
    for item in timing.points[0].measurements:
        if item.variant == "eager" or item.build is None:
            continue
        builds_by_variant[item.variant] = {
            "order_dependent_seconds": item.build.seconds,
            "cold_seconds": item.build.cold_seconds,
            "cold_cpu_seconds": item.build.cold_cpu_seconds,
            "warm_seconds": item.build.warm_seconds,
            "payback_calls": None if item.payback is None else item.payback.calls,
            "gain_seconds": None if item.payback is None else item.payback.gain_seconds,
            "unclear": item.payback is not None and item.payback.unclear,
        }
    return builds_by_variant


def in_own_process(workload: str, order: list[str], seconds: float, builds: int) -> dict[str, dict[str, float | None]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        command = [sys.executable, __file__, "--child", workload, ",".join(order), str(seconds), str(builds)]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(options: argparse.Namespace) -> None:
    """Time every order in turn, and store and print what was measured."""
    measurement = Measurement("build_order")
    names = options.variants.split(",")
    orders = [list(names[start:] + names[:start]) for start in range(len(names))]
    runs = []
    for _, workload, order in itertools.product(range(options.rounds), WORKLOADS, orders):
        if options.only in workload:
            variants = in_own_process(workload, order, options.seconds, options.builds)
            runs.append({"workload": workload, "order": order, "variants": variants})
            print(workload, ", ".join(order), {name: one["cold_seconds"] for name, one in variants.items()}, flush=True)
    samples = {"rounds": options.rounds, "builds": options.builds, "seconds": options.seconds, "runs": runs}
    print(build_order_table(samples))
    print(f"stored in {measurement.write(samples, notes=('One thread.',), path=options.output)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--builds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    add_output_argument(parser, "build_order")
    parser.add_argument("--child", nargs=4, metavar=("WORKLOAD", "ORDER", "SECONDS", "BUILDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        workload, order, seconds, builds = options.child
        print(json.dumps(observe(workload, order.split(","), float(seconds), int(builds))))
        return
    measure(options)


if __name__ == "__main__":
    main()
