"""How many of the operations that torch traced run compiled."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NEAR_ZERO_FRACTION = 0.1
"""The largest compiled fraction that is reported as next to nothing."""


@dataclass(frozen=True)
class CompiledShare:
    """Operations that torch traced: how many are in compiled graphs, and how many run in eager mode with their frame.

    An operation is one call in Dynamo's graph of a frame. `compiled_operations` counts the newest version of each frame.
    `eager_operations` counts what torch had traced in frames that it then gave up on, except operations that are in the graph
    of another frame. Functions that torch did not trace at all (disabled ones, for example) are in neither count: their
    operations are not known.

    >>> CompiledShare(3, 1).fraction, CompiledShare().fraction
    (0.75, None)
    """

    compiled_operations: int = 0
    eager_operations: int = 0

    @property
    def traced_operations(self) -> int:
        """All operations that torch traced."""
        return self.compiled_operations + self.eager_operations

    @property
    def fraction(self) -> float | None:
        """The fraction that runs compiled; None if no operation was traced."""
        return self.compiled_operations / self.traced_operations if self.traced_operations else None

    @property
    def is_near_zero(self) -> bool:
        """Whether operations were traced and almost none of them runs compiled."""
        return self.fraction is not None and self.fraction <= MAX_NEAR_ZERO_FRACTION
