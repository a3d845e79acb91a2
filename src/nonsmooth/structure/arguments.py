"""What a graph does not keep: arguments of `relu` and of maxima over a dimension, and where values leave it.

A comparison, an index or a number that is made of x decides what a program does and is not part of its graph. A kink may stand
behind it.
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
BLANK = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones"})
BLANK |= {"new_empty", "new_full", "new_tensor", "randint_like"}
"""Functions whose results have the form of their arguments and nothing of their values."""
FORMED = frozenset({"to", "type_as", "expand_as", "view_as", "reshape_as"})
"""Functions that give their first argument the form of another."""
NUMBERS = frozenset({"item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__contains__", "__array__"})
NUMBERS |= {"equal", "allclose", "is_nonzero"}
"""Functions that make numbers of tensors."""
FORGETFUL = ("ReluBackward0", "MaxBackward0", "MinBackward0")
"""Nodes that keep their result, or where it was found, but not what it was made of."""
FORGETTING = ("relu", "max", "min")
"""The functions that make them of their first argument."""
MOST_LINES = 10_000
"""So many nodes are told the line of."""


class Arguments(TorchFunctionMode):
    """Notes the arguments of functions whose nodes do not keep them, while functions are evaluated in it.

    >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> with Arguments() as noted:
    ...     y = torch.relu(x)
    >>> noted.of(y.grad_fn) is x
    True
    """

    def __init__(self, *, lines: bool = False) -> None:
        super().__init__()
        self._noted: dict[Node, tuple[Tensor, int]] = {}
        self._left: dict[Node | None, str] = {}
        """Nodes whose results have left the graph (None for x itself), and by which function."""
        self._lines: dict[Node, str] | None = {} if lines else None
        self.term_nodes: dict[Node, str] | None = None
        """The nodes of an explicit problem's terms, and where their arguments are written; None where f is given as a whole."""
        self.was_entered = False
        """Whether functions were evaluated in it."""

    def __enter__(self) -> Self:
        self.was_entered = True
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def declare(self, node: Node, argument: Tensor, line: str) -> None:
        """Note the node of a term, and its argument."""
        self.term_nodes = self.term_nodes or {}
        self.term_nodes[node] = line
        self._noted[node] = argument, argument._version

    def of(self, node: Node) -> Tensor | None:
        """The argument of a node; None where the function was called out of sight, or the argument was written over."""
        argument, version = self._noted.get(node, (None, 0))
        return argument if argument is not None and argument._version == version else None

    def leaving(self, f: Tensor) -> str | None:
        """The first function by which values have left the graph of f before it was whole.

        What is made of f itself, to be printed or stored, cannot have a part in it: if another result had been returned for its
        value, that one would be f there.
        """
        return next((name for node, name in self._left.items() if node is None or node is not f.grad_fn), None)

    def line_of(self, node: Node) -> str:
        """Where a node was made, as `file:line`, if lines are noted and it is known."""
        known = self._lines if self.term_nodes is None else self.term_nodes
        return "" if known is None else known.get(node, "")

    def _note_line(self, node: Node, lines: dict[Node, str]) -> None:
        """Nodes that are new have been made by the call that is returning."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        line = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in lines and len(lines) < MOST_LINES:
                lines[one] = line
                waiting += [part for part, _ in one.next_functions if part is not None]

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function, and note its argument if its node will not keep it."""
        result = func(*args, **(kwargs or {}))
        values = result[0] if isinstance(result, tuple) and result else result
        node = values.grad_fn if isinstance(values, Tensor) else None
        if node is None:  # else the result is part of the graph
            for left in _left_by(func, result, args, kwargs or {}):
                self._left.setdefault(left, getattr(func, "__name__", str(func)))
            return result
        if self._lines is not None:
            self._note_line(node, self._lines)
        named = getattr(func, "__name__", "")  # others, such as cells of networks, end with such a node too
        if named in FORGETTING and node.name() in FORGETFUL and node not in self._noted:
            argument = args[0] if args else (kwargs or {}).get("input")
            if isinstance(argument, Tensor) and argument.grad_fn is not node:  # one that was written over is gone
                self._noted[node] = argument, argument._version
        return result


def _left_by(func: Callable[..., Any], result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Node | None]:
    """Nodes of whose results something was made that is not in the graph."""
    name = getattr(func, "__name__", "")
    if name in BLANK or not (name in NUMBERS or _detached(result)):
        return []
    values = args[:1] if name in FORMED else (*args, *kwargs.values())
    return [tensor.grad_fn for tensor in _recorded(values)]


def _detached(result: Any) -> bool:
    """Whether a result is a tensor of numbers outside the graph."""
    if isinstance(result, tuple | list) and not isinstance(result, torch.Size):
        return bool(result) and all(_detached(part) for part in result)
    return isinstance(result, Tensor) and not result.requires_grad


def _recorded(arguments: Sequence[Any]) -> Iterator[Tensor]:
    for argument in arguments:
        if isinstance(argument, tuple | list) and not isinstance(argument, torch.Size):
            yield from _recorded(argument)
        elif isinstance(argument, Tensor) and argument.requires_grad:
            yield argument
