"""Recording grows with the compile: graphs of 250 to 2,000 nodes, and 40 to 300 recompiles of one function.

Every measurement is a fresh process; plain and recorded runs take turns. The time of `compile-inspect show FILE summary` on
the largest capture is measured too.

    python benchmarks/recorder_scale.py --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rendering.compile_tables import growth_table
from stored_results import Measurement, add_output_argument

ROOT = Path(__file__).resolve().parent.parent
CASES = {"nodes": (250, 500, 1000, 2000), "recompiles": (40, 150, 300)}


def child(case: str, size: int, capture: Path | None) -> None:
    import torch
    import torch._dynamo
    import torch._inductor.compile_fx

    import compile_inspect

    work = many_nodes if case == "nodes" else many_recompiles
    begin = time.perf_counter()
    if capture is None:
        work(torch, size)
    else:
        with compile_inspect.record(capture):
            work(torch, size)
    print(json.dumps({"seconds": time.perf_counter() - begin}))


def many_nodes(torch, size: int) -> None:
    """A chain of `size` operations with a matrix product every tenth, forward and backward, through Inductor."""

    def chain(x, weight):
        for number in range(size):
            x = x @ weight if number % 10 == 9 else torch.sin(x) if number % 2 else x * 1.01
        return x.sum()

    x, weight = torch.randn(8, 8, requires_grad=True), torch.eye(8)
    torch.compile(chain)(x, weight).backward()


def many_recompiles(torch, size: int) -> None:
    def scaled(x):
        return torch.relu(x * 2).sum()

    torch._dynamo.config.recompile_limit = size + 1
    torch._dynamo.config.accumulated_recompile_limit = size + 1
    compiled = torch.compile(scaled, backend="aot_eager", dynamic=False)
    for length in range(2, size + 2):
        compiled(torch.ones(length))


def measure(case: str, size: int, capture: Path | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--child", case, str(size), str(capture) if capture else ""]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TORCHINDUCTOR_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[-2000:])
        return float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    add_output_argument(parser, "recorder_scale")
    options = parser.parse_args()
    if options.child:
        case, size, capture = options.child
        child(case, int(size), Path(capture) if capture else None)
        return
    measurement, records = Measurement("recorder_scale"), []
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases:
            for size in CASES[case]:
                records.append(measure_pairs(case, size, options.rounds, Path(folder)))
                print(growth_table(records[-1:]).splitlines()[-1], flush=True)
    print("\n" + growth_table(records))
    print(f"stored in {measurement.write(records, path=options.output)}")


def measure_pairs(case: str, size: int, rounds: int, folder: Path) -> dict[str, object]:
    """Plain and recorded compilation in turns."""
    plain, recorded = [], []
    for number in range(rounds):
        capture = folder / f"{case}-{size}-{number}.inspection"
        plain.append(measure(case, size, None))
        recorded.append(measure(case, size, capture))
    return {
        "case": case,
        "size": size,
        "plain_seconds": plain,
        "recorded_seconds": recorded,
        "ratio": [slow / fast for slow, fast in zip(recorded, plain, strict=True)],
        "capture_megabytes": capture.stat().st_size / 1e6,
        "summary_seconds": show_seconds(capture),
    }


def show_seconds(capture: Path) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "compile_inspect", "show", str(capture), "summary"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=True, capture_output=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
