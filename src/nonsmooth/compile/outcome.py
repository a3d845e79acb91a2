"""The outcome of compiling the functions of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CompileOutcome(Enum):
    """The outcome of compiling the functions."""

    NOT_WANTED = "Compiling was switched off."
    NOT_WORTH_IT = "The run was too short for compiling to pay off."
    NOT_READY = "The run ended before the build was ready."
    REFUSED = "The functions cannot be compiled."
    SLOWER = "The compiled functions were not faster."
    USED = "The compiled functions were used."
    CHANGED = "Something that the functions read has changed, and the original functions were used again."
    DISAGREED = "The compiled functions disagreed with the original functions and were dropped."


@dataclass(frozen=True)
class Compilation:
    """The outcome of compiling the functions in one run, with counts and times."""

    outcome: CompileOutcome
    reason: str = ""
    evaluations: int = 0
    """The number of compiled evaluations."""
    checks: int = 0
    """How often compiled functions were compared with the original functions."""
    build_seconds: float = 0.0
    from_disk: bool = False

    def __str__(self) -> str:
        """One line.

        >>> print(Compilation(CompileOutcome.USED, evaluations=120, checks=2, from_disk=True))
        The compiled functions were used. 120 evaluations, 2 checks, from an earlier run.
        """
        parts = [f"{self.evaluations} evaluations, {self.checks} checks" if self.evaluations else ""]
        parts += ["from an earlier run" if self.from_disk else "", self.reason]
        details = ", ".join(part for part in parts if part)
        details = details[:1].upper() + details[1:]
        return f"{self.outcome.value} {details}.".replace("..", ".") if details else self.outcome.value
