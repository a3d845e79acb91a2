"""How long every variant of a target takes, what it cost to build, and when that pays back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from compile_inspect.records.shown import Shown
from compile_inspect.rendering import Format, render


class Doubt(Enum):
    """A reason not to trust a measurement too far."""

    FIRST_CALL_SLOW = "the first call after the build took over five times the median: a cold start costs more than this says"
    NOISY = "the samples scatter by more than a tenth of their median: small differences mean nothing"
    OUTLIERS = "more than one sample in twenty lies far outside the others: something else interrupted"
    DRIFT = "the first and the last rounds differ by more than the noise: the machine changed speed meanwhile"
    FREQUENCY = "the CPU frequency changed by more than a tenth while sampling"
    BUSY = "other processes used more than a fifth of the CPU while sampling"
    FEW_SAMPLES = "fewer than ten samples: the interval is the whole range seen"
    RECOMPILED = "torch compiled again while sampling: some samples hold a compilation"
    NO_GRAPH = "torch.compile made no graph with an operation in it: it runs in eager mode"
    RECOMPILE_LIMIT = "torch reached its recompile limit: calls that match no compiled version run in eager mode"
    UNSETTLED = "the times were still changing when the warm-up ended"
    BUSY_BUILD = "other processes used more than a fifth of the CPU during the cold builds: on an idle machine they take less"
    PAGE_FAULTS = (
        "over a tenth of a call goes into memory that is given back to the system and fetched again, which comes and goes; "
        "with glibc, MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000 in the environment keeps it"
    )


class CacheUse(Enum):
    """What torch's caches on disk did for a build."""

    ANEW = "compiled anew: the caches held nothing of it"
    FOUND = "found whole in torch's caches"
    PARTLY = "found in part in torch's caches"
    UNKNOWN = "torch does not say whether its caches were used"
    NOTHING = "nothing to compile"


@dataclass(frozen=True)
class Outlier:
    """One sample far from the others: its place, its value, and how many (scaled) median deviations it is away."""

    position: int
    seconds: float
    deviations: float


@dataclass(frozen=True)
class Summary:
    """What a list of samples says. `low` and `high` hold the true median with a confidence of 95 %."""

    count: int
    median: float
    low: float
    high: float
    mean: float
    deviation: float
    outliers: tuple[Outlier, ...] = ()


@dataclass(frozen=True)
class Payback:
    """After how many calls a cold build has paid for itself against eager; None stands for never.

    `low` and `high` are the ends of a 95 % interval: a `high` of None with a `low` means that it may never happen.
    """

    calls: int | None
    low: int | None
    high: int | None
    build_seconds: float = 0.0
    gain_seconds: float = 0.0
    """What one call gains, less than zero where the variant is slower."""

    @property
    def never(self) -> bool:
        """Whether the build never pays back: not even at the best end of the interval."""
        return self.calls is None and self.low is None

    @property
    def unclear(self) -> bool:
        """Whether the interval is so wide that `calls` is no prediction: the gain of a call is too small for its scatter.

        >>> Payback(5000, 4800, 5300).unclear, Payback(5000, 900, None).unclear, Payback(None, None, None).unclear
        (False, True, False)
        """
        return self.low is not None and (self.high is None or self.high > 2 * self.low)


@dataclass(frozen=True)
class Speed:
    """How many times faster than eager, paired over rounds, with a 95 % interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Build:
    """What it took to get a variant ready, first calls included.

    `cold_seconds` and `warm_seconds` were seen in processes of their own, with an empty cache folder and with what the last
    cold build left there: they do not depend on the order of variants. `seconds` was seen in the measuring process, after
    the builds before it, with `caches` as they were: it is warm to an extent that depends on the order, and no payback
    rests on it. Where the first two are None, `reason` says why.
    """

    seconds: float
    caches: CacheUse = CacheUse.UNKNOWN
    cold_seconds: float | None = None
    warm_seconds: float | None = None
    reason: str = ""
    cold_samples: tuple[float, ...] = ()
    """Every cold build; `cold_seconds` is their median."""
    cold_cpu_seconds: float | None = None
    """CPU time of a cold build and of the compilers it runs, the median: other processes change it less than the seconds."""


@dataclass(frozen=True)
class Memory:
    """The most memory that one call held beyond what was held before it, and how that was seen or why it is not known."""

    peak_bytes: int | None = None
    how: str = ""


@dataclass(frozen=True)
class Measurement:
    """One variant at one size: its samples, or the reason why there are none."""

    variant: str
    refused: str = ""
    samples: tuple[float, ...] = ()
    """Seconds per call, one for every round, as measured; on a GPU synchronization is part of it."""
    device_samples: tuple[float, ...] = ()
    """Seconds between device events around one call in every round; on a GPU only."""
    batch: int = 1
    """How many calls one sample is the mean of."""
    summary: Summary | None = None
    speed: Speed | None = None
    build: Build | None = None
    payback: Payback | None = None
    memory: Memory | None = None
    first_seconds: float | None = None
    """The first call after the build."""
    warm_ups: int = 0
    doubts: tuple[Doubt, ...] = ()
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TimingPoint:
    """All variants at one size of the inputs."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    measurements: tuple[Measurement, ...] = ()

    def of(self, variant: str) -> Measurement | None:
        """The measurement of a variant."""
        return next((item for item in self.measurements if item.variant == variant), None)

    @property
    def fastest(self) -> Measurement | None:
        """The variant with the lowest median."""
        ran = [item for item in self.measurements if item.summary is not None]
        return min(ran, key=lambda item: item.summary.median if item.summary else 0.0, default=None)


@dataclass(frozen=True, repr=False)
class Timing(Shown):
    """One run of `time_variants`: every variant of a target, at one size or over a sweep of sizes."""

    target: str
    device: str = "cpu"
    hardware: str = ""
    torch: str = ""
    threads: int = 0
    gradients: bool = False
    seconds: float = 0.0
    """How long every point was sampled."""
    points: tuple[TimingPoint, ...] = ()
    interrupted: str = ""
    """What was being done when Ctrl-C ended the run; what had been measured by then is here."""

    def __repr__(self) -> str:
        """What was timed.

        >>> Timing("model", points=(TimingPoint(measurements=(Measurement("eager"), Measurement("inductor"))),))
        Timing(model, on cpu, points: 1, variants: eager, inductor)
        """
        variants = dict.fromkeys(item.variant for point in self.points for item in point.measurements)
        return f"Timing({self.target}, on {self.device}, points: {len(self.points)}, variants: {', '.join(variants)})"

    def __str__(self) -> str:
        """The tables, as `compile-inspect bench` prints them."""
        return render(Format.TIMING, self)
