"""Cache lookups and CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.graphs import Direction
from compile_inspect.records.locations import Location


class CacheOutcome(Enum):
    """The result of a lookup in one of torch's caches."""

    HIT = "hit"
    MISS = "miss"
    BYPASS = "bypassed"


@dataclass(frozen=True)
class CacheEvent:
    """One lookup in one cache."""

    compilation: str | None
    cache: str
    outcome: CacheOutcome
    reason: str = ""
    key: str = ""
    seconds_saved: float | None = None


class CudaGraphOutcome(Enum):
    """What happened when CUDA graphs were requested."""

    USED = "runs as a CUDA graph"
    RECORDED = "recorded as a CUDA graph"
    SKIPPED = "skipped"
    NO_EFFECT = "requested, without effect: no CUDA device is used"


@dataclass(frozen=True)
class CudaGraphEvent:
    """Whether one compiled graph runs as a CUDA graph, and if not, why."""

    compilation: str | None
    outcome: CudaGraphOutcome
    reason: str = ""
    direction: Direction = Direction.UNKNOWN
    location: Location | None = None
    times: int = 1
