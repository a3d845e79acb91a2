"""Graphs at every stage of the pipeline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """Where in the pipeline a graph was seen."""

    DYNAMO = "captured by Dynamo"
    JOINT = "AOTAutograd joint"
    FORWARD = "AOTAutograd forward"
    BACKWARD = "AOTAutograd backward"
    INFERENCE = "AOTAutograd inference"
    POST_GRAD = "Inductor post-grad"


class Direction(Enum):
    """Which way a graph computes."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INFERENCE = "inference"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TensorType:
    """Shape, dtype, device and strides of a value; a symbolic size is kept as its text."""

    shape: tuple[int | str, ...]
    dtype: str
    device: str = ""
    strides: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Node:
    """One node of a graph.

    `stack` is an index into `Inspection.stacks`. `value` is None where the node has no tensor value,
    and a tuple where it has several.
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
        """Whether the node computes something, be it a function, a method or a module call."""
        return self.operation in ("call_function", "call_method", "call_module")


@dataclass(frozen=True)
class Graph:
    """A graph at one stage of one compilation.

    `from_text` says that only the printed form was there (as on a cache hit): node stacks then hold one
    line each.
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
        """How many nodes compute something."""
        return sum(node.is_call for node in self.nodes)
