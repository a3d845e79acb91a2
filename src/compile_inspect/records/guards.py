"""Guards, the recompiles they cause, and the limit on those."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.locations import Location


@dataclass(frozen=True)
class Guard:
    """One condition under which a compiled frame may be reused.

    `is_internal` is set for guards that no user can act on (dynamic-marking probes, interpreter state,
    identity of library modules and functions); reporters fold them.
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
    """A size that was a symbol and was pinned to one number, and the line that pinned it."""

    compilation: str | None
    variable: str
    value: str
    reason: str = ""
    location: Location | None = None
    stack: int | None = None


@dataclass(frozen=True)
class GuardFailure:
    """The guard of one earlier compilation that a call did not satisfy."""

    earlier_version: str | None
    variable: str
    reason: str
    expected: str | None = None
    actual: str | None = None
    location: Location | None = None


@dataclass(frozen=True)
class Recompile:
    """A frame compiled again, with the guard of every earlier version that failed."""

    compilation: str
    function: str
    file: str
    line: int
    failures: tuple[GuardFailure, ...]

    @property
    def latest_failure(self) -> GuardFailure | None:
        """The failure against the version compiled last, which says what changed."""
        return self.failures[0] if self.failures else None


@dataclass(frozen=True)
class LimitHit:
    """A frame that was recompiled so often that torch gave up on it."""

    compilation: str | None
    function: str
    file: str
    line: int
    limit: str
    value: int | None
    last_reason: str = ""
