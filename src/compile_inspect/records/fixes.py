"""What could be changed about a graph break, and what a trial of the change has shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

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
    """What it does, as an instruction: `Print only where nothing is being compiled`."""
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
    UNCHANGED = "withdrawn: the break is still there"
    WORSE = "withdrawn: the break is gone, but others came"
    DISAGREES = "withdrawn: the results are not those of the original"
    FAILED = "withdrawn: the changed program raises"
    UNTRIED = "not tried"


@dataclass(frozen=True)
class Proof:
    """What was seen when a proposal was tried on a copy."""

    standing: Standing
    reason: str = ""
    """One sentence: what agreed, or what did not."""
    breaks: tuple[int, int] = (0, 0)
    """Causes of graph breaks before and after."""
    graphs: tuple[int, int] = (0, 0)
    """Graphs before and after."""
    seconds: tuple[float, float] | None = None
    """Median seconds of a call of the compiled function before and after, where they were measured."""
    unreached: tuple[int, ...] = ()
    """Lines that are written otherwise and that no input reaches: of them nothing is proven."""

    @property
    def holds(self) -> bool:
        """Whether the proposal may be applied."""
        return self.standing is Standing.PROVEN


@dataclass(frozen=True)
class Advice:
    """All that is known about one cause: why, and what to do."""

    why: str
    """The reason in plain words."""
    proposals: tuple[Proposal, ...] = ()
    hints: tuple[str, ...] = ()
    """What else helps, where no line can be written for the user."""

    @property
    def has_fix(self) -> bool:
        """Whether there is anything to try."""
        return bool(self.proposals)


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


_SEVERITY = {BreakEffect.RAISED: 0, BreakEffect.SKIPPED: 1, BreakEffect.SPLIT: 2}


def by_cost(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings with the most expensive first: what stops the program, whole frames left to Python, then splits.

    Among these, where a fix was measured, the one that saves most comes first, then the one with most operations around it.
    """

    def rank(item: Finding) -> tuple[float, ...]:
        return (_SEVERITY[item.cause.effect], -(item.gain or 0.0), -item.cost.operations, -item.cause.hits)

    return tuple(sorted(findings, key=rank))
