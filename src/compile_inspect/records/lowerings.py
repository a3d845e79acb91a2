"""What Inductor generated from one graph: kernels and their origins, fusion, memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.graphs import Direction


class KernelKind(Enum):
    """The language of a kernel, or its provider."""

    CPP = "generated C++"
    TRITON = "generated Triton"
    EXTERN = "library call"
    TEMPLATE = "template"
    USER = "written by the user"
    OTHER = "other"


class NodeOutcome(Enum):
    """What happened to a node that no kernel computes."""

    INPUT = "an input of the graph"
    OUTPUT = "the outputs of the graph"
    VIEW = "a view: only strides change, and no code runs"
    ITEM = "picks one of several results"
    CONSTANT = "a constant of the graph"
    SYMBOL = "integer arithmetic on sizes, done in the wrapper"
    FOLDED = "computed inside the kernels of the nodes that use it"
    WRAPPER = "done by the wrapper code"
    UNUSED = "not used by anything"


@dataclass(frozen=True)
class Kernel:
    """One launch of one kernel.

    `nodes` are names in the post-grad graph. `stacks` are indices into `Inspection.stacks`, one per distinct stack of those
    nodes. `first_line` and `last_line` delimit the kernel's source in the generated module; `call_line` launches it.
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
        """Whether the kernel computes several nodes."""
        return self.kind is not KernelKind.EXTERN and len(self.nodes) > 1


@dataclass(frozen=True)
class UnfusedPair:
    """Two neighboring scheduler nodes that the scheduler considered for fusion and did not fuse."""

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
    """A node of the post-grad graph that no kernel computes, and what happened to it."""

    name: str
    outcome: NodeOutcome


@dataclass(frozen=True)
class Lowering:
    """Everything that Inductor generated from one graph.

    On a cache hit the scheduler does not run, and `from_cache` is set. Its work is then known only if the same capture recorded
    the original generation of the code; otherwise kernels have only the facts that the generated code contains.
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
