"""What became of compiling the functions of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CompileOutcome(Enum):
    """What became of compiling the functions."""

    NOT_WANTED = "It was not wanted."
    NOT_WORTH_IT = "The run was too short for it to pay."
    NOT_READY = "The run ended before it was built."
    REFUSED = "The functions cannot be compiled."
    SLOWER = "The compiled functions were not faster."
    USED = "The compiled functions were used."
    CHANGED = "What the functions read has changed, and they were used themselves again."
    DISAGREED = "The compiled functions gave other results than the functions themselves, and were given up."


@dataclass(frozen=True)
class Compilation:
    """What became of compiling the functions in one run."""

    outcome: CompileOutcome
    reason: str = ""
    evaluations: int = 0
    """How many evaluations were compiled ones."""
    checks: int = 0
    """How often they were compared with the functions themselves."""
    build_seconds: float = 0.0
    from_disk: bool = False

    def __str__(self) -> str:
        """One line.

        >>> print(Compilation(CompileOutcome.USED, evaluations=120, checks=2, from_disk=True))
        The compiled functions were used. 120 evaluations, 2 checks, from an earlier run.
        """
        parts = [f"{self.evaluations} evaluations, {self.checks} checks" if self.evaluations else ""]
        parts += ["from an earlier run" if self.from_disk else "", self.reason]
        said = ", ".join(part for part in parts if part)
        said = said[:1].upper() + said[1:]
        return f"{self.outcome.value} {said}.".replace("..", ".") if said else self.outcome.value
