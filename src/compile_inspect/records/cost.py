"""The cost of a graph break, as far as a capture shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BreakCost:
    """Operations and kernels on both sides of a break: one graph could contain them, and kernels might fuse."""

    before: int = 0
    """Operations in graphs that end at the break."""
    after: int = 0
    """Operations in graphs that begin after it."""
    kernels: int = 0
    """Kernel launches on both sides, if kernels were recorded."""
    frames: int = 0
    """Frames that run entirely in eager mode because of it."""

    @property
    def operations(self) -> int:
        """Operations that could be in one graph."""
        return self.before + self.after

    def __str__(self) -> str:
        parts = []
        if self.frames:
            parts.append(f"{self.frames} frame{'s' if self.frames != 1 else ''} without a graph")
        if self.operations:
            noun = "operation" if self.before == 1 else "operations"
            parts.append(f"{self.before} {noun} before it and {self.after} after it in graphs of their own")
        if self.kernels:
            noun = "kernel launch" if self.kernels == 1 else "kernel launches"
            parts.append(f"{self.kernels} {noun} that nothing fuses across it")
        return ", ".join(parts)
