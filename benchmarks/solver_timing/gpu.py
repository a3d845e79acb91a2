"""On a GPU: dictionary learning, the trace problem and LeNet-5 in float64.

PyGRANSO is measured too if --pygranso-python is given. Before the clock starts, a small problem is solved and the functions of
the problem are evaluated and differentiated once, for both solvers: loading the kernels they need takes CUDA a tenth of a
second. (`--cold` leaves the second of these out.) `--device cpu` runs the same on a CPU. Where `minimize` has the option
`compile`, every problem is run with "never" and "auto", in turns.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

from rendering.solver_growth import gpu_records, gpu_table

from solver_timing.processes import WorkerError, measure
from solver_timing.solving import has_compile_option

NAMES = ("dictionary, n = 30", "dictionary, n = 100", "trace 50×10", "LeNet-5")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="processes for each problem (3)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, cpu (cuda)")
    parser.add_argument("--only", default="", metavar="WORDS", help="problems whose names contain one of these")
    parser.add_argument("--cold", action="store_true", help="do not evaluate the functions before the clock starts")
    parser.add_argument("--iterations", type=int, help="at most, for a short trial")


def make(name: str) -> Any:
    """A problem by its name in the table."""
    from problems.published import dictionary_learning, trace
    from problems.published_networks import convolutional_network

    makers = {
        "dictionary, n = 30": lambda: dictionary_learning(30),
        "dictionary, n = 100": lambda: dictionary_learning(100),
        "trace 50×10": lambda: trace(50, 10),
        "LeNet-5": convolutional_network,
    }
    return makers[name]()


def load_kernels(request: dict[str, Any]) -> None:
    """Evaluate and differentiate the functions of a problem once."""
    import torch

    from solver_timing.solving import minimize_arguments

    if request["cold"]:
        return
    function, start, _ = minimize_arguments(make(request["problem"]))
    if isinstance(start, torch.nn.Module):
        start = start.to(request["device"])
        leaves = list(start.parameters())
    elif isinstance(start, dict):
        start = {name: value.to(request["device"]).requires_grad_() for name, value in start.items()}
        leaves = list(start.values())
    else:
        start = start.to(request["device"]).requires_grad_()
        leaves = [start]
    answer = function(start)
    parts = answer if isinstance(answer, tuple | list) else (answer,)
    tensors = [item for part in parts if part is not None for item in (part if isinstance(part, tuple | list) else (part,))]
    torch.autograd.grad(sum(item.sum() for item in tensors), leaves, allow_unused=True)
    if leaves[0].is_cuda:
        torch.cuda.synchronize()


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one run."""
    import torch

    from nonsmooth import minimize
    from solver_timing import solving

    device = torch.device(request["device"])
    chosen = {} if request["compile"] is None else {"compile": request["compile"]}
    load_kernels(request)
    for problem in (solving.small(), make(request["problem"])):
        function, start, options = solving.minimize_arguments(problem)
        start = {name: value.to(device) for name, value in start.items()} if isinstance(start, dict) else start.to(device)
        if request["iterations"]:
            options["max_iterations"] = request["iterations"]
        began, good = perf_counter(), request.get("good")
        reached: list[float] = []

        def look(state: Any, good: Any = good, began: float = began, reached: list[float] = reached) -> None:
            if good and not reached and state.f <= good[0] and state.violation <= good[1]:
                reached.append(perf_counter() - began)

        result = minimize(function, start, callback=look, **options, **(chosen if problem.name != "small" else {}))
        seconds = perf_counter() - began
    return {
        "seconds": seconds,
        "until_as_good": reached[0] if reached else None,
        "iterations": result.iterations,
        "milliseconds_per_iteration": 1e3 * seconds / max(1, result.iterations),
        "evaluations": result.evaluations,
        "f": result.f,
        "violation": result.violation,
        "status": result.status.name,
        "time": dict(result.time),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "torch": torch.__version__,
    }


def solve_by_peer(request: dict[str, Any]) -> dict[str, Any]:
    """The same by PyGRANSO, in its environment."""
    from solver_timing import solving

    solving.by_peer(solving.small(), request["device"])
    load_kernels(request)
    problem = make(request["problem"])
    run = solving.by_peer(problem, request["device"])
    return {
        **{key: run[key] for key in ("seconds", "iterations", "status", "f", "violation")},
        "evaluations": len(run["evaluations"]["f"]),
        "milliseconds_per_iteration": 1e3 * run["seconds"] / max(1, run["iterations"]),
    }


def busy(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: the part of a run during which the device computed or copied, by torch's profiler."""
    import torch

    from nonsmooth import minimize
    from solver_timing import solving

    spans: list[tuple[float, float]] = []
    for _ in range(2):
        function, start, options = solving.minimize_arguments(make(request["problem"]))
        start = {name: value.to(request["device"]) for name, value in start.items()}
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds) as profile:
            began = perf_counter()
            minimize(function, start, **options)
            torch.cuda.synchronize()
            profiled = perf_counter() - began
        began = perf_counter()
        minimize(function, start, **options)
        plain = perf_counter() - began
        on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        spans = sorted((event.time_range.start, event.time_range.end) for event in on_device)
    total, until = 0.0, float("-inf")
    for first, last in spans:
        total += max(0.0, last - max(first, until))
        until = max(until, last)
    return {"device_seconds": 1e-6 * total, "seconds": plain, "profiled_seconds": profiled, "events": len(spans)}


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    words = [word.strip() for word in options.only.split(",") if word.strip()]
    names = [name for name in NAMES if not words or any(word in name for word in words)]
    kinds = ["never", "auto"] if has_compile_option() else [None]
    ours: dict[str, dict[str, list[dict[str, Any]]]] = {name: {str(kind): [] for kind in kinds} for name in names}
    peers: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            request = {"problem": name, "device": options.device, "iterations": options.iterations, "cold": options.cold}
            try:
                if options.pygranso_python:
                    peers[name].append(measure("gpu.solve_by_peer", request, python=options.pygranso_python))
                    f, violation = peers[name][-1]["f"], peers[name][-1]["violation"]
                    request["good"] = (f + 1e-6 * (1 + abs(f)), max(1e-6, violation))
                for kind in kinds:
                    ours[name][str(kind)].append(measure("gpu.solve", {**request, "compile": kind}))
            except WorkerError as error:
                print(f"{name}: {error}", file=sys.stderr)
    shares = {}
    if options.device.startswith("cuda"):
        for name in names:
            if name != "LeNet-5":
                shares[name] = measure("gpu.busy", {"problem": name, "device": options.device})
    measured = {"ours": ours, "peer": peers, "busy": shares}
    return measured, gpu_table(gpu_records(measured))
