"""Inspect one function: compile it, run it forward and backward, and look at the evidence.

The function calls print, which torch cannot trace: one graph ends before that line, and another begins after it.

    python examples/inspect_a_function.py
"""

import torch

import compile_inspect
from compile_inspect.records import Stage


def penalty(x):
    norm = x.square().sum()
    print("norm is computed")  # a graph break: print is not traced
    return torch.log1p(norm)


def main():
    inspection = compile_inspect.inspect(penalty, torch.ones(8, requires_grad=True))

    for compilation in inspection.compilations:
        print(f"{compilation.id}  {compilation.function}: {compilation.outcome.value}")
    for cause in inspection.breaks:
        print(f"\n{cause.kind} ({cause.identifier})")
        print(f"  at {cause.location}: {cause.location.code}")
        print(f"  {cause.effect.value}")
        print(f"  {cause.explanation}")
    for graph in inspection.graphs_at(Stage.DYNAMO):
        print(f"\ngraph of {graph.compilation}: {graph.call_counts}")


if __name__ == "__main__":
    main()
