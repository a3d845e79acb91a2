"""What could be changed about a graph break, and what a trial of the change has shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from compile_inspect.records.breaks import BreakEffect, GraphBreak
from compile_inspect.records.cost import BreakCost


@dataclass(frozen=True)
class Replacement:
    """A stretch of a file, from (line, column) to (line, column), and what to write in its place.

    Lines count from 1, columns from 0 in characters; `old` is what stands there, so that a file that has changed is noticed.
    """

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    old: str
    new: str


@dataclass(frozen=True)
class Setting:
    """A statement to run before anything is compiled, such as a switch of torch's configuration.

    >>> Setting("torch._dynamo.config.capture_scalar_outputs = True").code
    'torch._dynamo.config.capture_scalar_outputs = True'
    """

    code: str


@dataclass(frozen=True)
class Proposal:
    """One way to remove a graph break: lines to write otherwise, or a setting that leaves the code as it is."""

    fixer: str
    """The kind of fix, such as `prints`."""
    title: str
    """What it does, as an instruction: `Print only in eager mode`."""
    replacements: tuple[Replacement, ...] = ()
    settings: tuple[Setting, ...] = ()
    changes: str = ""
    """What the program does otherwise afterwards, in a sentence; empty where it does the same."""
    where: str = ""
    """When it is the right choice, in a sentence."""

    @property
    def is_rewrite(self) -> bool:
        """Whether lines of the program are changed."""
        return bool(self.replacements)


class Standing(Enum):
    """How far a proposal was proven."""

    PROVEN = "the break is gone, and the results agree with eager"
    REVEALS = "the break is gone, and the results agree with eager; what it hid is met now"
    UNCHANGED = "withdrawn: the break is still there"
    WORSE = "withdrawn: the break is gone, but others appeared"
    DISAGREES = "withdrawn: the results are not those of the original"
    INCOMPARABLE = "withdrawn: no result can be compared with the original"
    FAILED = "withdrawn: the changed program raises"
    UNTRIED = "not tried"


_REASONED = (Standing.DISAGREES, Standing.FAILED)


def _standing(breaks: tuple[int, int], remaining: int, arrived: int, revealed: int, inputs: int, compared: int) -> Standing:
    """The one standing that numbers allow, where nothing raises and nothing disagrees."""
    before, after = breaks
    if remaining:
        return Standing.UNCHANGED
    if arrived:
        return Standing.WORSE
    if not inputs and breaks == (0, 0):
        return Standing.UNTRIED
    if after - revealed >= before:
        return Standing.UNCHANGED
    if not inputs:
        return Standing.UNTRIED
    if not compared:
        return Standing.INCOMPARABLE
    return Standing.REVEALS if revealed else Standing.PROVEN


@dataclass(frozen=True)
class Proof:
    """What was seen when a proposal was tried on a copy: numbers, and the standing that follows from them.

    A proof whose standing its numbers contradict cannot be made: `Proof.of` finds the standing, and the constructor checks it.

    >>> Proof.of(breaks=(2, 1), graphs=(3, 2), inputs=4, values=1).standing.name
    'PROVEN'
    >>> Proof(Standing.PROVEN, breaks=(1, 1), inputs=4, values=1)
    Traceback (most recent call last):
    ValueError: with causes of breaks 1 → 1 a proof is UNCHANGED, not PROVEN
    """

    standing: Standing
    reason: str = ""
    """For what is withdrawn: which break, which difference, or which exception."""
    breaks: tuple[int, int] = (0, 0)
    """Causes of graph breaks before and after."""
    graphs: tuple[int, int] = (0, 0)
    """Graphs before and after."""
    seconds: tuple[float, float] | None = None
    """Median seconds of a call of the compiled function before and after, where they were measured."""
    unreached: tuple[int, ...] = ()
    """Lines that are written otherwise and that no input reaches: of them nothing is proven."""
    remaining: int = 0
    """Causes that were to be removed and are still there."""
    arrived: int = 0
    """Causes that came with the change."""
    revealed: int = 0
    """Causes that tracing did not come to before."""
    inputs: int = 0
    """Inputs at which results were compared, in eager mode and compiled."""
    values: int = 0
    """Results (and effects) that were compared at each."""
    gradients: int = 0
    """Gradients that were compared at each."""
    largest_error: float | None = None
    """The largest difference from the original in eager mode; None where nothing is a floating-point number."""
    unsteady: tuple[str, ...] = ()
    """Results that differ between two runs of the unchanged program, and were not compared."""

    def __post_init__(self) -> None:
        if self.standing in _REASONED and self.reason:
            return
        right = _standing(self.breaks, self.remaining, self.arrived, self.revealed, self.inputs, self.values + self.gradients)
        if self.standing is not right:
            told = f"causes of breaks {self.breaks[0]} → {self.breaks[1]}"
            told += f" and {self.inputs} inputs compared" if self.breaks[1] < self.breaks[0] else ""
            raise ValueError(f"with {told} a proof is {right.name}, not {self.standing.name}")

    @classmethod
    def of(cls, *, breaks: tuple[int, int], reason: str = "", difference: str = "", failure: str = "", **numbers: Any) -> Proof:
        """The proof that follows from numbers; `failure` is an exception, `difference` what disagrees with the original."""
        if failure:
            return cls(Standing.FAILED, failure, breaks, **numbers)
        if difference:
            return cls(Standing.DISAGREES, difference, breaks, **numbers)
        remaining, arrived, revealed, inputs, values, gradients = (
            int(numbers.get(name, 0)) for name in ("remaining", "arrived", "revealed", "inputs", "values", "gradients")
        )
        return cls(_standing(breaks, remaining, arrived, revealed, inputs, values + gradients), reason, breaks, **numbers)

    @property
    def holds(self) -> bool:
        """Whether the proposal may be applied."""
        return self.standing in (Standing.PROVEN, Standing.REVEALS)


@dataclass(frozen=True)
class Advice:
    """All that is known about one cause: why, and what to do."""

    why: str
    """The reason in plain words."""
    proposals: tuple[Proposal, ...] = ()
    hints: tuple[str, ...] = ()
    """What else helps, where no line can be written for the user."""


@dataclass(frozen=True)
class Finding:
    """One cause, what is known about it, and what trials have shown."""

    cause: GraphBreak
    advice: Advice
    trials: tuple[tuple[Proposal, Proof], ...] = ()
    cost: BreakCost = field(default_factory=BreakCost)

    @property
    def chosen(self) -> Proposal | None:
        """The first proposal that was proven, those that change lines before those that only switch something."""
        proven = [proposal for proposal, proof in self.trials if proof.holds]
        return next((proposal for proposal in proven if proposal.is_rewrite), proven[0] if proven else None)

    @property
    def gain(self) -> float | None:
        """Seconds of a call that the chosen proposal saves, where that was measured."""
        for proposal, proof in self.trials:
            if proposal is self.chosen and proof.seconds is not None:
                return proof.seconds[0] - proof.seconds[1]
        return None


_SEVERITY = {BreakEffect.RAISED: 0, BreakEffect.SKIPPED: 1, BreakEffect.MIXED: 1, BreakEffect.SPLIT: 2}


def by_cost(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings with the most expensive first: what stops the program, whole frames left to Python, then splits.

    Among these, where a fix was measured, the one that saves most comes first, then the one with most operations around it.
    """

    def rank(item: Finding) -> tuple[float, ...]:
        return (_SEVERITY[item.cause.effect], -(item.gain or 0.0), -item.cost.operations, -item.cause.hits)

    return tuple(sorted(findings, key=rank))
