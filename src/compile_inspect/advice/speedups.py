"""Timings against eager: the variant that represents torch.compile, at every size."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records import Inspection
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.timing import Measurement, Speedup, Timing, TimingPoint
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import TIMES, sizes

_EAGER = "eager"
_PRIMARY = "inductor"


@dataclass(frozen=True)
class SpeedAtSize:
    """The speed of a variant at one size of the inputs."""

    variant: str
    speed: Speedup
    workload: str

    def __str__(self) -> str:
        """The speedup over eager with its interval, and the workload.

        >>> str(SpeedAtSize("inductor", Speedup(0.92, 0.9, 0.94), "f, batch 8"))
        'speedup 0.92× with inductor (95 % interval 0.90–0.94×) on f, batch 8'
        """
        interval = f"95 % interval {self.speed.low:.2f}–{self.speed.high:.2f}{TIMES}"
        return f"speedup {self.speed.ratio:.2f}{TIMES} with {one_line(self.variant)} ({interval}) on {self.workload}"


@dataclass(frozen=True)
class SpeedComparison:
    """The variant that represents torch.compile at the last size, the fastest one if it is another, and all sizes."""

    primary: Measurement
    fastest: Measurement | None
    workload: str
    sizes: tuple[SpeedAtSize, ...] = ()

    @property
    def slower(self) -> tuple[SpeedAtSize, ...]:
        """Sizes at which it is slower than eager beyond the noise."""
        return tuple(item for item in self.sizes if item.speed.high < 1)

    @property
    def faster(self) -> tuple[SpeedAtSize, ...]:
        """Sizes at which it is faster than eager beyond the noise."""
        return tuple(item for item in self.sizes if item.speed.low > 1)

    @property
    def never_pays_back(self) -> bool:
        """Whether the build never pays back, over the whole confidence interval."""
        speed, payback = self.primary.speedup, self.primary.payback
        return payback is not None and payback.never_pays and speed is not None and speed.high < 1


def speed_comparison(inspection: Inspection) -> SpeedComparison | None:
    """The last timing, at its last size; variants that do not agree with eager are excluded.

    >>> speed_comparison(Inspection()) is None
    True
    """
    wrong = {
        item.name for agreement in inspection.agreements for item in agreement.variants if item.verdict is Verdict.DISAGREES
    }
    for timing in reversed(inspection.timings):
        for point in reversed(timing.points):
            measured = [
                item for item in point.measurements if item.speedup is not None and item.variant not in (_EAGER, *wrong)
            ]
            if measured:
                primary = next((item for item in measured if item.variant == _PRIMARY), None)
                fastest = max(measured, key=lambda item: item.speedup.ratio if item.speedup else 0.0)
                primary = primary or fastest
                faster_one = None if primary is None or fastest is primary else fastest
                return SpeedComparison(primary, faster_one, _workload(timing, point), _sizes(timing, primary.variant))
    return None


def _sizes(timing: Timing, variant: str) -> tuple[SpeedAtSize, ...]:
    return tuple(
        SpeedAtSize(variant, item.speedup, _workload(timing, point))
        for point in timing.points
        for item in point.measurements
        if item.variant == variant and item.speedup is not None
    )


def _workload(timing: Timing, point: TimingPoint) -> str:
    size = sizes(point.sizes)
    return f"{shorten(timing.target, 60)}{f', {size}' if size else ''}"
