"""What each call of a compiled function did, and inputs of other sizes to call it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import batch_of, model_name, result_of

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide


class CallOutcome(Enum):
    """What a call of a compiled function did."""

    COMPILED = "compiled, then ran the compiled code"
    REUSED = "reused compiled code"
    EAGER = "ran in eager mode"
    RAISED = "raised an error"

    @property
    def short(self) -> str:
        """One word for a table."""
        return {"COMPILED": "compiles", "REUSED": "reuses", "EAGER": "eager", "RAISED": "raises"}[self.name]


@dataclass(frozen=True)
class Call:
    """One call: the rows of its input, its outcome, and the message of an error that it raised."""

    rows: int
    outcome: CallOutcome
    message: str = ""


class CountingBackend:
    """A backend that counts the graphs it receives and how often they run.

    >>> backend = CountingBackend()
    >>> run = backend(type("Graph", (), {"forward": lambda self, x: x + 1})(), [1])
    >>> run(2), run(3), backend.graphs, backend.runs
    (3, 4, 1, 2)
    """

    def __init__(self) -> None:
        self.graphs = 0
        self.runs = 0

    def __call__(self, graph: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        """Take a graph and return a callable that runs it."""
        self.graphs += 1

        def run(*inputs: Any) -> Any:
            self.runs += 1
            return graph.forward(*inputs)

        return run

    def observe(self, call: Callable[[], object], rows: int) -> Call:
        """Make a call and infer its outcome from the counts."""
        graphs_before, runs_before = self.graphs, self.runs
        try:
            call()
        except Exception as error:  # an exception of the compiler is an outcome to show
            return Call(rows, CallOutcome.RAISED, str(error).strip() or type(error).__name__)
        if self.graphs > graphs_before:
            return Call(rows, CallOutcome.COMPILED)
        return Call(rows, CallOutcome.REUSED if self.runs > runs_before else CallOutcome.EAGER)


def device_of(target: Target | None, guide: Guide) -> str:
    """The device of a target's tensors, which need not be the machine's GPU; without a target, that of the tour's models."""
    from compile_inspect.variants import Task

    return guide.machine.device if target is None else Task.of(target).device


def with_resized_inputs(target: Target, rows: int) -> Target:
    """The target with copies of its inputs that have another number of rows."""
    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten(with_rows((target.args, dict(target.kwargs)), rows))
    copies = [leaf.detach().clone() if torch_private.is_tensor(leaf) else leaf for leaf in leaves]
    args, kwargs = torch_private.unflatten(copies, structure)
    return replace(target, args=args, kwargs=kwargs)


def call_with_rows(target: Target, function: Callable[..., Any], rows: int) -> Any:
    """The result of a function for the target's inputs with some number of rows; its side effects are undone."""
    variant = with_resized_inputs(target, rows)
    # Not the copies that `result_of` makes: those are views, and a guard would name their base tensor.
    return result_of(target, lambda *args, **kwargs: function(*variant.args, **variant.kwargs))


def valid_sizes(target: Target, sizes: Sequence[int], guide: Guide) -> tuple[int, ...]:
    """The numbers of rows that the model accepts in eager mode; rejected ones are noted.

    Empty where fewer than two different numbers remain, because then no size varies.
    """
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    name = model_name(target)
    if not batch_of(target):
        guide.note(f"no input of {name} has rows, so there is no size to vary")
        return ()
    rejected: dict[int, str] = {}
    with silence(), torch.no_grad():
        for rows in dict.fromkeys(sizes):
            try:
                call_with_rows(target, target.function, rows)
            except Exception as error:  # raised in eager mode, so not by the compiler
                rejected[rows] = one_line(error)
    accepted = tuple(rows for rows in sizes if rows not in rejected)
    if rejected:
        numbers, reason = ", ".join(map(str, rejected)), next(iter(rejected.values()))
        guide.note(f"{name} rejects inputs with {numbers} {_rows(list(rejected))} even in eager mode: {reason}")
    return accepted if len(set(accepted)) > 1 else ()


def _rows(numbers: list[int]) -> str:
    return "row" if numbers == [1] else "rows"


def with_rows(inputs: Any, rows: int) -> Any:
    """The same inputs with another number of rows: tensors with the first tensor's number of rows are repeated or cut.

    >>> import torch
    >>> with_rows((torch.arange(3), 7), 5)
    (tensor([0, 1, 2, 0, 1]), 7)
    """
    import torch

    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten(inputs)
    sizes = [leaf.shape[0] for leaf in leaves if torch_private.is_tensor(leaf) and leaf.dim()]
    rows_before = sizes[0] if sizes else None

    def resize(leaf: Any) -> Any:
        if not torch_private.is_tensor(leaf) or not leaf.dim() or leaf.shape[0] != rows_before or rows_before == 0:
            return leaf
        return leaf.detach()[torch.arange(rows, device=leaf.device) % leaf.shape[0]]

    return torch_private.unflatten([resize(leaf) for leaf in leaves], structure)
