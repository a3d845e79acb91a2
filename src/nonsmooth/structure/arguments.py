"""Arguments that a graph does not keep: those of `relu`, and of maxima and minima over a dimension."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode

TORCH = str(Path(torch.__file__).parent)
FORGETFUL = ("ReluBackward0", "MaxBackward0", "MinBackward0")
"""Nodes that keep their result, or where it was found, but not what it was made of."""


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
        self._noted: dict[Node, Tensor] = {}
        self._lines: dict[Node, str] | None = {} if lines else None

    def of(self, node: Node) -> Tensor | None:
        """The argument of a node; None where the function was called out of sight."""
        return self._noted.get(node)

    def line_of(self, node: Node) -> str:
        """Where a node was made, as `file:line`, if lines are noted and it is known."""
        return "" if self._lines is None else self._lines.get(node, "")

    def _note_line(self, node: Node, lines: dict[Node, str]) -> None:
        """Nodes that are new have been made by the call that is returning."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        line = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in lines:
                lines[one] = line
                waiting += [part for part, _ in one.next_functions if part is not None]

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function, and note its argument if its node will not keep it."""
        result = func(*args, **(kwargs or {}))
        values = result[0] if isinstance(result, tuple) and result else result
        node = values.grad_fn if isinstance(values, Tensor) else None
        if node is not None and self._lines is not None:
            self._note_line(node, self._lines)
        if node is not None and node.name() in FORGETFUL and node not in self._noted:
            argument = args[0] if args else (kwargs or {}).get("input")
            if isinstance(argument, Tensor) and argument.grad_fn is not node:  # one that was written over is gone
                self._noted[node] = argument
        return result
