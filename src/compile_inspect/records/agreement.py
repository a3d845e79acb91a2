"""Whether the variants of a function agree with eager, and what causes a difference."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.locations import Location
from compile_inspect.records.printable import Printable
from compile_inspect.records.timing import MeasurementWarning


class Verdict(Enum):
    """The result of comparing one variant with eager."""

    AGREES = "it agrees with eager"
    ASSUMES = "it agrees with eager as long as the values it froze do not change"
    RANDOM = "it draws different random numbers from eager and cannot be compared"
    NONDETERMINISTIC = "eager itself gives a different result when run again"
    DISAGREES = "it does not agree with eager"
    REFUSED = "it cannot run this function"


class DifferenceKind(Enum):
    """How a variant differs from eager."""

    VALUE = "the values differ by more than rounding explains"
    BIAS = "the errors are biased in one direction, unlike rounding errors"
    NOT_FINITE = "NaN or infinity at different positions"
    DISCRETE = "integers or booleans differ"
    METADATA = "a different structure, shape, dtype, device or kind of tensor"
    STRIDES = "a different memory layout"
    ALIASING = "it shares memory with different tensors than eager's result"
    AUTOGRAD = "one can be differentiated and the other cannot"
    LATER_CALL = "a later call gives a different result, or overwrites the result of an earlier call"
    SIDE_EFFECT = "it changes something that eager does not change, or the reverse"
    EXCEPTION = "one raises an exception and the other does not, or they raise different exceptions"


class BlameStage(Enum):
    """The part of torch that causes a difference."""

    DYNAMO = "Dynamo, which traces the Python code"
    AOT_AUTOGRAD = "AOTAutograd, which builds the backward graph"
    DECOMPOSITIONS = "the decompositions into simpler operations"
    INDUCTOR = "Inductor, which generates the kernels"
    BACKEND = "the named backend"
    TRACING = "tracing, which freezes Python values and branches"
    SCRIPTING = "TorchScript, which runs the graph"
    UNKNOWN = "no single stage reproduces the difference"


@dataclass(frozen=True)
class Difference:
    """One value that differs: at which inputs, which value, and by how much.

    `error` is the variant's distance from the interval that spans eager and the float64 reference. `eager_error` is the larger
    of eager's distance from that reference and its spread under rounding. `tolerance` is the largest `error` that is
    accepted. `eager`, `variant` and `reference` are the values at `index`, the worst position.
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
    """The largest errors of one value over all inputs, of the variant and of eager, with the tolerance there."""

    name: str
    error: float
    eager_error: float
    tolerance: float


@dataclass(frozen=True)
class Blame:
    """What causes a mismatch: the stage, the operation in the graph, and the line of the program it came from."""

    stage: BlameStage
    message: str
    node: str = ""
    operation: str = ""
    location: Location | None = None
    graph: str = ""
    """The searched graph, as text."""
    evidence: tuple[str, ...] = ()
    """The runs that this is based on, with their results, one sentence each."""

    def __str__(self) -> str:
        return f"{self.message} ({'; '.join(self.evidence)})" if self.evidence else self.message


@dataclass(frozen=True)
class VariantAgreement:
    """The comparison of one variant with eager."""

    name: str
    verdict: Verdict
    reason: str
    differences: tuple[Difference, ...] = ()
    assumptions: tuple[str, ...] = ()
    measured_errors: tuple[MeasuredError, ...] = ()
    notes: tuple[str, ...] = ()
    blame: Blame | None = None
    not_probed: tuple[str, ...] = ()
    """What the comparison did not check, with reasons where there are any."""
    eager_reason: MeasurementWarning | None = None
    """Why some or all of the variant runs in eager mode, so that little or no compiled code was compared."""

    @property
    def agrees(self) -> bool:
        """Whether it agrees with eager at all inputs that were tried."""
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
    """All variants of a function compared with eager at the same inputs."""

    function: str
    gradients: bool
    points: tuple[str, ...]
    """Descriptions of the inputs at which variants were compared."""
    variants: tuple[VariantAgreement, ...] = ()
    has_reference: bool = True
    """Whether at least one point has a float64 reference."""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no variant disagrees, and eager itself is deterministic."""
        return all(item.verdict not in (Verdict.DISAGREES, Verdict.NONDETERMINISTIC) for item in self.variants)

    def __bool__(self) -> bool:
        """Whether something was compared and everything agrees."""
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
