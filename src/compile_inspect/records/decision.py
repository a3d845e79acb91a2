"""What `tune` tried, measured and chose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.printable import Printable


class TuningOutcome(Enum):
    """The outcome for one variant."""

    CHOSEN = "It is the fastest variant that agrees with eager, and is used."
    SLOWER = "It agrees with eager, but another variant is faster."
    DISAGREES = "Its results differ from eager's."
    REFUSED = "It cannot run this function."
    NOT_TRIED = "The time limit was reached before its turn."


@dataclass(frozen=True)
class VariantResult:
    """The outcome for one variant, with the reason. Times are seconds per call, with the 95 % interval of the median."""

    variant: str
    outcome: TuningOutcome
    reason: str
    build_seconds: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision(Printable):
    """The variant of a function that is used, and the evidence for it."""

    target: str
    variant: str
    reason: str
    device: str
    torch: str
    gradients: bool
    seconds: float
    """How long the decision took."""
    results: tuple[VariantResult, ...]
    from_disk: bool = False
    """Whether the evidence was measured by an earlier process."""

    def __str__(self) -> str:
        """A readable table."""
        lines = [f"{self.target} on {self.device}: {self.variant}. {self.reason}"]
        for item in self.results:
            time = "" if item.median is None else f"{1e6 * item.median:.1f} µs"
            build = "" if item.build_seconds is None else f"{item.build_seconds:.1f} s to build"
            outcome = item.outcome.name.lower().replace("_", " ")
            lines.append(f"  {item.variant:26} {time:>12}  {build:18} {outcome}: {item.reason}")
        return "\n".join(lines)
