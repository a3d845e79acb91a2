"""Record what autograd's graph does not store: arguments of `relu` and of full reductions, and where values leave the graph.

A comparison, an index, or a Python number computed from x can change what a program does, but is not part of the graph. It may
hide a kink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode

TORCH = str(Path(torch.__file__).parent)
VALUE_FREE_FUNCTIONS = frozenset(
    {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones"}
)
VALUE_FREE_FUNCTIONS |= {"new_empty", "new_full", "new_tensor", "randint_like"}
"""Functions whose results depend on the shape of their arguments, but not on the values."""
LAYOUT_FUNCTIONS = frozenset({"to", "type_as", "expand_as", "view_as", "reshape_as"})
"""Functions that give their first argument the shape or type of another."""
SCALAR_CONVERSIONS = frozenset(
    {"item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__contains__", "__array__"}
)
SCALAR_CONVERSIONS |= {"equal", "allclose", "is_nonzero"}
"""Functions that convert tensors to Python or NumPy values."""
NODES_WITHOUT_ARGUMENT = ("ReluBackward0", "MaxBackward0", "MinBackward0")
"""Nodes that store their result, or its index, but not their argument."""
FUNCTIONS_WITHOUT_ARGUMENT = ("relu", "max", "min")
"""The functions that create these nodes from their first argument."""
MAX_RECORDED_LINES = 10_000
"""The number of nodes whose source line is recorded."""


class Arguments(TorchFunctionMode):
    """Records the arguments of functions whose nodes do not store them, for functions evaluated in this mode.

    >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> with Arguments() as arguments:
    ...     y = torch.relu(x)
    >>> arguments.of(y.grad_fn) is x
    True
    """

    def __init__(self, *, lines: bool = False) -> None:
        super().__init__()
        self._recorded_arguments: dict[Node, tuple[Tensor, int]] = {}
        self._exit_functions: dict[Node | None, str] = {}
        """Nodes whose results left the graph (None for x itself), and the function through which they did."""
        self._lines: dict[Node, str] | None = {} if lines else None
        self.term_nodes: dict[Node, str] | None = None
        """The nodes of an explicit problem's terms, and where their arguments are defined; None if f is a single function."""
        self.was_entered = False
        """Whether the mode was ever active."""

    def __enter__(self) -> Self:
        self.was_entered = True
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def declare(self, node: Node, argument: Tensor, line: str) -> None:
        """Record the node of a term and its argument."""
        self.term_nodes = self.term_nodes or {}
        self.term_nodes[node] = line
        self._recorded_arguments[node] = argument, argument._version

    def of(self, node: Node) -> Tensor | None:
        """The argument of a node; None if the call was not recorded or the argument was modified in place."""
        argument, version = self._recorded_arguments.get(node, (None, 0))
        return argument if argument is not None and argument._version == version else None

    def first_exit(self, f: Tensor) -> str | None:
        """The first function through which values left the graph of f before f was complete.

        Values computed from f itself, to print or store it, cannot influence f, since f was complete by then.
        """
        return next((name for node, name in self._exit_functions.items() if node is None or node is not f.grad_fn), None)

    def line_of(self, node: Node) -> str:
        """Where a node was created, as `file:line`; empty if not recorded."""
        lines = self._lines if self.term_nodes is None else self.term_nodes
        return "" if lines is None else lines.get(node, "")

    def _record_line(self, node: Node, lines: dict[Node, str]) -> None:
        """Assign the line of the call that is returning to all new nodes."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        line = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in lines and len(lines) < MAX_RECORDED_LINES:
                lines[one] = line
                waiting += [part for part, _ in one.next_functions if part is not None]

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function, and record its argument if its node does not store it."""
        result = func(*args, **(kwargs or {}))
        values = result[0] if isinstance(result, tuple) and result else result
        node = values.grad_fn if isinstance(values, Tensor) else None
        if node is None:  # otherwise the result is part of the graph
            for source in _exits(func, result, args, kwargs or {}):
                self._exit_functions.setdefault(source, getattr(func, "__name__", str(func)))
            return result
        if self._lines is not None:
            self._record_line(node, self._lines)
        name = getattr(func, "__name__", "")  # other functions, such as recurrent cells, end with such a node too
        if (
            name in FUNCTIONS_WITHOUT_ARGUMENT
            and node.name() in NODES_WITHOUT_ARGUMENT
            and node not in self._recorded_arguments
        ):
            argument = args[0] if args else (kwargs or {}).get("input")
            if isinstance(argument, Tensor) and argument.grad_fn is not node:  # an in-place call has overwritten its argument
                self._recorded_arguments[node] = argument, argument._version
        return result


def _exits(func: Callable[..., Any], result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Node | None]:
    """Nodes whose results a function used to compute something outside the graph."""
    name = getattr(func, "__name__", "")
    if name in VALUE_FREE_FUNCTIONS or not (name in SCALAR_CONVERSIONS or _detached(result)):
        return []
    values = args[:1] if name in LAYOUT_FUNCTIONS else (*args, *kwargs.values())
    return [tensor.grad_fn for tensor in _recorded(values)]


def _detached(result: Any) -> bool:
    """Whether a result consists of tensors outside the graph."""
    if isinstance(result, tuple | list) and not isinstance(result, torch.Size):
        return bool(result) and all(_detached(part) for part in result)
    return isinstance(result, Tensor) and not result.requires_grad


def _recorded(arguments: Sequence[Any]) -> Iterator[Tensor]:
    for argument in arguments:
        if isinstance(argument, tuple | list) and not isinstance(argument, torch.Size):
            yield from _recorded(argument)
        elif isinstance(argument, Tensor) and argument.requires_grad:
            yield argument
