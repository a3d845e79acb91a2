"""Where the time of a run goes: a clock that assigns every moment to one phase.

    solving = clock.phase(Phase.QP)
    ...
    with solving:
        ...

A nested phase interrupts the outer one: every moment counts for the innermost phase alone, and time outside all phases counts
for `Phase.OTHER`. So the times of all phases sum to that of the run. An exception leaves a phase like a normal exit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nonsmooth.report.trace import Trace


class Phase(Enum):
    """The phases of a run. The value is a sentence, `label` a short name."""

    VALUES = "values", "The functions are evaluated."
    GRADIENTS = "gradients", "The gradient of a weighted sum of the functions is computed."
    JACOBIANS = "Jacobians", "The gradients of the objective and of all constraints are computed."
    UNITS = "units", "The solver's units are chosen."
    QP = "QP", "Quadratic programs are solved."
    DIRECTIONS = "directions", "Models and steps are computed, except for the quadratic programs."
    SEARCH = "search", "Trial points are chosen and tested: line searches, null steps, recovery from failed steps."
    HESSIAN = "Hessian", "The quasi-Newton matrix is updated after a step."
    STATIONARITY = "stationarity", "The termination tests and the independent check run."
    BUILD = "build", "Faster forms of the functions are built."
    CHECKS = "checks", "Faster forms of the functions are compared with the original functions."
    CALLBACKS = "callbacks", "The callback runs, or progress is drawn."
    OTHER = "other", "Everything else: setup, records, assembling the result."

    label: str

    def __new__(cls, label: str, sentence: str) -> Phase:
        """Create a member whose value is the sentence."""
        member = object.__new__(cls)
        member._value_, member.label = sentence, label
        return member


class Span:
    """One phase of one clock, to be entered with `with`, possibly recursively."""

    __slots__ = ("_clock", "_now", "count", "phase", "seconds")

    def __init__(self, clock: Clock, phase: Phase) -> None:
        self._clock, self._now, self.phase = clock, clock.now, phase
        self.seconds = 0.0
        """Time in the phase itself, without nested phases."""
        self.count = 0

    def __enter__(self) -> None:
        clock = self._clock
        clock.open.append((self, clock.within, self._now()))
        clock.within = 0.0

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        clock = self._clock
        _, within, start = clock.open.pop()
        elapsed = self._now() - start
        self.seconds += elapsed - clock.within
        self.count += 1
        clock.within = within + elapsed


class _TracedSpan(Span):
    """A span that also adds an event to a trace."""

    __slots__ = ()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        clock = self._clock
        _, within, start = clock.open.pop()
        elapsed = self._now() - start
        self.seconds += elapsed - clock.within
        self.count += 1
        clock.within = within + elapsed
        if clock.trace is not None:
            clock.trace.add(self.phase.label, start, elapsed)


class Clock:
    """The times of one run, from `started` or from now. A trace, if given, gets an event for every phase.

    >>> clock = Clock(now=iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0]).__next__)
    >>> with clock.phase(Phase.SEARCH):
    ...     with clock.phase(Phase.VALUES):
    ...         pass
    >>> times = clock.times()
    >>> times["search"], times["values"], times["other"], times.total
    (6.0, 3.0, 6.0, 15.0)
    """

    def __init__(
        self, *, now: Callable[[], float] = perf_counter, started: float | None = None, trace: Trace | None = None
    ) -> None:
        self.now, self.trace = now, trace
        self.open: list[tuple[Span, float, float]] = []
        """Open phases: each with `within` of the enclosing phase, and the time of entry."""
        self.within = 0.0
        """Seconds spent in phases nested in the innermost open phase."""
        kind = Span if trace is None else _TracedSpan
        self._spans = {phase: kind(self, phase) for phase in Phase}
        self._started = now() if started is None else started
        if trace is not None:
            trace.begin(self._started)

    def phase(self, phase: Phase) -> Span:
        """The span of a phase: always the same object, so callers may store it."""
        return self._spans[phase]

    def credit(self, phase: Phase, seconds: float) -> None:
        """Count the last seconds for a phase that was not entered, since native code does several things in one call.

        >>> clock = Clock(now=iter([0.0, 1.0, 5.0, 6.0]).__next__)
        >>> with clock.phase(Phase.DIRECTIONS):
        ...     clock.credit(Phase.QP, 3.0)
        >>> times = clock.times()
        >>> times["directions"], times["QP"]
        (1.0, 3.0)
        """
        span = self._spans[phase]
        span.seconds += seconds
        span.count += 1
        self.within += seconds
        if self.trace is not None:
            self.trace.add(phase.label, self.now() - seconds, seconds)

    def unwind(self, depth: int = 0) -> None:
        """Leave all phases deeper than `depth`; an interrupt may have prevented their exit."""
        while len(self.open) > depth:
            self.open[-1][0].__exit__(None, None, None)

    def close(self) -> None:
        """Leave all phases, and write the trace if there is one."""
        self.unwind()
        if self.trace is not None:
            self.trace.close(self.now())

    def times(self, *, earlier: float = 0.0) -> Times:
        """The times up to now; phases may be open."""
        now, within = self.now(), self.within
        seconds = {phase: span.seconds for phase, span in self._spans.items()}
        for span, outer, start in reversed(self.open):
            seconds[span.phase] += now - start - within
            within = outer + now - start
        seconds[Phase.OTHER] += now - self._started - within
        return Times(seconds, {phase: span.count for phase, span in self._spans.items()}, earlier)


@dataclass(frozen=True, eq=False)
class Times(Mapping[str, float]):
    """Seconds by phase, as a mapping from phase labels. Printing it gives a table.

    Each phase excludes nested phases, so that the values sum to `total`.
    """

    seconds: Mapping[Phase, float]
    counts: Mapping[Phase, int]
    """How often each phase was entered."""
    earlier: float = 0.0
    """Seconds of the runs that this one continues; not included in the other values."""

    def __getitem__(self, label: str | Phase) -> float:
        return self.seconds[label if isinstance(label, Phase) else _PHASES[label]]

    def __iter__(self) -> Iterator[str]:
        return iter(_PHASES)

    def __len__(self) -> int:
        return len(_PHASES)

    @property
    def total(self) -> float:
        """Total seconds of this run."""
        return sum(self.seconds.values())

    def share(self, label: str | Phase) -> float:
        """The share of a phase in the total, between 0 and 1."""
        return self[label] / self.total if self.total > 0 else 0.0

    def largest(self) -> list[Phase]:
        """The phases that took any time, longest first."""
        return sorted((phase for phase in Phase if self.seconds[phase] > 0), key=lambda phase: -self.seconds[phase])

    def __str__(self) -> str:
        rows = [("phase", "seconds", "share", "count")]
        for phase in self.largest():
            count = str(self.counts[phase]) if self.counts[phase] else ""
            rows.append((phase.label, f"{self[phase]:.6f}", f"{100 * self.share(phase):.1f} %", count))
        rows.append(("total", f"{self.total:.6f}", "", ""))
        if self.earlier:
            rows.append(("before", f"{self.earlier:.6f}", "", ""))
        return "\n".join(f"{row[0]:<12}  {row[1]:>12}  {row[2]:>7}  {row[3]:>8}".rstrip() for row in rows)


_PHASES = {phase.label: phase for phase in Phase}

__all__ = ["Clock", "Phase", "Span", "Times"]
