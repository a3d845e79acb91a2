"""Caches and CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.graphs import Direction
from compile_inspect.records.locations import Location


class CacheOutcome(Enum):
    """What a look-up in one of torch's caches gave."""

    HIT = "hit"
    MISS = "miss"
    BYPASS = "bypassed"


@dataclass(frozen=True)
class CacheEvent:
    """One look-up in one cache."""

    compilation: str | None
    cache: str
    outcome: CacheOutcome
    reason: str = ""
    key: str = ""
    seconds_saved: float | None = None


class CudaGraphOutcome(Enum):
    """What became of a wish for CUDA graphs."""

    USED = "runs as a CUDA graph"
    RECORDED = "recorded as a CUDA graph"
    SKIPPED = "skipped"
    NO_EFFECT = "asked for, without effect: no CUDA device is involved"


@dataclass(frozen=True)
class CudaGraphEvent:
    """CUDA graphs for one compiled graph: used, or skipped and why."""

    compilation: str | None
    outcome: CudaGraphOutcome
    reason: str = ""
    direction: Direction = Direction.UNKNOWN
    location: Location | None = None
    times: int = 1
