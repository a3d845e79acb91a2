"""The complete contents of one capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.records.agreement import Agreement
from compile_inspect.records.breaks import GraphBreak
from compile_inspect.records.compilations import Bytecode, Compilation, CompilationOutcome, Phase
from compile_inspect.records.compiled_share import CompiledShare
from compile_inspect.records.failures import Failure
from compile_inspect.records.fixes import Finding
from compile_inspect.records.graphs import Graph, Stage
from compile_inspect.records.guards import Guard, LimitHit, Recompile, Specialization
from compile_inspect.records.locations import Location, Stack
from compile_inspect.records.lowerings import Kernel, Lowering
from compile_inspect.records.runtime import CacheEvent, CudaGraphEvent
from compile_inspect.records.timing import Timing
from compile_inspect.rendering import Format, render

SCHEMA_VERSION = 2
OLDEST_READABLE_SCHEMA = 2
"""Schema 1 was never part of a release."""


@dataclass(frozen=True)
class Environment:
    """The environment of the compilation and the configuration of torch."""

    python: str = ""
    platform: str = ""
    torch: str = ""
    torch_supported: bool = True
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
        """The name of this process among those of the same program."""
        return f"rank {self.rank}" if self.rank is not None else f"pid {self.pid}"


@dataclass(frozen=True)
class NamedTarget:
    """The inspected target as it was named on the command line in `folder`, with the description of its inputs."""

    specification: str
    inputs: str | None = None
    folder: str = ""
    no_grad: bool = False


@dataclass(frozen=True)
class MissingEvidence:
    """Evidence that could not be collected, and why."""

    collector: str
    reason: str
    times: int = 1


@dataclass(frozen=True, repr=False)
class Inspection:
    """All evidence about the compilations of one process.

    `compiled_share` is None if it is not known. `complete` is False if the program was killed before the recording ended; the
    inspection then has everything that was written before that. `missing_evidence` lists collectors that failed. `notes` are
    sentences for the reader. Later commands can add `timings`, `agreements` and `findings` (causes of graph breaks with the
    fixes that were tried).
    """

    environment: Environment = field(default_factory=Environment)
    process: Process = field(default_factory=Process)
    complete: bool = True
    missing_evidence: tuple[MissingEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    target: NamedTarget | None = None
    compilations: tuple[Compilation, ...] = ()
    failures: tuple[Failure, ...] = ()
    compiled_share: CompiledShare | None = None
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
        """The number of records of each kind.

        >>> Inspection()
        Inspection(compilations: 0, failures: 0, graphs: 0, breaks: 0, recompiles: 0, kernels: 0)
        """
        counted = {
            "compilations": len(self.compilations),
            "failures": len(self.failures),
            "graphs": self.graph_count,
            "breaks": len(self.root_breaks),
            "recompiles": len(self.recompiles),
            "kernels": sum(1 for _ in self.kernels()),
        }
        partial = "" if self.complete else "; partial"
        return f"Inspection({', '.join(f'{name}: {number}' for name, number in counted.items())}{partial})"

    def __str__(self) -> str:
        """The summary, as `compile-inspect show` prints it."""
        return render(Format.SUMMARY, self)

    def stack(self, index: int | None) -> Stack | None:
        """The stack at `index`; None for a record without a stack."""
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
        """All graphs of one stage, in the order in which they were created."""
        return tuple(graph for graph in self.graphs if graph.stage is stage)

    @property
    def root_breaks(self) -> tuple[GraphBreak, ...]:
        """The graph breaks that need a fix: those that no other break led to."""
        return tuple(item for item in self.breaks if item.parent is None)

    def descendant_breaks(self, cause: GraphBreak) -> tuple[GraphBreak, ...]:
        """The graph breaks that `cause` led to, directly or through others, in code that it left to Python."""
        descendants: list[GraphBreak] = [cause]
        for item in self.breaks:  # a break comes after its parent
            parent = None if item.parent is None else self.breaks[item.parent : item.parent + 1]
            if parent and any(parent[0] is known for known in descendants):
                descendants.append(item)
        return tuple(descendants[1:])

    def kernels(self) -> Iterator[tuple[Lowering, Kernel]]:
        """Every kernel launch, with its lowering."""
        for lowering in self.lowerings:
            for kernel in lowering.kernels:
                yield lowering, kernel

    def kernel_lines(self, kernel: Kernel) -> tuple[Location, ...]:
        """The distinct user lines that a kernel computes, in the order of its stacks."""
        lines: dict[tuple[str, int], Location] = {}
        for index in kernel.stacks:
            location = self.user_line(index)
            if location is not None:
                lines.setdefault((location.file, location.line), location)
        return tuple(lines.values())

    @property
    def uncaught_failure(self) -> Failure | None:
        """The uncaught exception that ended the run, if there was one."""
        return next((item for item in self.failures if item.compilation is None), None)

    @property
    def graph_count(self) -> int:
        """The number of graphs that Dynamo captured: those in `graphs`, or torch's own count if none was recorded."""
        captured = sum(graph.stage is Stage.DYNAMO for graph in self.graphs)
        return captured or sum(bool(item.graph_calls) for item in self.compilations)

    @property
    def nothing_compiled(self) -> bool:
        """Whether no graph with an operation in it was compiled: the program runs entirely in eager mode, or failed."""
        return not any(item.outcome is CompilationOutcome.COMPILED and item.graph_calls for item in self.compilations)

    @property
    def is_fullgraph(self) -> bool:
        """Whether something was compiled, and all of it without graph breaks or failures."""
        compiled = [item.outcome is CompilationOutcome.COMPILED for item in self.compilations]
        return not self.nothing_compiled and all(compiled) and not self.breaks and not self.failures

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling, forward and backward."""
        return sum((item.seconds or 0.0) + (item.backward_seconds or 0.0) for item in self.compilations)

    def to_html(self, *, title: str = "", whole: bool = False) -> str:
        """This capture as one HTML file, as `compile-inspect report` writes it; with `whole`, nothing is left out.

        >>> Inspection().to_html(title="nothing yet")[:15]
        '<!doctype html>'
        """
        captures = [(title or self.process.label, self)]
        return render(Format.PAGE, captures, title=title, whole=whole)

    def _repr_html_(self) -> str:
        """The report in a sandboxed frame, so that the report and the notebook cannot change each other."""
        from html import escape

        page = escape(self.to_html(), quote=True)
        # Links to torch's pages open in a new window; nothing else can leave the frame.
        allowed = "allow-scripts allow-popups allow-popups-to-escape-sandbox"
        return f'<iframe srcdoc="{page}" sandbox="{allowed}" width="100%" height="900" frameborder="0"></iframe>'
