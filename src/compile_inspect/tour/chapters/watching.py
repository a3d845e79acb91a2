"""What several chapters need: models, inputs of other sizes, and a backend that sees what became of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import batch_of, model_name, result_of

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide


class Happened(Enum):
    """What a call of a compiled function did."""

    COMPILED = "compiled, then ran what was compiled"
    REUSED = "ran what was compiled before"
    EAGER = "ran eagerly"
    RAISED = "raised an error"

    @property
    def short(self) -> str:
        """One word for a table."""
        return {"COMPILED": "compiles", "REUSED": "reuses", "EAGER": "eager", "RAISED": "raises"}[self.name]


@dataclass(frozen=True)
class Call:
    """One call: the rows of its input, what it did, and the message of the error where it raised one."""

    rows: int
    happened: Happened
    message: str = ""


class CountingBackend:
    """A backend as torch.compile takes it: counts the graphs it is given and how often they run.

    >>> backend = CountingBackend()
    >>> run = backend(type("Graph", (), {"forward": lambda self, x: x + 1})(), [1])
    >>> run(2), run(3), backend.compiled, backend.ran
    (3, 4, 1, 2)
    """

    def __init__(self) -> None:
        self.compiled = 0
        self.ran = 0

    def __call__(self, graph: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        """Take a graph; what is returned runs it."""
        self.compiled += 1

        def run(*inputs: Any) -> Any:
            self.ran += 1
            return graph.forward(*inputs)

        return run

    def watch(self, call: Callable[[], object], rows: int) -> Call:
        """Make a call, and tell by the counts what it did."""
        compiled, ran = self.compiled, self.ran
        try:
            call()
        except Exception as error:  # what the compiler raises is what is to be shown
            return Call(rows, Happened.RAISED, str(error).strip() or type(error).__name__)
        if self.compiled > compiled:
            return Call(rows, Happened.COMPILED)
        return Call(rows, Happened.REUSED if self.ran > ran else Happened.EAGER)


def device_of(target: Target | None, guide: Guide) -> str:
    """Where a target's tensors lie, which need not be the machine's GPU; without a target, where the tour's models run."""
    from compile_inspect.variants import Task

    return guide.machine.device if target is None else Task.of(target).device


def resized(target: Target, rows: int) -> Target:
    """The target with inputs of its own, of another number of rows."""
    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten(with_rows((target.args, dict(target.kwargs)), rows))
    copies = [leaf.detach().clone() if torch_private.is_tensor(leaf) else leaf for leaf in leaves]
    args, kwargs = torch_private.unflatten(copies, structure)
    return replace(target, args=args, kwargs=kwargs)


def called_with_rows(target: Target, function: Callable[..., Any], rows: int) -> Any:
    """What a function in the target's place gives for inputs of some rows; what it changes is put back."""
    given = resized(target, rows)
    # Not the copies that `result_of` makes: they are views, and a guard would name the tensor they are views of.
    return result_of(target, lambda *args, **kwargs: function(*given.args, **given.kwargs))


def sizes_that_run(target: Target, sizes: Sequence[int], guide: Guide) -> tuple[int, ...]:
    """Of some numbers of rows those that the model itself takes; what it refuses is noted, and is no doing of a compiler.

    None where fewer than two different ones are left: then nothing varies.
    """
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    name = model_name(target)
    if not batch_of(target):
        guide.note(f"no input of {name} has rows, so there is no size to vary")
        return ()
    refused: dict[int, str] = {}
    with silence(), torch.no_grad():
        for rows in dict.fromkeys(sizes):
            try:
                called_with_rows(target, target.function, rows)
            except Exception as error:  # whatever the model raises, it is not the compiler's doing
                refused[rows] = one_line(error)
    left = tuple(rows for rows in sizes if rows not in refused)
    if refused:
        numbers, reason = ", ".join(map(str, refused)), next(iter(refused.values()))
        guide.note(f"{name} itself, not compiled, refuses inputs with {numbers} {_rows(list(refused))}: {reason}")
    return left if len(set(left)) > 1 else ()


def _rows(numbers: list[int]) -> str:
    return "row" if numbers == [1] else "rows"


def with_rows(inputs: Any, rows: int) -> Any:
    """The same inputs with another number of rows: tensors that share the first one's first size are repeated or cut.

    >>> import torch
    >>> with_rows((torch.arange(3), 7), 5)
    (tensor([0, 1, 2, 0, 1]), 7)
    """
    import torch

    from compile_inspect import torch_private

    leaves, structure = torch_private.flatten(inputs)
    sizes = [leaf.shape[0] for leaf in leaves if torch_private.is_tensor(leaf) and leaf.dim()]
    wanted = sizes[0] if sizes else None

    def resized(leaf: Any) -> Any:
        if not torch_private.is_tensor(leaf) or not leaf.dim() or leaf.shape[0] != wanted or wanted == 0:
            return leaf
        return leaf.detach()[torch.arange(rows, device=leaf.device) % leaf.shape[0]]

    return torch_private.unflatten([resized(leaf) for leaf in leaves], structure)
