"""Tune the model of a serving loop whose requests have varying batch sizes.

`compile_inspect.tune` compares each variant with eager at an example, times those that agree, and returns the fastest as
a callable. It is specialized to the shapes of that example: a request of another size runs in eager mode, and `fallbacks`
counts those calls. The example serves the requests in three ways: eagerly, with the tuned model as the requests arrive,
and with the tuned model after padding every request to one size. The three take turns request by request, so that the load
of the machine affects all of them alike.

    python examples/tune_a_server.py
"""

import time
from collections import Counter
from dataclasses import dataclass, field

import torch

import compile_inspect

SIZE, FEATURES, REQUESTS = 8, 32, 600


class Scorer(torch.nn.Module):
    """Many small operations, which eager launches one by one."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(FEATURES)
        self.first = torch.nn.Linear(FEATURES, 64)
        self.second = torch.nn.Linear(64, 16)

    def forward(self, features):
        hidden = torch.nn.functional.gelu(self.first(self.norm(features)))
        probabilities = torch.softmax(self.second(hidden), dim=-1)
        entropy = -(probabilities * torch.log(probabilities + 1e-8)).sum(dim=-1)
        return torch.sigmoid(3 - 2 * entropy) * probabilities.max(dim=-1).values


def draw_requests():
    """A quarter of the requests are full; the others have any size."""
    sizes = torch.where(torch.rand(REQUESTS) < 0.25, SIZE, torch.randint(1, SIZE, (REQUESTS,)))
    return [torch.randn(size, FEATURES) for size in sizes.tolist()]


def padded(scorer):
    """Serve any request of up to SIZE rows through one shape."""
    space = torch.zeros(SIZE, FEATURES)

    def serve(features):
        count = len(features)
        space[:count] = features  # later rows hold earlier requests; their scores are dropped below
        return scorer(space)[:count].clone()

    return serve


@dataclass
class ServingStatistics:
    """Measurements of one way of serving."""

    microseconds: list[float] = field(default_factory=list)
    answers: list[torch.Tensor] = field(default_factory=list)
    fallbacks: Counter[int] = field(default_factory=Counter)
    """How many requests of each size ran in eager mode instead."""


def serve(ways, requests, count_fallbacks):
    """Serve every request in every way. The first fifty are also served once before, untimed."""
    statistics = {name: ServingStatistics() for name in ways}
    with torch.no_grad():
        for way in ways.values():
            for features in requests[:50]:
                way(features)
        for features in requests:
            for name, way in ways.items():
                before = count_fallbacks()
                start = time.perf_counter()
                answer = way(features)
                statistics[name].microseconds.append(1e6 * (time.perf_counter() - start))
                statistics[name].answers.append(answer)
                statistics[name].fallbacks[len(features)] += count_fallbacks() - before
    return statistics


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a request is too small to share
    scorer = Scorer().eval()
    requests = draw_requests()
    # A package is usually the fastest on a CPU; a trace is built in no time. Without `variants`, all that may pay are tried.
    fast = compile_inspect.tune(scorer, torch.randn(SIZE, FEATURES), variants=["aot-inductor", "torchscript/trace"])
    print(fast.decision)

    ways = {"eager": scorer, "tuned": fast, "tuned, padded": padded(fast)}
    statistics = serve(ways, requests, lambda: fast.fallbacks)
    print(f"\n{'':14} {'p50 µs':>8} {'p99 µs':>8} {'fell back':>10} {'largest difference':>19}")
    for name, served in statistics.items():
        p50, p99 = torch.tensor(served.microseconds).quantile(torch.tensor([0.5, 0.99])).tolist()
        pairs = zip(served.answers, statistics["eager"].answers, strict=True)
        difference = max((answer - reference).abs().max().item() for answer, reference in pairs)
        print(f"{name:14} {p50:8.1f} {p99:8.1f} {served.fallbacks.total():10} {difference:19.1e}")
    sizes = {size: count for size, count in sorted(statistics["tuned"].fallbacks.items()) if count}
    full = sum(len(features) == SIZE for features in requests)
    print(f"\nrequests {len(requests)}, of which {full} have the tuned size")
    print(f"the tuned model fell back to eager for sizes {sizes}")


if __name__ == "__main__":
    main()
