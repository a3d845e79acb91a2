"""`tune` against eager and every mode of torch.compile, on the workloads of `workloads.py`: one table per device.

    python benchmarks/tune.py [--device cpu|cuda] [--seconds 2] [--only NAME …] [--modes …]

Every figure is the median of interleaved samples in one process, with its 95 % interval. `raw` is a bare replay of the
recorded CUDA graph: no inputs, no check, no outputs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from rendering.compile_tables import tune_table
from stored_results import Measurement, add_output_argument
from workloads import workloads

from compile_inspect.timing.sampling import interleave, summarize
from compile_inspect.tuning import tune
from compile_inspect.tuning.selection import single_call
from compile_inspect.variants import RefusalError, Task, variant

MODES = {
    "cpu": ["inductor", "inductor/max-autotune-no-cudagraphs"],
    "cuda": ["inductor", "inductor/reduce-overhead", "inductor/max-autotune", "inductor/max-autotune-no-cudagraphs"],
}

MAX_SAMPLES = 200


def measure(name: str, device: str, seconds: float, modes: list[str], budget: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """One workload: eager, every mode, tune and, on CUDA, tune with reused outputs and a raw replay.

    Returns:
        Median seconds of each way with the 95 % interval of the median, and samples.
    """
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
    record = {
        "workload": name,
        "chosen": tuned.decision.chosen,
        "decision_seconds": tuned.decision.seconds,
        "times": {key: (item.median, item.low, item.high) for key, item in summaries.items()},
        "refused": refused,
    }
    return record, {way: values[:: 1 + len(values) // MAX_SAMPLES] for way, values in samples.items()}


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


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds that tune may take")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--modes", nargs="*")
    add_output_argument(parser, "tune_cpu or tune_cuda")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_float32_matmul_precision("high")
    modes = arguments.modes or MODES[arguments.device]
    result = f"tune_{arguments.device.partition(':')[0]}"
    measurement = Measurement(result, packages=("triton", "transformers"))
    records, samples = [], {}
    for name in arguments.only or workloads(arguments.device):
        record, samples[name] = measure(name, arguments.device, arguments.seconds, modes, arguments.budget)
        records.append(record)
        print(record["refused"] or "")
        medians = {way: round(1e6 * times[0], 1) for way, times in record["times"].items()}
        print(name, medians, record["chosen"], flush=True)
        torch.compiler.reset()
        notes = [f"At most {MAX_SAMPLES} samples of each way are stored, evenly spaced; the summary is that of all samples."]
        path = measurement.write(samples, summary=records, notes=notes, path=arguments.output)
    print(tune_table(records, result.removeprefix("tune_")))
    print(f"stored in {path}")


if __name__ == "__main__":
    main()
