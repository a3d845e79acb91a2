"""What a sequence of calls makes torch.compile compile, foretold or seen, and what would make it compile less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from compile_inspect.records.guards import GuardFailure


@dataclass(frozen=True)
class ForecastCompilation:
    """One compilation of one frame: for which call, and why no earlier version would do.

    `id` counts frames in the order they were met, and versions of a frame: `0/2` is the third of the first.
    """

    id: str
    call: int
    function: str
    file: str
    line: int
    failures: tuple[GuardFailure, ...] = ()
    has_graph: bool = True
    """Whether there is anything for the backend to compile; guards are checked, and counted against the limit, either way."""
    is_reusable: bool = True
    """False where the call raised after the graph was compiled, such as when a dimension marked dynamic is not."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    """Sizes and numbers that this version leaves open, and the value they had."""

    @property
    def is_recompile(self) -> bool:
        """Whether the frame had been compiled before."""
        return not self.id.endswith("/0")

    @property
    def cause(self) -> GuardFailure | None:
        """The failed guard of the version used last, which says what changed."""
        return self.failures[0] if self.failures else None


@dataclass(frozen=True)
class ForecastLimit:
    """The call at which torch gives up compiling a frame anew."""

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
    """Compilations that it causes."""
    used_compilations: tuple[str, ...] = ()
    """Compilations whose graphs it runs, each once."""
    eager_frames: tuple[str, ...] = ()
    """Frames beyond their limit that it runs without any graph."""
    error: str | None = None
    """What the call raises, in one line."""
    fails_in_eager: bool = False
    """Whether it raises that in eager mode, so that no compilation can help it."""


@dataclass(frozen=True)
class Forecast:
    """What torch.compile makes of a sequence of calls in a fresh process."""

    calls: tuple[ForecastCall, ...] = ()
    compilations: tuple[ForecastCompilation, ...] = ()
    limits: tuple[ForecastLimit, ...] = ()
    break_count: int = 0
    """Causes of graph breaks: each splits a function into several frames."""
    dynamic: bool | None = None
    recompile_limit: int = 0
    seconds: float = 0.0
    """How long it took to find out."""
    notes: tuple[str, ...] = ()

    @property
    def graphs(self) -> tuple[ForecastCompilation, ...]:
        """Compilations that give the backend something to compile."""
        return tuple(item for item in self.compilations if item.has_graph)

    @property
    def failed_calls(self) -> tuple[ForecastCall, ...]:
        """Calls that raise an exception."""
        return tuple(call for call in self.calls if call.error is not None)

    @property
    def graph_count(self) -> int:
        """How many graphs are compiled."""
        return len(self.graphs)

    @property
    def recompiles(self) -> tuple[ForecastCompilation, ...]:
        """Compilations of frames that had been compiled before."""
        return tuple(item for item in self.compilations if item.is_recompile)

    @property
    def first_calls(self) -> tuple[int, ...]:
        """For each graph, the call that it is compiled for."""
        return tuple(item.call for item in self.graphs)

    @property
    def eager_calls(self) -> tuple[int, ...]:
        """Calls that run a frame without any graph, because its limit was hit."""
        return tuple(call.index for call in self.calls if call.eager_frames)

    def compilation(self, identifier: str) -> ForecastCompilation | None:
        """The compilation with this id."""
        return next((item for item in self.compilations if item.id == identifier), None)


@dataclass(frozen=True)
class ObservedRun(Forecast):
    """The same, as it was seen when torch.compile was let loose on the calls."""

    backend: str = ""


@dataclass(frozen=True)
class ForecastComparison:
    """A forecast beside what was seen."""

    forecast: Forecast
    observed_run: ObservedRun
    differences: tuple[str, ...] = ()
    """One sentence for each thing that came otherwise."""

    @property
    def agrees(self) -> bool:
        """Whether everything came as foretold."""
        return not self.differences


class RemedyKind(Enum):
    """What a remedy changes."""

    MARK_DYNAMIC = "a dimension is declared to change"
    MAYBE_MARK_DYNAMIC = "a dimension is expected to change"
    DYNAMIC = "everything is compiled for sizes that change"
    BUCKETS = "inputs are padded to a few sizes"
    TENSOR = "a number becomes a tensor"
    SETTING = "a setting of torch"
    CONVERSION = "inputs are brought into one form"
    CONSTANT = "a value is held constant, or functions are compiled apart"
    LIMIT = "more versions are allowed"


@dataclass(frozen=True)
class Buckets:
    """Sizes to pad to, and how much of what is then computed is padding."""

    sizes: tuple[int, ...]
    waste_percent: float
    """Percent of the padded elements, over the sizes that were seen."""
    rule: str = ""

    def bucket(self, size: int) -> int:
        """The size that one is padded to; one beyond the last stays as it is.

        >>> Buckets((8, 16), 0.0).bucket(9)
        16
        """
        return next((item for item in self.sizes if item >= size), size)


@dataclass(frozen=True)
class RemedyProof:
    """What a trial of a remedy has shown: compilations, and calls run without a graph, before and after."""

    holds: bool
    compilations: tuple[int, int]
    eager_calls: tuple[int, int] = (0, 0)
    reason: str = ""


@dataclass(frozen=True)
class Remedy:
    """One way to have fewer compilations."""

    kind: RemedyKind
    title: str
    """What to do, in plain words."""
    code: str
    """What to write."""
    variables: tuple[tuple[str, int | None], ...] = ()
    """The variables it is about, and a dimension of each where it is about one."""
    behavior_change: str = ""
    """What is otherwise afterwards, in a sentence; empty where nothing is."""
    buckets: Buckets | None = None
    settings: tuple[str, ...] = ()
    """Statements to run before anything is compiled."""
    proof: RemedyProof | None = None
    """What a trial has shown; None where none was made."""


@dataclass(frozen=True)
class Treatment:
    """One cause of recompiles, how often it struck, and what helps against it."""

    function: str
    variable: str
    reason: str
    calls: tuple[int, ...] = ()
    """Calls at which it struck; empty where only a capture is known."""
    times: int = 1
    remedies: tuple[Remedy, ...] = ()

    @property
    def best_remedy(self) -> Remedy | None:
        """The proven remedy that leaves fewest compilations; where none was tried, the first."""
        proven = [item for item in self.remedies if item.proof is not None and item.proof.holds]
        if proven:
            return min(proven, key=lambda item: item.proof.compilations[1] if item.proof else 0)
        untried = [item for item in self.remedies if item.proof is None]
        return untried[0] if untried else None
