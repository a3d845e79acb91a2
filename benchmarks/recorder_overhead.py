"""What recording costs: compile time of a GPT-2 with everything recorded, divided by plain compile time.

Every measurement is a fresh process with caches off and an empty cache directory. The ways of looking at a compilation
take turns, so that a busy spell of the machine hits all of them, and each round gives one ratio per way:

    plain       torch.compile, forward and backward
    recorded    the same inside compile_inspect.record(path), the writing of the capture included
    tlparse     the same with TORCH_TRACE, and then tlparse on the log
    explain     torch._dynamo.explain first, which is how breaks are usually looked up, then the same

    python benchmarks/recorder_overhead.py --rounds 7
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rendering.compile_tables import overhead_records, overhead_table
from stored_results import Measurement, add_output_argument

WAYS = ("plain", "recorded", "tlparse", "explain")
ROOT = Path(__file__).resolve().parent.parent


def child(way: str, folder: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=1000, n_positions=128))
    tokens = torch.randint(0, 1000, (4, 64))
    # Importing the compiler takes seconds and is not compilation; every way needs it.
    import torch._dynamo
    import torch._inductor.compile_fx

    if way == "recorded":
        import compile_inspect

    wall, processor = time.perf_counter(), cpu_seconds()
    if way == "recorded":
        with compile_inspect.record(folder / "gpt2.inspection"):
            step(model, tokens)
    else:
        if way == "explain":
            torch._dynamo.explain(model)(input_ids=tokens, labels=tokens)
        step(model, tokens)
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - processor}))


def step(model, tokens) -> None:
    import torch

    torch.compile(model)(input_ids=tokens, labels=tokens).loss.backward()


def cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(way: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        if way == "tlparse":
            environment["TORCH_TRACE"] = str(folder / "trace")
        command = [sys.executable, __file__, "--child", way, "--folder", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{way} failed:\n{done.stderr[-2000:]}")
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if way == "tlparse":
            start = time.perf_counter()
            log = next((folder / "trace").glob("*.log"))
            parser = shutil.which("tlparse", path=str(Path(sys.executable).parent)) or "tlparse"
            command = [parser, str(log), "-o", str(folder / "report"), "--no-browser"]
            subprocess.run(command, check=True, capture_output=True)
            result["wall"] += time.perf_counter() - start
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    add_output_argument(parser, "recorder_overhead")
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder)
        return
    ways = ["plain", *(way for way in options.ways if way != "plain")]
    if "tlparse" in ways and not (shutil.which("tlparse", path=str(Path(sys.executable).parent)) or shutil.which("tlparse")):
        print("tlparse is not installed (pip install tlparse): left out", file=sys.stderr)
        ways.remove("tlparse")
    measurement = Measurement("recorder_overhead", packages=("transformers", "tlparse"))
    samples: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(options.rounds):
        # Each round starts with another way, so that none always follows the same neighbor.
        for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            samples[way].append(measure(way))
            print(
                f"round {number + 1}: {way:9} {samples[way][-1]['wall']:6.1f} s wall, {samples[way][-1]['cpu']:6.1f} s CPU",
                flush=True,
            )
    print("\n" + overhead_table(overhead_records(samples)))
    print(f"stored in {measurement.write(samples, path=options.output)}")


if __name__ == "__main__":
    main()
