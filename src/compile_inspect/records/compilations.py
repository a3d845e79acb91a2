"""One compilation of one frame, with its phases and its bytecode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


def first_compilation_id(identifier: str) -> str:
    """The id of the first compilation of the same frame.

    >>> first_compilation_id("2/1"), first_compilation_id("2/1@1")
    ('2/0', '2/0@1')
    """
    base, mark, reset = identifier.partition("@")
    return f"{base.rpartition('/')[0]}/0{mark}{reset}"


class CompilationOutcome(Enum):
    """How a compilation ended."""

    COMPILED = "compiled"
    NOTHING_TO_COMPILE = "traced, but there was nothing to compile"
    SKIPPED = "skipped: the frame runs in eager mode"
    FAILED = "failed with an exception"
    UNFINISHED = "still in progress when the recording ended"


@dataclass(frozen=True)
class Compilation:
    """One compilation of one frame. Torch writes its id as `frame/compilation of this frame`, for example `2/1`.

    `torch._dynamo.reset` restarts torch's numbering; ids after the first reset are marked `2/1@1`.
    """

    id: str
    function: str
    file: str
    line: int
    outcome: CompilationOutcome
    backend: str | None = None
    attempts: int = 1
    restart_reasons: tuple[str, ...] = ()
    call_stack: int | None = None
    started: float | None = None
    seconds: float | None = None
    backward_seconds: float | None = None
    graph_nodes: int = 0
    graph_calls: int = 0
    guard_count: int = 0
    dynamic_symbols: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_recompile(self) -> bool:
        """Whether this frame had been compiled before."""
        return "/" in self.id and self.id != first_compilation_id(self.id)

    @property
    def is_resume(self) -> bool:
        """Whether the frame is the remainder of a function after a graph break."""
        return self.function.startswith("torch_dynamo_resume_in_")


@dataclass(frozen=True)
class Phase:
    """One phase of compile time, as torch's own timers delimit it."""

    compilation: str | None
    name: str
    start: float
    seconds: float
    depth: int = 0
    own_seconds: float = 0.0
    thread: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bytecode:
    """The bytecode of a frame before and after Dynamo rewrote it."""

    compilation: str | None
    function: str
    file: str
    line: int
    original: str
    rewritten: str
