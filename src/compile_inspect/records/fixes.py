"""Proposed fixes for graph breaks, and the results of trying them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from compile_inspect.records.breaks import BreakEffect, GraphBreak
from compile_inspect.records.cost import BreakCost


@dataclass(frozen=True)
class Replacement:
    """A range of a file, from (line, column) to (line, column), and its replacement text.

    Lines count from 1, columns from 0 in characters. `old` is the current text, so that a changed file is noticed.
    """

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    old: str
    new: str


@dataclass(frozen=True)
class Setting:
    """A statement to run before anything is compiled, such as a change to torch's configuration.

    >>> Setting("torch._dynamo.config.capture_scalar_outputs = True").code
    'torch._dynamo.config.capture_scalar_outputs = True'
    """

    code: str


@dataclass(frozen=True)
class Proposal:
    """One way to remove a graph break: a change to the code, or a setting that needs no change to the code."""

    fixer: str
    """The kind of fix, such as `prints`."""
    title: str
    """What it does, as an instruction: `Print only in eager mode`."""
    replacements: tuple[Replacement, ...] = ()
    settings: tuple[Setting, ...] = ()
    behavior_change: str = ""
    """How the program behaves differently afterward, in a sentence; empty if it behaves the same."""
    applicability: str = ""
    """When this is the right choice, in a sentence."""

    @property
    def is_rewrite(self) -> bool:
        """Whether it changes lines of the program."""
        return bool(self.replacements)


class ProofStatus(Enum):
    """The result of trying a proposal."""

    PROVEN = "the break is gone, and the results agree with eager"
    REVEALS = "the break is gone, and the results agree with eager; tracing now reaches breaks behind it"
    UNCHANGED = "withdrawn: the break is still there"
    WORSE = "withdrawn: the break is gone, but others appeared"
    DISAGREES = "withdrawn: the results differ from the original"
    INCOMPARABLE = "withdrawn: no result can be compared with the original"
    FAILED = "withdrawn: the changed program raises"
    UNTRIED = "not tried"


_STATUSES_WITH_A_REASON = (ProofStatus.DISAGREES, ProofStatus.FAILED)


def _status(breaks: tuple[int, int], remaining: int, new: int, revealed: int, inputs: int, compared: int) -> ProofStatus:
    """The only status that is consistent with the numbers, if nothing raises and nothing disagrees."""
    before, after = breaks
    if remaining:
        return ProofStatus.UNCHANGED
    if new:
        return ProofStatus.WORSE
    if not inputs and breaks == (0, 0):
        return ProofStatus.UNTRIED
    if after - revealed >= before:
        return ProofStatus.UNCHANGED
    if not inputs:
        return ProofStatus.UNTRIED
    if not compared:
        return ProofStatus.INCOMPARABLE
    return ProofStatus.REVEALS if revealed else ProofStatus.PROVEN


@dataclass(frozen=True)
class Proof:
    """The result of trying a proposal on a copy: numbers, and the status that follows from them.

    The numbers of a proof never contradict its status: `Proof.of` computes the status, and the constructor checks it.

    >>> Proof.of(breaks=(2, 1), graphs=(3, 2), inputs=4, values=1).status.name
    'PROVEN'
    >>> Proof(ProofStatus.PROVEN, breaks=(1, 1), inputs=4, values=1)
    Traceback (most recent call last):
    ValueError: with causes of breaks 1 → 1 a proof is UNCHANGED, not PROVEN
    """

    status: ProofStatus
    reason: str = ""
    """Why the proposal was withdrawn: the break, the difference, or the exception."""
    breaks: tuple[int, int] = (0, 0)
    """Causes of graph breaks before and after."""
    graphs: tuple[int, int] = (0, 0)
    """Graphs before and after."""
    seconds: tuple[float, float] | None = None
    """Median seconds per call of the compiled function before and after, if measured."""
    unreached_lines: tuple[int, ...] = ()
    """Changed lines that no input reaches: nothing is proven about them."""
    remaining_breaks: int = 0
    """Causes that the proposal should have removed and that are still there."""
    new_breaks: int = 0
    """Causes that the change introduced."""
    revealed_breaks: int = 0
    """Causes that tracing did not reach before the change."""
    inputs: int = 0
    """Number of inputs at which results were compared, in eager mode and compiled."""
    values: int = 0
    """Number of results and side effects compared at each input."""
    gradients: int = 0
    """Number of gradients compared at each input."""
    largest_error: float | None = None
    """The largest difference from the original in eager mode; None if no result is a floating-point number."""
    nondeterministic_results: tuple[str, ...] = ()
    """Results that differ between two runs of the unchanged program; they were not compared."""

    def __post_init__(self) -> None:
        if self.status in _STATUSES_WITH_A_REASON and self.reason:
            return
        compared = self.values + self.gradients
        causes = (self.remaining_breaks, self.new_breaks, self.revealed_breaks)
        expected = _status(self.breaks, *causes, self.inputs, compared)
        if self.status is not expected:
            numbers = f"causes of breaks {self.breaks[0]} → {self.breaks[1]}"
            numbers += f" and {self.inputs} inputs compared" if self.breaks[1] < self.breaks[0] else ""
            raise ValueError(f"with {numbers} a proof is {expected.name}, not {self.status.name}")

    @classmethod
    def of(cls, *, breaks: tuple[int, int], reason: str = "", difference: str = "", failure: str = "", **numbers: Any) -> Proof:
        """The proof that follows from numbers. `failure` is an exception, `difference` a mismatch with the original."""
        if failure:
            return cls(ProofStatus.FAILED, failure, breaks, **numbers)
        if difference:
            return cls(ProofStatus.DISAGREES, difference, breaks, **numbers)
        remaining, new, revealed, inputs, values, gradients = (
            int(numbers.get(name, 0))
            for name in ("remaining_breaks", "new_breaks", "revealed_breaks", "inputs", "values", "gradients")
        )
        return cls(_status(breaks, remaining, new, revealed, inputs, values + gradients), reason, breaks, **numbers)

    @property
    def holds(self) -> bool:
        """Whether the proposal may be applied."""
        return self.status in (ProofStatus.PROVEN, ProofStatus.REVEALS)


@dataclass(frozen=True)
class Advice:
    """What is known about one cause: the reason and the proposed fixes."""

    reason: str
    """The reason in plain words."""
    proposals: tuple[Proposal, ...] = ()
    hints: tuple[str, ...] = ()
    """Other suggestions, for changes that cannot be written automatically."""


@dataclass(frozen=True)
class Finding:
    """One cause, what is known about it, and the results of trials."""

    cause: GraphBreak
    advice: Advice
    trials: tuple[tuple[Proposal, Proof], ...] = ()
    cost: BreakCost = field(default_factory=BreakCost)

    @property
    def best_proposal(self) -> Proposal | None:
        """The first proven proposal; changes to the code come before settings."""
        proven = [proposal for proposal, proof in self.trials if proof.holds]
        return next((proposal for proposal in proven if proposal.is_rewrite), proven[0] if proven else None)

    @property
    def gain(self) -> float | None:
        """Seconds per call that the best proposal saves, if measured."""
        for proposal, proof in self.trials:
            if proposal is self.best_proposal and proof.seconds is not None:
                return proof.seconds[0] - proof.seconds[1]
        return None


_SEVERITY = {BreakEffect.RAISED: 0, BreakEffect.SKIPPED: 1, BreakEffect.MIXED: 1, BreakEffect.SPLIT: 2}


def sort_by_cost(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings sorted by cost: first exceptions, then frames that run entirely in eager mode, then split graphs.

    Within each group, findings with larger measured savings come first, then those with more operations around the break.
    """

    def rank(item: Finding) -> tuple[float, ...]:
        return (_SEVERITY[item.cause.effect], -(item.gain or 0.0), -item.cost.operations, -item.cause.hits)

    return tuple(sorted(findings, key=rank))
