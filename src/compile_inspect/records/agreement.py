"""Whether the ways of running a function agree with eager, and what is to blame where one does not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.locations import Location
from compile_inspect.records.printable import Printable
from compile_inspect.records.timing import MeasurementWarning


class Verdict(Enum):
    """What came of comparing one variant with eager."""

    AGREES = "it agrees with eager"
    ASSUMES = "it agrees with eager as long as what it froze stays as it was"
    RANDOM = "it draws other random numbers than eager and cannot be compared"
    NONDETERMINISTIC = "eager itself gives a different result when run again"
    DISAGREES = "it does not agree with eager"
    REFUSED = "it cannot run this function"


class DifferenceKind(Enum):
    """In what way a variant differs from eager."""

    VALUE = "the values differ by more than rounding explains"
    BIAS = "the errors lean to one side, which those of rounding do not"
    NOT_FINITE = "NaN or infinity in other places"
    DISCRETE = "integers or truth values differ"
    METADATA = "another structure, shape, dtype, device or kind of tensor"
    STRIDES = "another layout in memory"
    ALIASING = "it shares memory with something else than eager's result does"
    AUTOGRAD = "one can be differentiated and the other cannot"
    LATER_CALL = "a later call gives a different result, or overwrites that of an earlier one"
    SIDE_EFFECT = "it changes something that eager leaves alone, or the other way round"
    EXCEPTION = "one raises an exception and the other does not, or another one"


class BlameStage(Enum):
    """The part of torch that made the difference."""

    DYNAMO = "Dynamo, which reads the Python code"
    AOT_AUTOGRAD = "AOTAutograd, which makes the backward graph"
    DECOMPOSITIONS = "the decompositions into simpler operations"
    INDUCTOR = "Inductor, which writes the kernels"
    BACKEND = "the backend that was named"
    TRACING = "tracing, which freezes Python values and branches"
    SCRIPTING = "TorchScript, which runs the graph"
    UNKNOWN = "no stage showed the difference by itself"


@dataclass(frozen=True)
class Difference:
    """One value that differs: at which inputs, of what, and by how much.

    `error` is the variant's distance from eager and the float64 reference and all between them, `eager_error` the larger
    of eager's distance from that reference and the spread that rounding gives it, `tolerance` what the variant's may be. The
    three values are those at `index`, the worst place.
    """

    point: str
    name: str
    kind: DifferenceKind
    message: str
    error: float | None = None
    eager_error: float | None = None
    tolerance: float | None = None
    index: tuple[int, ...] = ()
    eager: str = ""
    variant: str = ""
    reference: str = ""

    def __str__(self) -> str:
        return f"at {self.point}, {self.name}: {self.message}"


@dataclass(frozen=True)
class MeasuredError:
    """The largest error of one value over all inputs, of the variant and of eager, and what was allowed there."""

    name: str
    error: float
    eager_error: float
    tolerance: float


@dataclass(frozen=True)
class Blame:
    """What made a variant wrong: the stage, then the operation of the graph and the line of the user's it came from."""

    stage: BlameStage
    message: str
    node: str = ""
    operation: str = ""
    location: Location | None = None
    graph: str = ""
    """The graph that was searched, as text."""
    evidence: tuple[str, ...] = ()
    """What was run to come to this, and what came of it, each in a sentence."""

    def __str__(self) -> str:
        return f"{self.message} ({'; '.join(self.evidence)})" if self.evidence else self.message


@dataclass(frozen=True)
class VariantAgreement:
    """One variant against eager."""

    name: str
    verdict: Verdict
    reason: str
    differences: tuple[Difference, ...] = ()
    assumptions: tuple[str, ...] = ()
    measured_errors: tuple[MeasuredError, ...] = ()
    notes: tuple[str, ...] = ()
    blame: Blame | None = None
    not_probed: tuple[str, ...] = ()
    """What the comparison did not look at, each with the reason where there is one."""
    eager_reason: MeasurementWarning | None = None
    """Why the variant runs in eager mode, in whole or in part, so that little or nothing compiled was compared."""

    @property
    def agrees(self) -> bool:
        """Whether it is right at all inputs that were tried."""
        return self.verdict in (Verdict.AGREES, Verdict.ASSUMES)

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.reason}"]
        lines += [f"  {item}" for item in self.differences[:3] if str(item) not in self.reason]
        lines += [f"  as long as {item}" for item in self.assumptions]
        lines += [f"  blame: {self.blame}"] if self.blame is not None else []
        lines += [f"  note: {self.eager_reason.value}"] if self.eager_reason is not None else []
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  not probed: {'; '.join(self.not_probed)}"] if self.not_probed else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Agreement(Printable):
    """Every variant of a function against eager, at the same inputs."""

    function: str
    gradients: bool
    points: tuple[str, ...]
    """The inputs compared at, in words."""
    variants: tuple[VariantAgreement, ...] = ()
    has_reference: bool = True
    """Whether there is a float64 reference for at least one of the points."""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no variant is wrong, and eager itself gives the same result every time."""
        return all(item.verdict not in (Verdict.DISAGREES, Verdict.NONDETERMINISTIC) for item in self.variants)

    def __bool__(self) -> bool:
        """Whether something was compared, and nothing is wrong."""
        return self.agrees and any(item.agrees for item in self.variants)

    def variant(self, name: str) -> VariantAgreement:
        """The comparison of one variant, by its name."""
        for item in self.variants:
            if item.name == name:
                return item
        raise KeyError(f"{name!r} was not compared: there are {', '.join(item.name for item in self.variants)}")

    def __str__(self) -> str:
        what = "values and gradients" if self.gradients else "values"
        points = f"{len(self.points)} input{'s' if len(self.points) != 1 else ''}"
        lines = [f"{self.function}: {what} at {points}"]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, *map(str, self.variants)])
