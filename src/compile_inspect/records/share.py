"""How much of what torch traced runs compiled."""

from __future__ import annotations

from dataclasses import dataclass

NEAR_ZERO = 0.1
"""A share up to which next to nothing runs compiled."""


@dataclass(frozen=True)
class CompiledShare:
    """Operations that torch traced: those in graphs that were compiled, and those left to eager mode with their frame.

    An operation is one call in Dynamo's graph of a frame. `compiled` counts the newest version of each frame. `eager` counts
    what torch had traced of frames that it then gave up, and that no graph of another frame holds. Functions that torch did
    not trace at all (disabled ones, say) are in neither: what they compute is not known.

    >>> CompiledShare(3, 1).fraction, CompiledShare().fraction
    (0.75, None)
    """

    compiled: int = 0
    eager: int = 0

    @property
    def traced(self) -> int:
        """All operations that torch traced."""
        return self.compiled + self.eager

    @property
    def fraction(self) -> float | None:
        """The part that runs compiled; None where no operation was traced."""
        return self.compiled / self.traced if self.traced else None

    @property
    def is_near_zero(self) -> bool:
        """Whether operations were traced, and next to none of them runs compiled."""
        return self.fraction is not None and self.fraction <= NEAR_ZERO
