"""What Inductor made of one graph: kernels, where each came from, fusion, memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.graphs import Direction


class KernelKind(Enum):
    """What a kernel is written in, or who provides it."""

    CPP = "generated C++"
    TRITON = "generated Triton"
    EXTERN = "library call"
    TEMPLATE = "template"
    USER = "written by the user"
    OTHER = "other"


class NodeOutcome(Enum):
    """What became of a node that no kernel computes."""

    INPUT = "an input of the graph"
    OUTPUT = "the outputs of the graph"
    VIEW = "a view: only strides change, no code runs"
    ITEM = "picks one of several results"
    CONSTANT = "a constant held by the graph"
    SYMBOL = "integer arithmetic on sizes, done in the wrapper"
    FOLDED = "computed inside the kernels of the nodes that use it"
    WRAPPER = "done by the wrapper code"
    UNUSED = "not used by anything"


@dataclass(frozen=True)
class Kernel:
    """One launch of one kernel.

    `nodes` are names in the post-grad graph, `stacks` indices into `Inspection.stacks` (one per distinct
    stack of those nodes), `first_line` and `last_line` the kernel's own source in the generated module,
    `call_line` the line that launches it.
    """

    name: str
    kind: KernelKind
    nodes: tuple[str, ...]
    stacks: tuple[int, ...] = ()
    scheduler_nodes: tuple[str, ...] = ()
    first_line: int | None = None
    last_line: int | None = None
    call_line: int | None = None

    @property
    def is_fused(self) -> bool:
        """Whether the kernel computes several nodes at once."""
        return self.kind is not KernelKind.EXTERN and len(self.nodes) > 1


@dataclass(frozen=True)
class UnfusedPair:
    """Two neighbors that the scheduler considered and kept apart."""

    first: str
    second: str
    reason: str
    first_kernel: str | None = None
    second_kernel: str | None = None
    times: int = 1


@dataclass(frozen=True)
class MemoryEstimate:
    """Inductor's own estimate of the memory a graph needs while it runs."""

    peak_bytes: int
    steps: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class UnplacedNode:
    """A node of the post-grad graph that is in no kernel, and why."""

    name: str
    outcome: NodeOutcome


@dataclass(frozen=True)
class Lowering:
    """Everything Inductor made of one graph.

    On a cache hit the scheduler never ran: `from_cache` is set. What it did is then known only if the same
    capture saw the code being generated earlier; otherwise kernels hold what the generated code itself tells.
    """

    id: str
    compilation: str | None
    direction: Direction
    graph: str | None
    code: str = ""
    code_path: str = ""
    kernels: tuple[Kernel, ...] = ()
    unplaced_nodes: tuple[UnplacedNode, ...] = ()
    unfused_pairs: tuple[UnfusedPair, ...] = ()
    memory: MemoryEstimate | None = None
    from_cache: bool = False
