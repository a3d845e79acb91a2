"""The whole of one capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.records.agreement import Agreement
from compile_inspect.records.breaks import GraphBreak
from compile_inspect.records.compilations import Bytecode, Compilation, Outcome, Phase
from compile_inspect.records.failures import Failure
from compile_inspect.records.fixes import Finding
from compile_inspect.records.graphs import Graph, Stage
from compile_inspect.records.guards import Guard, LimitHit, Recompile, Specialization
from compile_inspect.records.locations import Location, Stack
from compile_inspect.records.lowerings import Kernel, Lowering
from compile_inspect.records.runtime import CacheEvent, CudaGraphEvent
from compile_inspect.records.share import CompiledShare
from compile_inspect.records.timing import Timing
from compile_inspect.rendering import Format, render

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Environment:
    """Where the compilation ran and how torch was configured."""

    python: str = ""
    platform: str = ""
    torch: str = ""
    torch_known: bool = True
    packages: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    cpu: str = ""
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    """The process that was recorded."""

    pid: int = 0
    rank: int | None = None
    session: str = ""
    command: tuple[str, ...] = ()
    started: float = 0.0
    ended: float | None = None
    recorder: str = ""

    @property
    def label(self) -> str:
        """How this process is named beside others of the same program."""
        return f"rank {self.rank}" if self.rank is not None else f"pid {self.pid}"


@dataclass(frozen=True)
class NamedTarget:
    """What was inspected, as it was named on the command line in `folder`, with what was said about its inputs."""

    specification: str
    inputs: str | None = None
    folder: str = ""
    no_grad: bool = False


@dataclass(frozen=True)
class Missing:
    """Evidence that could not be collected, and why."""

    collector: str
    reason: str
    times: int = 1


@dataclass(frozen=True, repr=False)
class Inspection:
    """All evidence about the compilations of one process.

    `share` is None where it is not known. `complete` is False when the program was killed before the recording ended: what
    is here was written until then. `missing` lists collectors that failed; `notes` are sentences for the reader. `timings`,
    `agreements` and `findings` (causes of graph breaks with fixes that were tried) are added by later runs, where these are
    told to.
    """

    environment: Environment = field(default_factory=Environment)
    process: Process = field(default_factory=Process)
    complete: bool = True
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    target: NamedTarget | None = None
    compilations: tuple[Compilation, ...] = ()
    failures: tuple[Failure, ...] = ()
    share: CompiledShare | None = None
    graphs: tuple[Graph, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    guards: tuple[Guard, ...] = ()
    specializations: tuple[Specialization, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    limits: tuple[LimitHit, ...] = ()
    lowerings: tuple[Lowering, ...] = ()
    phases: tuple[Phase, ...] = ()
    caches: tuple[CacheEvent, ...] = ()
    cuda_graphs: tuple[CudaGraphEvent, ...] = ()
    bytecode: tuple[Bytecode, ...] = ()
    timings: tuple[Timing, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    findings: tuple[Finding, ...] = ()
    stacks: tuple[Stack, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    library_sources: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """How many of everything, for a prompt.

        >>> Inspection()
        Inspection(compilations: 0, failures: 0, graphs: 0, breaks: 0, recompiles: 0, kernels: 0)
        """
        counted = {
            "compilations": len(self.compilations),
            "failures": len(self.failures),
            "graphs": self.graph_count,
            "breaks": len(self.leading_breaks),
            "recompiles": len(self.recompiles),
            "kernels": sum(1 for _ in self.kernels()),
        }
        partial = "" if self.complete else "; partial"
        return f"Inspection({', '.join(f'{name}: {number}' for name, number in counted.items())}{partial})"

    def __str__(self) -> str:
        """The summary, as `compile-inspect show` prints it."""
        return render(Format.SUMMARY, self)

    def stack(self, index: int | None) -> Stack | None:
        """The stack at `index`, or None where a record has none."""
        return self.stacks[index] if index is not None and 0 <= index < len(self.stacks) else None

    def user_line(self, index: int | None) -> Location | None:
        """The innermost line outside torch of the stack at `index`."""
        stack = self.stack(index)
        return None if stack is None else stack.user_line

    def compilation(self, identifier: str) -> Compilation | None:
        """The compilation with this id, such as `0/1`."""
        return next((item for item in self.compilations if item.id == identifier), None)

    def graph(self, identifier: str | None) -> Graph | None:
        """The graph with this id."""
        return next((item for item in self.graphs if item.id == identifier), None)

    def graphs_at(self, stage: Stage) -> tuple[Graph, ...]:
        """All graphs seen at one stage, in the order they were made."""
        return tuple(graph for graph in self.graphs if graph.stage is stage)

    @property
    def leading_breaks(self) -> tuple[GraphBreak, ...]:
        """The graph breaks that need work: those that did not come of another one."""
        return tuple(item for item in self.breaks if item.follows is None)

    def following_breaks(self, cause: GraphBreak) -> tuple[GraphBreak, ...]:
        """The graph breaks that torch met in what `cause` left to Python, directly or by way of others."""
        led: list[GraphBreak] = [cause]
        for item in self.breaks:  # a break comes after the one that it follows
            leader = None if item.follows is None else self.breaks[item.follows : item.follows + 1]
            if leader and any(leader[0] is known for known in led):
                led.append(item)
        return tuple(led[1:])

    def kernels(self) -> Iterator[tuple[Lowering, Kernel]]:
        """Every kernel launch with the lowering it belongs to."""
        for lowering in self.lowerings:
            for kernel in lowering.kernels:
                yield lowering, kernel

    def kernel_lines(self, kernel: Kernel) -> tuple[Location, ...]:
        """The distinct user lines that a kernel computes, in stack order."""
        lines: dict[tuple[str, int], Location] = {}
        for index in kernel.stacks:
            location = self.user_line(index)
            if location is not None:
                lines.setdefault((location.file, location.line), location)
        return tuple(lines.values())

    @property
    def raised(self) -> Failure | None:
        """The exception that left the program, if one did."""
        return next((item for item in self.failures if item.compilation is None), None)

    @property
    def graph_count(self) -> int:
        """How many graphs Dynamo captured: those in `graphs`; where none was recorded, as many as torch counted."""
        captured = sum(graph.stage is Stage.DYNAMO for graph in self.graphs)
        return captured or sum(bool(item.graph_calls) for item in self.compilations)

    @property
    def nothing_compiled(self) -> bool:
        """Whether no graph with an operation in it was compiled: all of the program runs in eager mode, or failed."""
        return not any(item.outcome is Outcome.COMPILED and item.graph_calls for item in self.compilations)

    @property
    def captured_whole(self) -> bool:
        """Whether something was compiled, all of it in one graph, and nothing failed."""
        compiled = [item.outcome is Outcome.COMPILED for item in self.compilations]
        return not self.nothing_compiled and all(compiled) and not self.breaks and not self.failures

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling, forward and backward."""
        return sum((item.seconds or 0.0) + (item.backward_seconds or 0.0) for item in self.compilations)

    def to_html(self, *, title: str = "", whole: bool = False) -> str:
        """This capture as one HTML file, as `compile-inspect report` writes it; `whole` leaves nothing out.

        >>> Inspection().to_html(title="nothing yet")[:15]
        '<!doctype html>'
        """
        captures = [(title or self.process.label, self)]
        return render(Format.PAGE, captures, title=title, whole=whole)

    def _repr_html_(self) -> str:
        """The report in a frame of its own, where a notebook can neither be changed by it nor change it."""
        from html import escape

        page = escape(self.to_html(), quote=True)
        # Links to torch's pages open in a window of their own; nothing else gets out of the frame.
        allowed = "allow-scripts allow-popups allow-popups-to-escape-sandbox"
        return f'<iframe srcdoc="{page}" sandbox="{allowed}" width="100%" height="900" frameborder="0"></iframe>'
