"""What was timed against eager: the variant that stands for torch.compile, at every size."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records import Inspection
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.timing import Measurement, Speedup, Timing, TimingPoint
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import TIMES, sizes

_EAGER = "eager"
_USUAL = "inductor"


@dataclass(frozen=True)
class SizeSpeed:
    """How fast a variant is at one size of the inputs."""

    variant: str
    speed: Speedup
    of: str

    def __str__(self) -> str:
        """The speedup over eager with its interval, and of what.

        >>> str(SizeSpeed("inductor", Speedup(0.92, 0.9, 0.94), "f, batch 8"))
        'speedup 0.92× with inductor (95 % interval 0.90–0.94×) on f, batch 8'
        """
        interval = f"95 % interval {self.speed.low:.2f}–{self.speed.high:.2f}{TIMES}"
        return f"speedup {self.speed.ratio:.2f}{TIMES} with {one_line(self.variant)} ({interval}) on {self.of}"


@dataclass(frozen=True)
class Comparison:
    """What stands for torch.compile at the last size, the fastest there where that is another, and all sizes."""

    usual: Measurement
    fastest: Measurement | None
    of: str
    sizes: tuple[SizeSpeed, ...] = ()

    @property
    def slower(self) -> tuple[SizeSpeed, ...]:
        """Sizes at which it is slower than eager beyond the noise."""
        return tuple(item for item in self.sizes if item.speed.high < 1)

    @property
    def faster(self) -> tuple[SizeSpeed, ...]:
        """Sizes at which it is faster than eager beyond the noise."""
        return tuple(item for item in self.sizes if item.speed.low > 1)

    @property
    def never_pays_back(self) -> bool:
        """Whether the build never pays back, and the whole interval says so."""
        speed, payback = self.usual.speedup, self.usual.payback
        return payback is not None and payback.never_pays and speed is not None and speed.high < 1


def compared(inspection: Inspection) -> Comparison | None:
    """The last timing, at its last size; variants that do not agree with eager are no choice.

    >>> compared(Inspection()) is None
    True
    """
    wrong = {
        item.name for agreement in inspection.agreements for item in agreement.variants if item.verdict is Verdict.DISAGREES
    }
    for timing in reversed(inspection.timings):
        for point in reversed(timing.points):
            ran = [item for item in point.measurements if item.speedup is not None and item.variant not in (_EAGER, *wrong)]
            if ran:
                usual = next((item for item in ran if item.variant == _USUAL), None)
                fastest = max(ran, key=lambda item: item.speedup.ratio if item.speedup else 0.0)
                chosen = usual or fastest
                other = None if usual is None or fastest is usual else fastest
                return Comparison(chosen, other, _of(timing, point), _sizes(timing, chosen.variant))
    return None


def _sizes(timing: Timing, variant: str) -> tuple[SizeSpeed, ...]:
    return tuple(
        SizeSpeed(variant, item.speedup, _of(timing, point))
        for point in timing.points
        for item in point.measurements
        if item.variant == variant and item.speedup is not None
    )


def _of(timing: Timing, point: TimingPoint) -> str:
    size = sizes(point.sizes)
    return f"{shorten(timing.target, 60)}{f', {size}' if size else ''}"
