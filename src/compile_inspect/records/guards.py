"""Guards, the recompiles that they cause, and the recompile limit."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.locations import Location


@dataclass(frozen=True)
class Guard:
    """One condition under which a compiled frame may be reused.

    `is_internal` is set for guards that users do not control (dynamic-marking checks, interpreter state, the identity of
    library modules and functions); reports collapse them.
    """

    compilation: str | None
    kind: str
    source: str
    variable: str
    condition: str
    location: Location | None = None
    stack: int | None = None
    is_internal: bool = False


@dataclass(frozen=True)
class Specialization:
    """A symbolic size that was specialized to one number, and the line that specialized it."""

    compilation: str | None
    variable: str
    value: str
    reason: str = ""
    location: Location | None = None
    stack: int | None = None


@dataclass(frozen=True)
class GuardFailure:
    """A guard of one earlier compilation that a call did not satisfy."""

    earlier_version: str | None
    variable: str
    reason: str
    expected: str | None = None
    actual: str | None = None
    location: Location | None = None


@dataclass(frozen=True)
class Recompile:
    """A recompilation of a frame, with the failed guard of each earlier version."""

    compilation: str
    function: str
    file: str
    line: int
    failures: tuple[GuardFailure, ...]

    @property
    def latest_failure(self) -> GuardFailure | None:
        """The failed guard of the most recently compiled version, which shows what changed."""
        return self.failures[0] if self.failures else None


@dataclass(frozen=True)
class LimitHit:
    """A frame that reached the recompile limit, so that torch stopped compiling it."""

    compilation: str | None
    function: str
    file: str
    line: int
    limit: str
    value: int | None
    last_reason: str = ""
