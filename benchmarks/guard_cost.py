"""What the guard in front of a tuned callable costs: the check beside the eager call, in one run.

    python benchmarks/guard_cost.py [--rounds 15]

Checks are timed twice: many in a row, with everything they read in the processor's caches, and each after an eager call,
as it is where the model runs in between. A figure is the median of the rounds, a ratio the median of theirs with its range.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from rendering.compile_tables import guard_table
from stored_results import Measurement, add_output_argument
from torch import Tensor, nn

from compile_inspect.tuning.fused_call import Body, fuse
from compile_inspect.variants import Task


class Block(nn.Module):
    """Norm, layer, activation, and the way around them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer, self.activation = nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.activation(self.layer(self.norm(x)))


def five(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor) -> Tensor:
    return a * b + c * d + e


def blocks(count: int) -> tuple[Any, tuple[Any, ...]]:
    return nn.Sequential(*(Block() for _ in range(count))).eval(), (torch.randn(8, 64),)


def bert() -> tuple[Any, tuple[Any, ...]]:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=128, num_hidden_layers=12, num_attention_heads=4, intermediate_size=256, vocab_size=500)
    return BertModel(config).eval(), (torch.arange(16)[None],)


def resnet() -> tuple[Any, tuple[Any, ...]]:
    from transformers import ResNetConfig, ResNetModel

    config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[2, 2, 2, 2], layer_type="basic")
    return ResNetModel(config).eval(), (torch.randn(1, 3, 64, 64),)


PROGRAMS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "function of five tensors": lambda: (five, tuple(torch.randn(10) for _ in range(5))),
    "4 blocks": lambda: blocks(4),
    "12 blocks": lambda: blocks(12),
    "48 blocks": lambda: blocks(48),
    "BERT, 12 layers": bert,
    "ResNet-18": resnet,
}


def seconds(call: Callable[[], Any], least: float = 0.02) -> float:
    """Seconds per call over a stretch of at least so many seconds."""
    count, started = 0, perf_counter()
    while perf_counter() - started < least:
        call()
        count += 1
    return (perf_counter() - started) / count


def seconds_after(other: Callable[[], Any], call: Callable[[], Any], times: int = 40) -> float:
    """Median seconds of a call that comes after another one."""
    samples = []
    for _ in range(times):
        other()
        started = perf_counter()
        call()
        samples.append(perf_counter() - started)
    return median(samples)


def measure(name: str, rounds: int) -> dict[str, Any]:
    function, args = PROGRAMS[name]()
    guard = Task(function, args).program.guard
    checked = fuse(guard, Body(("return True",), {}), lambda args, kwargs: False)
    with torch.no_grad():
        assert checked(*args) is True
        checks, after_model, eager = [], [], []
        for _ in range(rounds):
            checks.append(seconds(lambda: checked(*args)))
            after_model.append(seconds_after(lambda: function(*args), lambda: checked(*args)))
            eager.append(seconds(lambda: function(*args)))
    return {
        "program": name,
        "eager_seconds": median(eager),
        "check_seconds": median(checks),
        "check_after_model_seconds": median(after_model),
        "ratios": sorted(one / other for one, other in zip(checks, eager, strict=True)),
        "ratios_after_model": sorted(one / other for one, other in zip(after_model, eager, strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    add_output_argument(parser, "guard_cost")
    parser.add_argument("--only", default=";".join(PROGRAMS), metavar="PROGRAMS", help="names, separated by semicolons")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    measurement = Measurement("guard_cost", packages=("transformers",))
    records = [measure(name, arguments.rounds) for name in arguments.only.split(";")]
    print(guard_table(records))
    print(f"stored in {measurement.write(records, notes=('One thread.',), path=arguments.output)}")


if __name__ == "__main__":
    main()
