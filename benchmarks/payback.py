"""Is the payback predicted from the first 50 calls the one that happens?

For every workload and variant, in a fresh process with an empty cache: build, take 50 interleaved calls of eager and of the
variant, predict after how many calls the build has paid back; then go on calling both in turn until the calls of eager, summed
up, really took as long as the build and the calls of the variant. Where that takes over 50,000 calls of each, or longer than
`--limit` seconds, the observed payback is the build divided by the mean gain of all calls made, and the table says so.

The 50 calls are spread over `--over` seconds, five at a time. A processor that is shared with others is at times half as fast
for eager, for a second or two, and next to as fast as ever for compiled code: calls right behind one another, some hundredths
of a second, see one or the other (`--over 0`). `--allocator keep` runs everything with MALLOC_MMAP_MAX_=0 and
MALLOC_TRIM_THRESHOLD_=1000000000: without, the C library gives the temporaries of a call back to the system at one time and
keeps them at another, which changes eager calls of the information scorer by a factor of two to four
(`Doubt.PAGE_FAULTS`).

`--clock cpu` counts the CPU time of the calling thread instead of wall time, for a machine that is shared with others: there
the 50 calls see another load than the minutes that follow. The build is wall time in both.

    python benchmarks/payback.py                 # one thread, some ten minutes
    python benchmarks/payback.py --clock cpu
    python benchmarks/payback.py --only GPT-2 --variants inductor
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from rendering.compile_tables import payback_row, payback_table
from stored_results import Measurement, add_output_argument

WORKLOADS = ("MLP, batch 32", "60 pointwise operations", "information scorer", "GPT-2, forward")
VARIANTS = ("inductor", "inductor-callable", "aot-inductor")
FIRST = 50
GROUP = 5
ALLOCATORS = {"default": {}, "keep": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000"}}
CHUNK = 200
MOST_CALLS = 50_000


def observe(name: str, variant_name: str, limit: float, clock_name: str, over: float) -> dict[str, object]:
    import torch
    from workloads import workloads

    from compile_inspect.timing.payback import predict_payback
    from compile_inspect.timing.sampling import interleave, sample_rounds
    from compile_inspect.variants import Task, variant

    clock = time.perf_counter if clock_name == "wall" else time.thread_time
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    task = Task.of(workloads(device)[name]())
    with torch.set_grad_enabled(task.gradients):
        eager = variant("eager").prepare(task)
        prepared = variant(variant_name).prepare(task)

        def bound(item):
            function = item.run if task.gradients or item.call is None else item.call
            return lambda: function(*task.args, **task.kwargs)

        calls = {"eager": bound(eager), "variant": bound(prepared)}
        first = sample_rounds(
            calls, device=task.device, seconds=0, rounds=FIRST, clock=clock, on_round=lambda number: pause(number, over)
        )
        samples = first.wall
        predicted = predict_payback(
            prepared.build_seconds,
            samples["eager"],
            samples["variant"],
            passing=first.passing_gain("eager", "variant"),
        )

        gained, done, crossed, started = 0.0, 0, None, time.monotonic()
        while True:
            for slow, fast in zip(samples["eager"], samples["variant"], strict=True):
                gained, done = gained + slow - fast, done + 1
                if gained >= prepared.build_seconds:
                    crossed = done
                    break
            if crossed is not None or done >= MOST_CALLS or time.monotonic() - started > limit:
                break
            samples = interleave(calls, device=task.device, seconds=0, rounds=CHUNK, clock=clock)
    extrapolated = None if gained <= 0 else round(prepared.build_seconds * done / gained)
    return {
        "build_seconds": prepared.build_seconds,
        "predicted_calls": predicted.calls,
        "low_calls": predicted.low,
        "high_calls": predicted.high,
        "unclear": predicted.unclear,
        "observed_calls": extrapolated if crossed is None else crossed,
        "crossed": crossed is not None,
        "calls": done,
    }


def pause(number: int, over: float) -> None:
    """Wait after every group of calls but the last, so that all of them take `over` seconds and a little.

    The processor is kept busy meanwhile: one that sleeps comes back slower, and takes dozens of calls to recover.
    """
    if number % GROUP == 0 and number < FIRST:
        until = time.perf_counter() + over / (FIRST // GROUP - 1)
        while time.perf_counter() < until:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--limit", type=float, default=120.0, help="most seconds to go on after the prediction")
    parser.add_argument("--over", type=float, default=8.0, help="seconds over which the first 50 calls are spread")
    parser.add_argument("--allocator", choices=tuple(ALLOCATORS), default="default")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--child", nargs=2, metavar=("WORKLOAD", "VARIANT"), help=argparse.SUPPRESS)
    add_output_argument(parser, "payback")
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(observe(*arguments.child, arguments.limit, arguments.clock, arguments.over)))
        return
    notes = ["One thread."]
    measurement, records = Measurement("payback", packages=("transformers",)), []
    for name in WORKLOADS:
        if arguments.only not in name:
            continue
        for variant_name in arguments.variants.split(","):
            with tempfile.TemporaryDirectory() as cache:
                options = ["--limit", str(arguments.limit), "--clock", arguments.clock, "--over", str(arguments.over)]
                command = [sys.executable, __file__, "--child", name, variant_name, *options]
                environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, **ALLOCATORS[arguments.allocator]}
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                notes.append(f"{name}, {variant_name} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
                print(notes[-1], flush=True)
                continue
            record = {"workload": name, "variant": variant_name, **json.loads(done.stdout.strip().splitlines()[-1])}
            records.append(record)
            print(" | ".join(payback_row(record)), flush=True)
    print("\n" + payback_table(records))
    print(f"stored in {measurement.write(records, notes=notes, path=arguments.output)}")


if __name__ == "__main__":
    main()
