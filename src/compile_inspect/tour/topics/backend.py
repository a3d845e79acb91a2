"""A topic of the tour: a custom backend, passed as a function and registered under a name."""

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


class ExplicitGelu:
    """A backend that counts the operations it receives and replaces each gelu with its formula."""

    def __init__(self) -> None:
        self.graphs: list[Counter[str]] = []
        self.replaced = 0
        self.runs = 0

    def __call__(self, graph: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        """Take a graph and example inputs; return a callable that takes such inputs."""
        import torch

        def explicit_gelu(hidden: Any, approximate: str = "none") -> Any:
            return 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))

        counts: Counter[str] = Counter()
        for node in graph.graph.nodes:
            if node.op in ("call_function", "call_method", "call_module"):
                counts[getattr(node.target, "__name__", str(node.target))] += 1
            if node.target is torch.nn.functional.gelu and node.kwargs.get("approximate", "none") == "none":
                node.target = explicit_gelu
                self.replaced += 1
        graph.recompile()
        self.graphs.append(counts)

        def run(*inputs: Any) -> Any:
            self.runs += 1
            return graph.forward(*inputs)

        return run


@dataclass(frozen=True)
class BackendCalls:
    """How often one model called the backend, and with which graphs."""

    model: str
    calls: int
    graphs: tuple[tuple[tuple[str, int], ...], ...]
    """The operations of each graph that the backend received, and how often each occurs."""
    replaced: int
    runs: int
    difference: float | None
    """From eager with the same inputs, seed and state; None where two eager calls differ."""
    captured: int = 0
    """Graphs that Dynamo captured, according to the recording."""

    @property
    def operations(self) -> int:
        """Operations of all graphs together."""
        return sum(number for graph in self.graphs for _, number in graph)


@dataclass(frozen=True)
class CustomBackend:
    """The results of `run_custom_backend`; `listed` says whether torch listed the backend while it was registered."""

    models: tuple[BackendCalls, ...]
    listed: bool
    listed_afterwards: bool

    @property
    def correct_choice(self) -> int | None:
        """The quiz choice that fits every model; None where the backend was never called or no choice fits."""
        backend_calls = [len(item.graphs) for item in self.models]
        # One call for each graph comes first: for a model with three calls and three graphs, other choices fit too.
        expected_calls = {
            1: [item.captured for item in self.models],
            0: [item.calls for item in self.models],
            2: [item.operations for item in self.models],
        }
        return next(
            (choice for choice, numbers in expected_calls.items() if any(backend_calls) and numbers == backend_calls), None
        )

    def answer(self) -> tuple[str, ...]:
        """How often the backend was called, and how its results compare with eager."""
        sentences = [
            f"{item.model} was called {count(item.calls, 'time')}. The backend was called {count(len(item.graphs), 'time')}, "
            f"with {count(item.operations, 'operation')} in all; the callables it returned ran {count(item.runs, 'time')}."
            for item in self.models
        ]
        changed = [item for item in self.models if item.replaced]
        for item in changed:
            sentences.append(f"In {item.model}, it replaced {count(item.replaced, 'gelu')}.")
            if item.difference is not None:
                sentences[-1] = f"{sentences[-1][:-1]}; the result differs from eager by {item.difference:.1g}."
        unchanged = [item.difference for item in self.models if not item.replaced and item.difference is not None]
        if unchanged:
            sentences.append(f"Where it replaced nothing, the result differs from eager by {max(unchanged):.1g}.")
        for item in self.models:
            if item.difference is None:
                sentences.append(f"{item.model} could not be compared: two eager calls with the same seed differ.")
        if self.listed:
            sentences.append(f"While it was registered, torch.compiler.list_backends() included {NAME!r}.")
        return tuple(sentences)


def run_custom_backend(target: Target | None = None, *, guide: Guide | None = None) -> CustomBackend:
    """Register a backend, compile with it by name, and record what it is called with.

    The default targets are the tour's MLP, which is one graph, and a model that prints, which is two.
    """
    import torch

    from compile_inspect import torch_private
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    targets = [target] if target else [guide.model(name) for name in ("mlp", "chatty")]
    guide.ask("When is a backend called?", _CHOICES)
    guide.listing("A backend", inspect.getsource(ExplicitGelu), language="python", max_lines=60)
    guide.listing(
        "Two ways to use it",
        "torch.compile(model, backend=ExplicitGelu())\n\n"
        f'torch._dynamo.register_backend(ExplicitGelu(), name="{NAME}")\ntorch.compile(model, backend="{NAME}")',
        language="python",
    )
    models, listed = [], True
    for item in targets:
        backend = ExplicitGelu()
        with torch_private.registered_backend(NAME, backend):
            listed = listed and NAME in torch.compiler.list_backends()
            models.append(_run(item, backend))
    result = CustomBackend(tuple(models), listed, NAME in torch.compiler.list_backends())
    _show(result, guide)
    return result


def _run(target: Target, backend: ExplicitGelu, calls: int = 3) -> BackendCalls:
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


def _show(result: CustomBackend, guide: Guide) -> None:
    rows = [
        [item.model, str(number), ", ".join(f"{name} {times}" if times > 1 else name for name, times in graph)]
        for item in result.models
        for number, graph in enumerate(item.graphs, start=1)
    ]
    guide.table("What the backend was called with", ["Model", ">Graph", "Operations"], rows)
    columns = ["Model", ">Model calls", ">Backend calls", ">Graph runs", ">Gelus replaced", ">Difference from eager"]
    totals = [
        [
            item.model,
            *(str(item.calls), str(len(item.graphs)), str(item.runs), str(item.replaced)),
            "-" if item.difference is None else f"{item.difference:.1g}",
        ]
        for item in result.models
    ]
    guide.table("How often it was called", columns, totals)
    correct = result.correct_choice
    if correct is not None:
        guide.reveal(correct)
