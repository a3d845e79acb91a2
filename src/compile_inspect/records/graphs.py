"""Graphs at each stage of the compilation pipeline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """The stage of the pipeline at which a graph was recorded."""

    DYNAMO = "captured by Dynamo"
    JOINT = "AOTAutograd joint"
    FORWARD = "AOTAutograd forward"
    BACKWARD = "AOTAutograd backward"
    INFERENCE = "AOTAutograd inference"
    POST_GRAD = "Inductor post-grad"


class Direction(Enum):
    """Whether a graph computes a forward pass, a backward pass, or inference."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INFERENCE = "inference"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TensorType:
    """Shape, dtype, device and strides of a value; a symbolic size is stored as text."""

    shape: tuple[int | str, ...]
    dtype: str
    device: str = ""
    strides: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Node:
    """One node of a graph.

    `stack` is an index into `Inspection.stacks`. `value` has one entry per tensor, and none for a node without tensor value.
    """

    name: str
    operation: str
    target: str
    inputs: tuple[str, ...] = ()
    arguments: str = ""
    value: tuple[TensorType, ...] = ()
    stack: int | None = None
    module: str = ""

    @property
    def is_call(self) -> bool:
        """Whether the node calls a function, a method or a module."""
        return self.operation in ("call_function", "call_method", "call_module")


@dataclass(frozen=True)
class Graph:
    """A graph at one stage of one compilation.

    `from_text` is set if only the printed graph was available (as on a cache hit): each node stack then has one line.
    """

    id: str
    compilation: str | None
    stage: Stage
    direction: Direction
    nodes: tuple[Node, ...]
    text: str = ""
    from_text: bool = False

    @property
    def call_counts(self) -> dict[str, int]:
        """How often each operation is called, methods included, most frequent first."""
        return dict(Counter(node.target for node in self.nodes if node.is_call).most_common())

    @property
    def call_count(self) -> int:
        """The number of nodes that call something."""
        return sum(node.is_call for node in self.nodes)
