"""How long each variant of a target takes, what its build costs, and when the build pays back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from compile_inspect.records.printable import Printable
from compile_inspect.rendering import Format, render


class MeasurementWarning(Enum):
    """A reason to be careful with a measurement."""

    SLOW_FIRST_CALL = (
        "the first call after the build took more than five times the median: a cold start costs more than the median suggests"
    )
    NOISE = "the samples scatter by more than a tenth of their median: small differences are not significant"
    OUTLIERS = "more than one sample in twenty is far from the others: something interrupted the calls"
    DRIFT = "the first and last rounds differ by more than the noise: the machine changed speed during the measurement"
    FREQUENCY_CHANGE = "the CPU frequency changed by more than a tenth while sampling"
    CPU_CONTENTION = "other processes used more than a fifth of the CPU while sampling"
    FEW_SAMPLES = "fewer than ten samples: the interval is close to the full range of the samples"
    RECOMPILATION = "torch compiled again while sampling: some samples include a compilation"
    NO_GRAPH = "torch.compile captured no graph with an operation in it: the function runs in eager mode"
    RECOMPILE_LIMIT = "torch reached its recompile limit: calls that match no compiled version run in eager mode"
    UNFINISHED_WARM_UP = "the times were still changing when the warm-up ended"
    BUILD_CPU_CONTENTION = (
        "other processes used more than a fifth of the CPU during the cold builds: they take less time on an idle machine"
    )
    PAGE_FAULTS = (
        "over a tenth of a call is spent on page faults, because the allocator returns memory to the system and requests it "
        "again; this can change from run to run. With glibc, the environment variables MALLOC_MMAP_MAX_=0 "
        "MALLOC_TRIM_THRESHOLD_=1000000000 prevent it"
    )


class CacheUse(Enum):
    """Whether a build used torch's on-disk caches."""

    MISS = "everything was compiled: the caches had no entry for it"
    HIT = "everything was in torch's caches"
    PARTIAL_HIT = "some of it was in torch's caches"
    UNKNOWN = "torch does not report whether it used its caches"
    NOT_NEEDED = "there was nothing to compile"


@dataclass(frozen=True)
class Outlier:
    """One sample far from the others: its position, its value, and its distance in scaled median absolute deviations."""

    position: int
    seconds: float
    deviations: float


@dataclass(frozen=True)
class Summary:
    """Summary statistics of samples. `low` and `high` are the 95 % confidence interval of the median."""

    count: int
    median: float
    low: float
    high: float
    mean: float
    deviation: float
    outliers: tuple[Outlier, ...] = ()


@dataclass(frozen=True)
class Payback:
    """The number of calls after which a cold build pays back compared with eager; None means never.

    `low` and `high` are the ends of a 95 % interval. If `high` is None and `low` is not, the build may never pay back.
    """

    calls: int | None
    low: int | None
    high: int | None
    build_seconds: float = 0.0
    gain_seconds: float = 0.0
    """The time saved per call; negative if the variant is slower."""

    @property
    def never_pays(self) -> bool:
        """Whether the build never pays back, not even at the optimistic end of the interval."""
        return self.calls is None and self.low is None

    @property
    def is_unclear(self) -> bool:
        """Whether the interval is too wide for `calls` to be a prediction: the gain per call is too small for its scatter.

        >>> Payback(5000, 4800, 5300).is_unclear, Payback(5000, 900, None).is_unclear, Payback(None, None, None).is_unclear
        (False, True, False)
        """
        return self.low is not None and (self.high is None or self.high > 2 * self.low)


@dataclass(frozen=True)
class Speedup:
    """The speedup over eager, paired by rounds, with a 95 % interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Build:
    """The time to build a variant, first calls included.

    `cold_seconds` and `warm_seconds` were measured in separate processes, the first with an empty cache folder, the second with
    what the last cold build left there: they do not depend on the order of variants. `seconds` was measured in the process that
    takes the samples, after the earlier builds and with the caches they left: it depends on the order, and no payback is
    computed from it. If the first two are None, `reason` explains why.
    """

    seconds: float
    cache_use: CacheUse = CacheUse.UNKNOWN
    cold_seconds: float | None = None
    warm_seconds: float | None = None
    reason: str = ""
    cold_samples: tuple[float, ...] = ()
    """Every cold build; `cold_seconds` is their median."""
    cold_cpu_seconds: float | None = None
    """Median CPU time of a cold build, including the compilers it runs: other processes affect it less than elapsed time."""


@dataclass(frozen=True)
class Memory:
    """The peak memory of one call beyond what was allocated before it, and how it was measured or why it is not known."""

    peak_bytes: int | None = None
    method: str = ""


@dataclass(frozen=True)
class Measurement:
    """One variant at one input size: its samples, or the reason why there are none."""

    variant: str
    refusal: str = ""
    samples: tuple[float, ...] = ()
    """Seconds per call, one per round, as measured; on a GPU they include the synchronization."""
    device_samples: tuple[float, ...] = ()
    """Seconds between device events around one call in each round; only on a GPU."""
    calls_per_sample: int = 1
    """The number of calls that each sample is the mean of."""
    summary: Summary | None = None
    speedup: Speedup | None = None
    build: Build | None = None
    payback: Payback | None = None
    memory: Memory | None = None
    first_call_seconds: float | None = None
    """Duration of the first call after the build."""
    warm_up_calls: int = 0
    warnings: tuple[MeasurementWarning, ...] = ()
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class TimingPoint:
    """All variants at one input size."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    measurements: tuple[Measurement, ...] = ()

    def of(self, variant: str) -> Measurement | None:
        """The measurement of one variant, if there is one."""
        return next((item for item in self.measurements if item.variant == variant), None)

    @property
    def fastest(self) -> Measurement | None:
        """The variant with the lowest median."""
        ran = [item for item in self.measurements if item.summary is not None]
        return min(ran, key=lambda item: item.summary.median if item.summary else 0.0, default=None)


@dataclass(frozen=True, repr=False)
class Timing(Printable):
    """One run of `time_variants`: all variants of a target, at one input size or over a sweep of sizes."""

    target: str
    device: str = "cpu"
    hardware: str = ""
    torch: str = ""
    threads: int = 0
    gradients: bool = False
    seconds: float = 0.0
    """How long each point was sampled."""
    points: tuple[TimingPoint, ...] = ()
    interrupted_during: str = ""
    """The step that Ctrl-C interrupted; empty if the run finished. Everything measured before that is included."""

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
