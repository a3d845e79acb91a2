"""What `compile_inspect.breaks` and `compile_inspect.fix` return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compile_inspect.records.fixes import Finding, Proof
from compile_inspect.records.inspection import Inspection
from compile_inspect.rendering import Format, render


@dataclass(frozen=True)
class BreakReport:
    """The graph breaks of a target by cause, with advice and the proposals that were tried; `print` shows it as text."""

    inspection: Inspection
    """The capture of the unchanged program."""
    findings: tuple[Finding, ...] = ()
    """One finding per cause, the most expensive first."""
    fullgraph: str = ""
    """What remains to be done before `fullgraph=True` works, in a sentence; empty if that was not tried."""
    backend: str = "inductor"
    """The backend that the program was compiled with."""

    @property
    def fixed_by_proposals(self) -> tuple[Finding, ...]:
        """The findings with a proposal that was proven."""
        return tuple(item for item in self.findings if item.best_proposal is not None)

    def __str__(self) -> str:
        """The text that `compile-inspect breaks` prints."""
        return render(Format.BREAKS, self)


@dataclass(frozen=True)
class FixReport:
    """The proven fixes of a target as one change; `print` shows it as text."""

    inspection: Inspection
    """The capture of the unchanged program."""
    findings: tuple[Finding, ...] = ()
    """One finding per cause, with the proposals that were tried and their proofs."""
    proof: Proof | None = None
    """What a trial of all included fixes together has shown; None if no fix was proven."""
    included: tuple[Finding, ...] = ()
    """The findings whose fixes are part of the change."""
    remaining: tuple[Finding, ...] = ()
    """The findings that you have to fix by hand."""
    diff: str = ""
    """The change as a unified diff."""
    settings: tuple[str, ...] = ()
    """Statements to run before anything is compiled."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The changed files with their new text."""
    messages: tuple[str, ...] = ()
    """For each file that was written, how to undo that; empty if nothing was written."""
    backend: str = "inductor"
    """The backend that the program was compiled with."""

    @property
    def holds(self) -> bool:
        """Whether the change was proven as a whole, so that it may be written."""
        return self.proof is not None and self.proof.holds

    @property
    def unreached(self) -> tuple[Finding, ...]:
        """The remaining findings with a fix that is left out because it changes lines that no input reaches."""
        return tuple(
            item
            for item in self.remaining
            if item.best_proposal is not None and dict(item.trials)[item.best_proposal].unreached_lines
        )

    def __str__(self) -> str:
        """The text that `compile-inspect fix` prints."""
        return render(Format.FIX, self)
