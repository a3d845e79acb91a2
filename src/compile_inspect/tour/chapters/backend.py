"""A chapter of the tour: a backend of one's own, passed as a function and registered under a name."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.records import Stage
from compile_inspect.tour.calls import difference, model_name, result_of
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

NAME = "compile_inspect_tour"
_CHOICES = ("once for every call of the model", "once for every graph that Dynamo captures", "once for every operation")


class SpelledGelu:
    """A backend: counts the operations it is given, and replaces each gelu by the formula it stands for."""

    def __init__(self) -> None:
        self.graphs: list[Counter[str]] = []
        self.replaced = 0
        self.runs = 0

    def __call__(self, graph: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        """Take a graph and inputs like those it will get; give something that is called with such inputs."""
        import torch

        def spelled(hidden: Any, approximate: str = "none") -> Any:
            return 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))

        counts: Counter[str] = Counter()
        for node in graph.graph.nodes:
            if node.op in ("call_function", "call_method", "call_module"):
                counts[getattr(node.target, "__name__", str(node.target))] += 1
            if node.target is torch.nn.functional.gelu and node.kwargs.get("approximate", "none") == "none":
                node.target = spelled
                self.replaced += 1
        graph.recompile()
        self.graphs.append(counts)

        def run(*inputs: Any) -> Any:
            self.runs += 1
            return graph.forward(*inputs)

        return run


@dataclass(frozen=True)
class BackendCalls:
    """What one model gave the backend to do."""

    model: str
    calls: int
    graphs: tuple[tuple[tuple[str, int], ...], ...]
    """The operations of each graph the backend was called with, and how often each occurs."""
    replaced: int
    runs: int
    difference: float | None
    """From eager, at the same inputs, seed and state; None where eager differs from itself there."""
    captured: int = 0
    """Graphs that Dynamo captured, as the recording tells."""

    @property
    def operations(self) -> int:
        """Operations of all graphs together."""
        return sum(number for graph in self.graphs for _, number in graph)


@dataclass(frozen=True)
class CustomBackend:
    """What `run_custom_backend` has seen; `listed` says whether torch listed the backend while it was registered."""

    models: tuple[BackendCalls, ...]
    listed: bool
    listed_afterwards: bool

    @property
    def verdict(self) -> int | None:
        """Which choice of the quiz fits every model; None where the backend was never called, or none fits."""
        seen = [len(item.graphs) for item in self.models]
        # That it is called for each graph comes first: in a model of three calls and three graphs the others fit too.
        fitting = {
            1: [item.captured for item in self.models],
            0: [item.calls for item in self.models],
            2: [item.operations for item in self.models],
        }
        return next((choice for choice, numbers in fitting.items() if any(seen) and numbers == seen), None)

    def answer(self) -> tuple[str, ...]:
        """What the backend was called with, and what came out."""
        told = [
            f"{item.model} was called {count(item.calls, 'time')}. The backend was called {count(len(item.graphs), 'time')}, "
            f"with {count(item.operations, 'operation')} in all, and what it returned ran {count(item.runs, 'time')}."
            for item in self.models
        ]
        changed = [item for item in self.models if item.replaced]
        for item in changed:
            told.append(f"In {item.model} it replaced {count(item.replaced, 'gelu')}.")
            if item.difference is not None:
                told[-1] = f"{told[-1][:-1]}; the result differs from that of eager by {item.difference:.1g}."
        unchanged = [item.difference for item in self.models if not item.replaced and item.difference is not None]
        if unchanged:
            told.append(f"Where it replaced nothing, the difference from eager is {max(unchanged):.1g}.")
        for item in self.models:
            if item.difference is None:
                told.append(f"{item.model} gives other results in eager itself, from the same seed: it cannot be compared.")
        if self.listed:
            told.append(f"While it was registered, torch.compiler.list_backends() had {NAME!r} among its names.")
        return tuple(told)


def run_custom_backend(target: Target | None = None, *, guide: Guide | None = None) -> CustomBackend:
    """Register a backend, compile with it by name, and see what it is called with.

    Without a target it compiles the tour's MLP, which is one graph, and the model that prints, which is two.
    """
    import torch

    from compile_inspect import torch_private
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    targets = [target] if target else [guide.model(name) for name in ("mlp", "chatty")]
    guide.guess("When is a backend called?", _CHOICES)
    guide.listing("A backend", inspect.getsource(SpelledGelu), language="python", most=60)
    guide.listing(
        "Two ways to use it",
        "torch.compile(model, backend=SpelledGelu())\n\n"
        f'torch._dynamo.register_backend(SpelledGelu(), name="{NAME}")\ntorch.compile(model, backend="{NAME}")',
        language="python",
    )
    models, listed = [], True
    for item in targets:
        backend = SpelledGelu()
        with torch_private.registered_backend(NAME, backend):
            listed = listed and NAME in torch.compiler.list_backends()
            models.append(_run(item, backend))
    found = CustomBackend(tuple(models), listed, NAME in torch.compiler.list_backends())
    _show(found, guide)
    return found


def _run(target: Target, backend: SpelledGelu, calls: int = 3) -> BackendCalls:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    with silence(), torch.no_grad():
        expected, again = result_of(target), result_of(target)
        compiled: Callable[..., Any] = torch.compile(target.function, backend=NAME)
        with record() as recording:
            for _ in range(calls):
                result = result_of(target, compiled)
    torch_private.forget_compiled_code()
    return BackendCalls(
        model_name(target),
        calls,
        tuple(tuple(counts.items()) for counts in backend.graphs),
        backend.replaced,
        backend.runs,
        None if difference(again, expected) else difference(result, expected),
        len(recording.inspection.graphs_at(Stage.DYNAMO)),
    )


def _show(found: CustomBackend, guide: Guide) -> None:
    rows = [
        [item.model, str(number), ", ".join(f"{name} {times}" if times > 1 else name for name, times in graph)]
        for item in found.models
        for number, graph in enumerate(item.graphs, start=1)
    ]
    guide.table("What the backend was called with", ["Model", ">Graph", "Operations"], rows)
    columns = ["Model", ">Calls of the model", ">Graphs", ">Runs of a graph", ">Replaced", ">Difference from eager"]
    totals = [
        [
            item.model,
            *(str(item.calls), str(len(item.graphs)), str(item.runs), str(item.replaced)),
            "-" if item.difference is None else f"{item.difference:.1g}",
        ]
        for item in found.models
    ]
    guide.table("How often it was called", columns, totals)
    verdict = found.verdict
    if verdict is not None:
        guide.settle(verdict)
