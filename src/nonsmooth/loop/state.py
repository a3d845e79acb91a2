"""Everything a run needs to go on: one value that can be saved, loaded and continued."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.errors import StateError
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.hessian import InverseHessian, Outcome
from nonsmooth.kinks.bundle import Bundle, ConstraintCuts
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.step.correction import Curved
from nonsmooth.step.model import Step
from nonsmooth.step.valley import Valley

Vector = NDArray[np.float64]

FORMAT = 7
COLUMNS = ("f", "violation", "penalty_parameter", "stationarity", "step", "evaluations", "seconds", "fallback", "null_steps")


@dataclass
class Updates:
    """What became of the updates of the matrix."""

    updated: int = 0
    damped: int = 0
    scaled: int = 0
    not_positive: int = 0
    not_finite: int = 0


@dataclass
class State:
    """The state of a run after an iteration.

    `save` writes it to a file; `load` reads such a file, running no code from it. A run continued from a loaded state
    (`minimize(..., state=state)`) takes the same steps as one that was never interrupted.
    """

    current: Trial
    weight: float
    """ρ = 1/μ, the weight of the violation against the objective."""
    hessian: InverseHessian
    bundle: Bundle
    constraint_cuts: ConstraintCuts
    incumbents: Incumbents
    generator: np.random.Generator
    form: Callable[[Vector], Any]
    scales: Scales | None = None
    """The units of the run; None where they are the user's."""
    iteration: int = 0
    kinked: bool = False
    calm: int = 0
    hessian_updates: int = 0
    """Updates since the matrix was last reset."""
    updates: Updates = field(default_factory=Updates)
    unlearnt: int = 0
    """Steps in a row from which the matrix learnt nothing, because the gradient of a constraint had jumped."""
    far: float = np.inf
    """A violation beyond this has left the problem: a million times what values and gradients at the start let expect."""
    stuck: int = 0
    """Iterations in a row at which the model's step failed."""
    last_check: tuple[int, float] = (-1, np.inf)
    """Iteration and stationarity of the last certificate that failed."""
    recoveries: int = 0
    loose: int = 0
    """Iterations in a row at which the weight was much larger than the multipliers."""
    relaxations: int = 0
    """How often the weight was lowered for that."""
    blind: tuple[int, float] = (0, np.inf)
    """Steps that values could not judge since the last that shortened the combined gradient, and its shortest length."""
    curved: Curved = field(default_factory=Curved)
    patience: int = 0
    """Iterations at which the tolerance was reached, but not with a digit to spare."""
    multipliers: Vector = field(default_factory=lambda: np.zeros(0))
    """Those of the last program; only a hint about the next."""
    hints: tuple[Vector, Vector, Vector] | None = None
    """The weights of the bundle and of the cuts, and the multipliers, with which the step at this point was looked for."""
    valley: Valley = field(default_factory=Valley)
    evaluations: int = 0
    seconds: float = 0.0
    lowest_penalty_parameter: float = np.inf
    history: list[tuple[float, ...]] = field(default_factory=list)
    step: Step | None = None
    """The step proposed at the current point; not part of what is saved."""

    @property
    def x(self) -> Any:
        """The current point in the form of x0 (for a module, its parameters by name)."""
        units = None if self.scales is None else self.scales.variables
        return self.form(self.current.x if units is None else self.current.x * units)

    @property
    def f(self) -> float:
        """The objective at the current point, in the user's units."""
        return self.history[-1][0]

    @property
    def violation(self) -> float:
        """The largest violation of a constraint at the current point."""
        return self.current.violation

    @property
    def stationarity(self) -> float:
        """The solver's own measure at the current point; a certificate is asked for when it is small."""
        return self.history[-1][3]

    @property
    def penalty_parameter(self) -> float:
        """μ, the weight of the objective in μ·f + violation."""
        return 1.0 / self.weight

    def count_update(self, outcome: Outcome, *, damped: bool) -> None:
        """Count what became of an update of the matrix."""
        done = outcome in (Outcome.UPDATED, Outcome.SCALED)
        self.hessian_updates += done
        self.updates.updated += done
        self.updates.damped += done and damped
        self.updates.scaled += outcome is Outcome.SCALED
        self.updates.not_positive += outcome is Outcome.NOT_POSITIVE
        self.updates.not_finite += outcome is Outcome.NOT_FINITE

    def reset_hessian(self) -> None:
        """Forget the matrix."""
        self.hessian.reset()
        self.hessian_updates = 0

    def remember_hints(self) -> None:
        """Called before a step is looked for. A continued run looks for it again, and must begin as this one did."""
        self.hints = (self.bundle.weights, self.constraint_cuts.weights, self.multipliers)

    def record(self, f: float, stationarity: float, *, step: float, fallback: int, null_steps: int) -> None:
        """Add a row to the history; f is in the user's units."""
        self.history.append(
            (
                f,
                self.current.violation,
                self.penalty_parameter,
                stationarity,
                step,
                float(self.evaluations),
                self.seconds,
                float(fallback),
                float(null_steps),
            )
        )

    def save(self, path: str | Path) -> None:
        """Write the state to a file."""
        arrays: dict[str, NDArray[Any]] = {"history": np.array(self.history, dtype=np.float64).reshape(-1, len(COLUMNS))}
        for group, part in (("hessian", self.hessian), ("bundle", self.bundle), ("cuts", self.constraint_cuts)):
            arrays |= {f"{group}.{name}": np.asarray(value) for name, value in part.arrays().items()}
        arrays["multipliers"], arrays["bend"] = self.multipliers, self.curved.bend
        for name, hint in zip(("bundle.weights", "cuts.weights", "multipliers"), self.hints or (), strict=False):
            if name == "multipliers" or len(hint) == len(arrays[name]):
                arrays[name] = hint
        at = self.current
        arrays |= {f"valley.{name}": value for name, value in self.valley.arrays(len(at.x)).items()}
        arrays |= {
            "current.x": at.x,
            "current.c": at.c,
            "current.gradient": at.gradient,
            "current.jacobian": at.jacobian,
        }
        numbers: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        numbers |= {"format": FORMAT, "hessian": type(self.hessian).__name__, "generator": self.generator.bit_generator.state}
        numbers |= {
            "current.f": at.f,
            "equalities": at.equalities,
            "updates": vars(self.updates),
            "last_check": self.last_check,
            "blind": self.blind,
            "curved": self.curved.numbers(),
            "valley": self.valley.numbers(),
        }
        if self.scales is not None:
            numbers["scales.objective"], arrays["scales.constraints"] = self.scales.objective, self.scales.constraints
            if self.scales.variables is not None:
                arrays["scales.variables"] = self.scales.variables
        for name in ("best", "most_feasible"):
            candidate: Candidate | None = getattr(self.incumbents, name)
            if candidate is not None:
                arrays |= {f"{name}.x": candidate.x, f"{name}.c": candidate.c}
                numbers[f"{name}.f"] = candidate.f
        arrays["numbers"] = np.frombuffer(json.dumps(numbers).encode(), dtype=np.uint8)
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        with partial.open("wb") as file:  # array by array: the whole need not be in memory once more
            np.savez(file, **arrays)  # type: ignore[arg-type]
        partial.replace(target)  # a reader never sees half a file

    @staticmethod
    def load(path: str | Path) -> SavedState:
        """Read a file that `save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            numbers = json.loads(arrays.pop("numbers").tobytes().decode())
        except FileNotFoundError as error:
            raise StateError(f"there is no file {path}: write one with result.state.save(path)") from error
        except Exception as error:  # a damaged archive raises whatever its damage happens to hit
            raise StateError(f"{path} is not a saved state: {error}") from error
        if not isinstance(numbers, dict):
            raise StateError(f"{path} is not a saved state: its numbers have no names")
        if numbers.get("format") != FORMAT:
            raise StateError(f"{path} was written by another version of nonsmooth (format {numbers.get('format')!r})")
        saved = SavedState(arrays, numbers)
        saved.check(path)
        return saved


_NUMBERS = (
    "weight", "iteration", "kinked", "calm", "hessian_updates", "stuck", "recoveries", "patience", "loose", "relaxations",
    "evaluations", "seconds", "lowest_penalty_parameter", "unlearnt", "far",
)  # fmt: skip


@dataclass(frozen=True)
class SavedState:
    """A state read from a file: arrays and numbers, to be filled into a new run."""

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, Any]

    def check(self, path: str | Path) -> None:
        """Raise StateError unless everything is there and fits together."""
        numbers, arrays = self.numbers, self.arrays
        wanted = {"current.x", "current.c", "current.gradient", "current.jacobian", "history", "bundle.points"}
        others = ("current.f", "equalities", "updates", "generator", "hessian", "blind", "curved")
        missing = [name for name in (*_NUMBERS, *others) if name not in numbers]
        missing += sorted(wanted - arrays.keys())
        if missing:
            raise StateError(f"{path} is not a whole saved state: it lacks {missing[0]!r}")
        n, m = len(np.atleast_1d(arrays["current.x"])), len(np.atleast_1d(arrays["current.c"]))
        k = len(np.atleast_1d(arrays.get("bundle.values", np.zeros(0))))
        j = len(np.atleast_1d(arrays.get("cuts.values", np.zeros(0))))
        shapes = {
            "current.x": (n,), "current.c": (m,), "current.gradient": (n,), "current.jacobian": (m, n),
            "bundle.points": (k, n), "bundle.slopes": (k, n),
            "bundle.values": (k,), "bundle.weights": (k,), "cuts.points": (j, n), "cuts.rows": (j, n), "cuts.index": (j,),
            "cuts.signs": (j,), "cuts.beyond": (j,), "cuts.values": (j,), "cuts.weights": (j,),
        }  # fmt: skip
        if "hessian.corrections" in arrays:
            shapes["hessian.corrections"] = (2 * (len(np.atleast_1d(arrays["hessian.corrections"])) // 2), n)
            shapes["hessian.gamma"] = ()
        elif numbers["hessian"] == "FullMemory":
            shapes["hessian.matrix"] = (n, n)
        else:
            p = len(np.atleast_1d(arrays.get("hessian.order", np.zeros(0))))
            shapes |= {"hessian.order": (p,), "hessian.steps": (p, n), "hessian.changes": (p, n)}
            shapes |= {"hessian.upper": (p, p), "hessian.squares": (p, p)}
        index = np.asarray(arrays.get("cuts.index", np.zeros(0, dtype=np.intp)))
        if index.dtype.kind != "i" or (index < 0).any() or (index >= m).any():
            raise StateError(f"{path} is damaged: 'cuts.index' should be numbers of constraints, from 0 to {m - 1}")
        bend = np.asarray(arrays.get("bend", np.zeros(0)))
        several = (("bend", m), ("multipliers", m), ("valley.anchor", n), ("cuts.negative", numbers["equalities"]))
        for name, size in several:  # there need not be any yet
            shapes[name] = (0,) if name in arrays and arrays[name].shape == (0,) else (size,)
        shapes["valley.path"] = (len(np.atleast_1d(arrays.get("valley.path", np.zeros(0)))), n)
        if "scales.objective" in numbers:
            shapes["scales.constraints"] = (m,)
            if "scales.variables" in arrays:
                shapes["scales.variables"] = (n,)
        for name in ("best", "most_feasible"):
            if f"{name}.x" in arrays or f"{name}.f" in numbers:
                shapes |= {f"{name}.x": (n,), f"{name}.c": (m,)}
        if bend.dtype.kind not in "fi" or not np.isfinite(bend).all():
            raise StateError(f"{path} is damaged: 'bend' should be finite numbers")
        for name, shape in shapes.items():
            if name not in arrays or arrays[name].shape != shape or arrays[name].dtype.kind not in "fi":
                raise StateError(f"{path} is damaged: {name!r} should be numbers of shape {shape}")
        if arrays["history"].ndim != 2 or arrays["history"].shape[1] != len(COLUMNS):
            raise StateError(f"{path} is damaged: 'history' should have {len(COLUMNS)} columns")

    @property
    def scales(self) -> Scales | None:
        """The units of the run; None where they are the user's."""
        if "scales.objective" not in self.numbers:
            return None
        try:
            constraints = np.array(self.arrays["scales.constraints"], dtype=np.float64)
            variables = self.arrays.get("scales.variables")
            variables = None if variables is None else np.array(variables, dtype=np.float64)
            return Scales(float(self.numbers["scales.objective"]), constraints, variables)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error

    def check_sizes(self, start: Trial) -> None:
        """Raise StateError unless it is of a problem with as many variables and constraints."""
        variables, constraints = len(self.arrays["current.x"]), len(self.arrays["current.c"])
        if (variables, constraints) != (len(start.x), len(start.c)):
            raise StateError(
                f"the saved state has {variables} variables and {constraints} constraints, "
                f"this problem {len(start.x)} and {len(start.c)}"
            )

    def fill(self, state: State, units: Vector | None = None) -> None:
        """Make a state that a new run has built the one that was saved; `units` are the factors of pre-scaling."""
        try:
            self._fill(state, units)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error

    def _fill(self, state: State, units: Vector | None = None) -> None:
        arrays, numbers = self.arrays, self.numbers
        self.check_sizes(state.current)
        if numbers["hessian"] != type(state.hessian).__name__:
            raise StateError(
                f"the saved state used {numbers['hessian']}, these options {type(state.hessian).__name__}; use the same memory"
            )
        for group, part in (("hessian", state.hessian), ("bundle", state.bundle), ("cuts", state.constraint_cuts)):
            part.restore({name.partition(".")[2]: value for name, value in arrays.items() if name.startswith(group + ".")})
        x, c, gradient, jacobian = (
            np.array(arrays[f"current.{name}"], dtype=np.float64, order="C") for name in ("x", "c", "gradient", "jacobian")
        )
        state.current = Trial.stored(
            x, float(numbers["current.f"]), c, int(numbers["equalities"]), gradient, jacobian, units=units
        )
        for name in _NUMBERS:
            setattr(state, name, numbers[name])
        state.last_check = (int(numbers["last_check"][0]), float(numbers["last_check"][1]))
        state.blind = (int(numbers["blind"][0]), float(numbers["blind"][1]))
        state.multipliers = np.array(arrays["multipliers"], dtype=np.float64)
        state.curved = Curved.restored(numbers["curved"], arrays["bend"])
        state.valley = Valley.restored(numbers["valley"], arrays["valley.anchor"], arrays["valley.path"])
        state.updates = Updates(**numbers["updates"])
        state.generator.bit_generator.state = numbers["generator"]
        state.history = [tuple(row) for row in arrays["history"].tolist()]
        for name in ("best", "most_feasible"):
            if f"{name}.x" in arrays:
                candidate = Candidate(
                    arrays[f"{name}.x"], float(numbers[f"{name}.f"]), arrays[f"{name}.c"], int(numbers["equalities"])
                )
                state.incumbents.restore(name, candidate, units)
