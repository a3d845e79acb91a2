"""What the solver adds: run time ÷ (evaluations made × what each costs by itself), without compilation.

An evaluation is of one of three kinds, counted by the run itself (`Result.costs`): values, the gradient of one scalar, and
the gradient of f with the Jacobian of the constraints. What each costs by itself is measured in the same process, after
the run, at points that it evaluated, with the user's function and `torch.autograd` alone: values recorded for
differentiation, a backward pass of f + Σc, and a backward pass of f with the Jacobian row by row or in one batch,
whichever is cheaper. A backward pass is that of a graph just recorded: the time of values and derivatives together minus
that of the values. (Through a graph that was used before it takes about two thirds of that; a point whose gradient and
Jacobian are both taken is charged twice the full price.) Nothing is copied to numpy and nothing flattened. The strict
ratio charges values without gradient at what they cost without being recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

from rendering.solver_speed import overhead_records, overhead_table
from rendering.tables import number

from solver_timing.processes import WorkerError, measure

NAMES = ("A1", "A3", "B1", "B2", "B3big", "C1big", "C2", "D3")
REPEATS, REPEAT_SECONDS = 7, 3.0
POINTS = 12
"""Points of the run, from the first to the last, at which the cost of evaluations is measured."""
BATCH_SECONDS, BATCHES = 0.005, 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="processes for each problem (3)")
    parser.add_argument("--only", default=",".join(NAMES), metavar="PROBLEMS", help="names, with commas between them")


def seconds_per_call(function: Callable[[], object]) -> float:
    """The median over some batches of calls."""
    function()
    began = perf_counter()
    function()
    count = max(1, int(BATCH_SECONDS / max(perf_counter() - began, 1e-7)))
    samples = []
    for _ in range(BATCHES):
        began = perf_counter()
        for _ in range(count):
            function()
        samples.append((perf_counter() - began) / count)
    return statistics.median(samples)


def bare(problem: Any, x: Any) -> dict[str, float]:
    """What evaluations of each kind cost at x, a flat tensor, by the user's function and autograd alone."""
    import torch
    from torch import nn

    module = problem.variables if isinstance(problem.variables, nn.Module) else None
    if module is not None:
        nn.utils.vector_to_parameters(x.reshape(-1), module.parameters())
        argument: Any = module
        leaves = list(module.parameters())
    else:
        argument = {name: part.detach().clone().requires_grad_() for name, part in problem.unflatten(x).items()}
        leaves = list(argument.values())

    def values() -> tuple[Any, Any]:
        f, inequalities, equalities = problem.function(argument)
        blocks = [block.reshape(-1) for block in [*(equalities or ()), *(inequalities or ())]]
        return f, blocks[0] if len(blocks) == 1 else torch.cat(blocks) if blocks else None

    def unrecorded() -> None:
        with torch.no_grad():
            values()

    def backward(outputs: list[Any], weights: list[Any], *, batched: bool = False) -> None:
        torch.autograd.grad(
            outputs, leaves, weights, retain_graph=True, allow_unused=True, materialize_grads=True, is_grads_batched=batched
        )

    def with_gradient() -> None:
        outputs = [output for output in values() if output is not None]
        backward(outputs, [torch.ones_like(output) for output in outputs])

    def row_by_row() -> None:
        f, c = values()
        backward([f], [torch.ones_like(f)])
        for row in torch.eye(c.numel(), dtype=c.dtype):
            backward([c], [row])

    def in_one_batch() -> None:
        f, c = values()
        backward([f], [torch.ones_like(f)])
        backward([c], [torch.eye(c.numel(), dtype=c.dtype)], batched=True)

    forward, gradient = seconds_per_call(values), seconds_per_call(with_gradient)
    jacobian = gradient if values()[1] is None else cheapest(in_one_batch, row_by_row)
    return {
        "values": forward,
        "unrecorded": seconds_per_call(unrecorded),
        "gradients": gradient - forward,
        "jacobians": jacobian - forward,
    }


def cheapest(*ways: Callable[[], object]) -> float:
    """The time of the fastest of several ways that works."""
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch tells of operations it batches by a loop
        for way in ways:
            with contextlib.suppress(RuntimeError):  # an operation without a batching rule
                times.append(seconds_per_call(way))
    return min(times)


def visited(problem: Any, options: dict[str, Any]) -> list[Any]:
    """Some of the points at which a run evaluates the function, evenly spaced, as flat tensors."""
    import torch

    from nonsmooth import minimize
    from solver_timing import solving

    points: list[Any] = []
    function, start, ours = solving.minimize_arguments(problem)

    def noting(x: Any) -> Any:
        parts = x.parameters() if isinstance(x, torch.nn.Module) else x.values() if isinstance(x, dict) else [x]
        points.append(torch.cat([part.detach().reshape(-1) for part in parts]))
        return function(x)

    minimize(noting, start, **ours, **options)
    places = [round(index * (len(points) - 1) / (POINTS - 1)) for index in range(POINTS)]
    return [points[place] for place in places]


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: the run, and what its evaluations cost by themselves at the points it went through."""
    from nonsmooth import minimize
    from problems import PUBLISHED
    from solver_timing import solving

    function, start, options = solving.minimize_arguments(solving.small())
    minimize(function, start, **options)
    make = PUBLISHED[request["problem"]]
    eager = {"compile": "never"} if solving.has_compile_option() else {}
    runs: list[dict[str, Any]] = []
    began = perf_counter()
    while not runs or (len(runs) < REPEATS and perf_counter() - began < REPEAT_SECONDS):
        problem = make()
        function, start, options = solving.minimize_arguments(problem)
        call = perf_counter()
        result = minimize(function, start, **options, **eager)
        runs.append({"seconds": perf_counter() - call, "time": dict(result.time)})
    problem = make()
    measured = [bare(problem, point) for point in visited(make(), eager)]
    costs = {kind: statistics.fmean(each[kind] for each in measured) for kind in measured[0]}
    typical = sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]
    counts = result.costs
    recorded = min(counts.values, counts.gradients + counts.jacobians)
    derivatives = counts.gradients * costs["gradients"] + counts.jacobians * costs["jacobians"]
    needed = counts.values * costs["values"] + derivatives
    strict = recorded * costs["values"] + (counts.values - recorded) * costs["unrecorded"] + derivatives
    return {
        **typical,
        "status": result.status.name,
        "iterations": result.iterations,
        "counts": {"values": counts.values, "gradients": counts.gradients, "jacobians": counts.jacobians},
        "bare": costs,
        "needed": needed,
        "ratio": typical["seconds"] / needed,
        "strict": typical["seconds"] / strict,
    }


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    names = [name for name in options.only.split(",") if name]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            try:
                rounds[name].append(measure("overhead.solve", {"problem": name}))
            except WorkerError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            print(f"{name}: {number(rounds[name][-1]['ratio'])}", file=sys.stderr, flush=True)
    return rounds, overhead_table(overhead_records(rounds))
