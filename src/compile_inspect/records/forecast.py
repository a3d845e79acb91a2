"""What torch.compile compiles for a sequence of calls, predicted or observed, and how to reduce the number of compilations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from compile_inspect.records.guards import GuardFailure


@dataclass(frozen=True)
class ForecastCompilation:
    """One compilation of one frame: the call that caused it, and why no earlier version matched.

    `id` numbers frames in the order in which Dynamo reaches them, and the versions of each frame: `0/2` is the third version
    of the first frame.
    """

    id: str
    call: int
    function: str
    file: str
    line: int
    failures: tuple[GuardFailure, ...] = ()
    has_graph: bool = True
    """Whether there is a graph for the backend to compile. Guards are checked, and count against the limit, in both cases."""
    is_reusable: bool = True
    """False if the call raised after the graph was compiled, for example because a dimension marked dynamic was specialized."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    """Sizes and numbers that are symbolic in this version, with their values at the call."""

    @property
    def is_recompile(self) -> bool:
        """Whether the frame had been compiled before."""
        return not self.id.endswith("/0")

    @property
    def cause(self) -> GuardFailure | None:
        """The failed guard of the most recently used version, which shows what changed."""
        return self.failures[0] if self.failures else None


@dataclass(frozen=True)
class ForecastLimit:
    """The call at which torch stops recompiling a frame."""

    call: int
    frame: str
    """The number of the frame, as in the first half of the ids of its compilations."""
    function: str
    file: str
    line: int
    limit: str
    value: int | None
    failure: GuardFailure | None = None


@dataclass(frozen=True)
class ForecastCall:
    """One call of the sequence."""

    index: int
    label: str = ""
    inputs: tuple[str, ...] = ()
    new_compilations: tuple[str, ...] = ()
    """Compilations that the call causes."""
    used_compilations: tuple[str, ...] = ()
    """Compilations whose graphs the call runs, each listed once."""
    eager_frames: tuple[str, ...] = ()
    """Frames beyond their limit, which the call runs in eager mode."""
    error: str | None = None
    """The exception that the call raises, in one line."""
    fails_in_eager: bool = False
    """Whether the call raises the same exception in eager mode, so that it is not caused by compilation."""


@dataclass(frozen=True)
class Forecast:
    """What torch.compile does for a sequence of calls in a fresh process."""

    calls: tuple[ForecastCall, ...] = ()
    compilations: tuple[ForecastCompilation, ...] = ()
    limits: tuple[ForecastLimit, ...] = ()
    break_count: int = 0
    """Causes of graph breaks: each splits a function into several frames."""
    dynamic: bool | None = None
    recompile_limit: int = 0
    seconds: float = 0.0
    """How long the prediction took."""
    notes: tuple[str, ...] = ()

    @property
    def graphs(self) -> tuple[ForecastCompilation, ...]:
        """Compilations that have a graph for the backend to compile."""
        return tuple(item for item in self.compilations if item.has_graph)

    @property
    def failed_calls(self) -> tuple[ForecastCall, ...]:
        """Calls that raise an exception."""
        return tuple(call for call in self.calls if call.error is not None)

    @property
    def graph_count(self) -> int:
        """The number of graphs that are compiled."""
        return len(self.graphs)

    @property
    def recompiles(self) -> tuple[ForecastCompilation, ...]:
        """Compilations of frames that had been compiled before."""
        return tuple(item for item in self.compilations if item.is_recompile)

    @property
    def first_calls(self) -> tuple[int, ...]:
        """For each graph, the call that causes its compilation."""
        return tuple(item.call for item in self.graphs)

    @property
    def eager_calls(self) -> tuple[int, ...]:
        """Calls that run a frame in eager mode because it reached its limit."""
        return tuple(call.index for call in self.calls if call.eager_frames)

    def compilation(self, identifier: str) -> ForecastCompilation | None:
        """The compilation with this id."""
        return next((item for item in self.compilations if item.id == identifier), None)


@dataclass(frozen=True)
class ObservedRun(Forecast):
    """What torch.compile actually did for the calls."""

    backend: str = ""


@dataclass(frozen=True)
class ForecastComparison:
    """A forecast compared with an observed run."""

    forecast: Forecast
    observed_run: ObservedRun
    differences: tuple[str, ...] = ()
    """One sentence per difference."""

    @property
    def agrees(self) -> bool:
        """Whether the forecast was correct in every respect."""
        return not self.differences


class RemedyKind(Enum):
    """What a remedy changes."""

    MARK_DYNAMIC = "a dimension is declared dynamic"
    MAYBE_MARK_DYNAMIC = "a dimension is marked as possibly dynamic"
    DYNAMIC = "everything is compiled with dynamic shapes"
    BUCKETS = "inputs are padded to a few sizes"
    TENSOR = "a number becomes a tensor"
    SETTING = "a setting of torch"
    CONVERSION = "inputs are converted to the same form"
    CONSTANT = "a value is kept constant, or functions are compiled separately"
    LIMIT = "the recompile limit is raised"


@dataclass(frozen=True)
class Buckets:
    """Sizes to pad to, and how much of the computation is then padding."""

    sizes: tuple[int, ...]
    waste_percent: float
    """Padding as a percentage of the padded elements, over the observed sizes."""
    rule: str = ""

    def bucket(self, size: int) -> int:
        """The size that `size` is padded to; sizes beyond the last bucket stay as they are.

        >>> Buckets((8, 16), 0.0).bucket(9)
        16
        """
        return next((item for item in self.sizes if item >= size), size)


@dataclass(frozen=True)
class RemedyProof:
    """The result of trying a remedy: compilations, and calls with a frame in eager mode, before and after."""

    holds: bool
    compilations: tuple[int, int]
    eager_calls: tuple[int, int] = (0, 0)
    reason: str = ""


@dataclass(frozen=True)
class Remedy:
    """One way to reduce the number of compilations."""

    kind: RemedyKind
    title: str
    """What to do, in plain words."""
    code: str
    """The code to write."""
    variables: tuple[tuple[str, int | None], ...] = ()
    """The variables that it concerns, each with a dimension if it concerns only that."""
    behavior_change: str = ""
    """How the program behaves differently afterward, in a sentence; empty if it behaves the same."""
    buckets: Buckets | None = None
    settings: tuple[str, ...] = ()
    """Statements to run before anything is compiled."""
    proof: RemedyProof | None = None
    """The result of trying it; None if it was not tried."""


@dataclass(frozen=True)
class Treatment:
    """One cause of recompiles, how often it occurred, and its remedies."""

    function: str
    variable: str
    reason: str
    calls: tuple[int, ...] = ()
    """Calls at which it occurred; empty if only a capture is available."""
    times: int = 1
    remedies: tuple[Remedy, ...] = ()

    @property
    def best_remedy(self) -> Remedy | None:
        """The proven remedy with the fewest compilations; if none is proven, the first one that was not tried."""
        proven = [item for item in self.remedies if item.proof is not None and item.proof.holds]
        if proven:
            return min(proven, key=lambda item: item.proof.compilations[1] if item.proof else 0)
        untried = [item for item in self.remedies if item.proof is None]
        return untried[0] if untried else None
