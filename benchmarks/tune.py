"""`tune` against eager and every mode of torch.compile, on the workloads of `workloads.py`: one table per device.

    python benchmarks/tune.py [--device cpu|cuda] [--seconds 2] [--only NAME …] [--modes …]

Every figure is the median of interleaved samples in one process, with its 95 % interval. `raw` is a bare replay of the
recorded CUDA graph: no inputs, no check, no outputs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from workloads import workloads

from compile_inspect.timing.sampling import interleave, summarize
from compile_inspect.tuning import tune
from compile_inspect.tuning.selection import single_call
from compile_inspect.variants import RefusalError, Task, variant

MODES = {
    "cpu": ["inductor", "inductor/max-autotune-no-cudagraphs"],
    "cuda": ["inductor", "inductor/reduce-overhead", "inductor/max-autotune", "inductor/max-autotune-no-cudagraphs"],
}


def measure(name: str, device: str, seconds: float, modes: list[str], budget: float) -> dict[str, object]:
    """One row: median seconds and interval of eager, every mode, tune and, on CUDA, tune with reused outputs and raw."""
    target = workloads(device)[name]()
    task = Task(target.function, target.args, target.kwargs, bool(target.gradients))
    tuned = tune(target, budget=budget)
    print(tuned.decision)
    calls = {"eager": task.function, "tune": tuned}
    refused = {}
    if device == "cuda" and tuned.decision.chosen.startswith("cuda-graph"):
        calls["tune, outputs reused"] = tune(target, variants=[tuned.decision.chosen], reuse_outputs=True)
    for mode in modes:
        try:
            prepared = variant(mode).prepare(task)
            calls[mode] = task.function if prepared.call is None else prepared.call
        except RefusalError as refusal:
            refused[mode] = str(refusal)
    # No context around each call: the modes are set once, outside.
    ready = {key: single_call(task, call) if task.gradients else _plain(task, call) for key, call in calls.items()}
    if "tune, outputs reused" in calls:
        prepared = variant(tuned.decision.chosen).prepare(task)
        ready["raw"] = prepared.flat.direct.graph.replay
    with torch.set_grad_enabled(task.gradients):  # once, not at every call
        refused |= _take_out_failing(ready)
        samples = interleave(ready, device=device, seconds=seconds)
    summaries = {key: summarize(values) for key, values in samples.items()}
    return {
        "name": name,
        "chosen": tuned.decision.chosen,
        "decided_in": tuned.decision.seconds,
        "times": {key: (item.median, item.low, item.high) for key, item in summaries.items()},
        "refused": refused,
    }


def _take_out_failing(ready: dict[str, Callable[[], object]]) -> dict[str, str]:
    """Modes that do not survive being called again and again, with their errors."""
    failing = {}
    for name, call in list(ready.items()):
        try:
            for _ in range(50):
                call()
        except RuntimeError as error:
            failing[name] = str(error).strip().splitlines()[0]
            del ready[name]
    return failing


def _plain(task: Task, call: Callable[..., Any]) -> Callable[[], object]:
    args = task.args
    return lambda: call(*args)


def table(rows: list[dict[str, object]], modes: list[str]) -> str:
    """The rows as Markdown, microseconds."""
    columns = ["eager", *modes, "tune", "tune, outputs reused", "raw"]
    columns = [name for name in columns if any(name in row["times"] for row in rows)]
    lines = ["| workload | " + " | ".join(columns) + " | chosen | best mode ÷ tune |", "|---|" + "---|" * (len(columns) + 2)]
    for row in rows:
        times = row["times"]
        cells = [f"{1e6 * times[name][0]:.1f}" if name in times else "–" for name in columns]
        lines.append(f"| {row['name']} | " + " | ".join(cells) + f" | {row['chosen']} | {ratio(row, modes):.2f} |")
    return "\n".join(lines)


def ratio(row: dict[str, object], modes: list[str]) -> float:
    """The best mode of torch.compile over `tune`."""
    times = row["times"]
    return min(times[mode][0] for mode in modes if mode in times) / times["tune"][0]


def main() -> None:
    """Measure, print, and keep the samples' summaries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds that tune may take")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--modes", nargs="*")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_float32_matmul_precision("high")
    modes = arguments.modes or MODES[arguments.device]
    rows = []
    for name in arguments.only or workloads(arguments.device):
        rows.append(measure(name, arguments.device, arguments.seconds, modes, arguments.budget))
        print(rows[-1]["refused"] or "")
        print(name, {key: round(1e6 * value[0], 1) for key, value in rows[-1]["times"].items()}, rows[-1]["chosen"], flush=True)
        torch.compiler.reset()
        if arguments.output:
            arguments.output.write_text(json.dumps(rows, indent=1))
    print(table(rows, modes))
    limit = 300e-6 if arguments.device == "cuda" else 200e-6
    small = [row for row in rows if min(row["times"][mode][0] for mode in modes if mode in row["times"]) < limit]
    if small:
        mean = math.exp(sum(math.log(ratio(row, modes)) for row in small) / len(small))
        print(f"best mode ÷ tune, geometric mean over {len(small)} workloads under {1e6 * limit:.0f} µs: {mean:.2f}")
    worst = max(row["times"]["tune"][0] / row["times"]["eager"][0] for row in rows)
    print(f"tune ÷ eager, worst: {worst:.3f}")
    graphs = [row["times"]["tune"][0] / row["times"]["raw"][0] for row in rows if "raw" in row["times"]]
    if graphs:
        print(f"tune ÷ raw replay: {min(graphs):.2f} to {max(graphs):.2f}")


if __name__ == "__main__":
    main()
