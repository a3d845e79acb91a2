"""The state of a run: one object that can be saved, loaded and continued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.hessian import InverseHessian, UpdateOutcome
from nonsmooth.kinks.bundle import Bundle
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.saved_state import SavedState, load, save
from nonsmooth.loop.schema import counts, number, other, part, roll_back, transient, vector
from nonsmooth.step.model import Step
from nonsmooth.step.outcome import Direction

Vector = NDArray[np.float64]

COLUMNS = ("f", "violation", "penalty_parameter", "stationarity", "step", "evaluations", "seconds", "fallback", "null_steps")


def _empty_vector() -> Vector:
    return np.zeros(0)


@dataclass
class Updates:
    """Counts of quasi-Newton updates by their outcome."""

    updated: int = 0
    damped: int = 0
    scaled: int = 0
    not_positive: int = 0
    not_finite: int = 0


@dataclass
class State:
    """The state of a run after an iteration.

    `save` writes it to a file; `load` reads such a file without running code from it. A run continued from a loaded state
    (`minimize(..., state=state)`) takes the same steps as an uninterrupted run.

    The function that declares a field determines how it is saved, checked and rolled back (see `schema`).
    """

    current: Trial = other(survives=False)
    hessian: InverseHessian = part()
    bundle: Bundle = part()
    pieces: ConstraintPieces = part()
    incumbents: Incumbents = other()
    generator: np.random.Generator = other()
    form: Callable[[Vector], Any] = transient()
    weight: float = number(1.0)
    """ρ = 1/μ, the weight of the violation against the objective."""
    excessive_iterations: int = number(0)
    """Consecutive iterations with a weight much larger than the multipliers require."""
    reductions: int = number(0)
    """How often the weight was reduced."""
    scales: Scales | None = other(default=None)
    """The units of the run; None if they are the user's."""
    iteration: int = number(0, survives=True)
    structured: bool = number(False)
    """Whether models are built from the visible kinks of f instead of gradients of earlier points."""
    nested_points: int = number(0)
    """How often this was impossible because the point was on a kink within the argument of another."""
    near_kink: bool = number(False)
    """Whether models use the gradients of earlier points."""
    smooth_iterations: int = number(0)
    """Consecutive iterations without a null step at a kink."""
    hessian_updates: int = number(0)
    """Updates of the matrix so far; initially 1 if the user provided a matrix."""
    updates: Updates = counts(Updates)
    skipped_updates: int = number(0)
    """Consecutive updates that were skipped because the gradient of a constraint had jumped."""
    failures: int = number(0)
    """Consecutive iterations at which the model's step failed."""
    last_check_iteration: int = number(-1)
    """The iteration of the last failed check; −1 for none."""
    last_check_stationarity: float = number(np.inf)
    idle_gradient_steps: int = number(0)
    """Steps accepted by gradients alone since the last one that shortened the combined gradient."""
    shortest_gradient: float = number(np.inf)
    """The shortest combined gradient of such steps."""
    better: Trial | None = other(survives=False, default=None)
    """A point far from the current one that refutes stationarity of the current one; the run continues there."""
    iterations_at_tolerance: int = number(0)
    """Iterations at which the measure was within the tolerance but not one digit below it."""
    multipliers: Vector = vector(_empty_vector, length="constraints")
    """The multipliers of the last quadratic program, a warm start for the next."""
    hints: tuple[Vector, Vector, Vector] | None = transient(default=None)
    """The weights of the bundle and of the pieces, and the multipliers, that were the warm start of the step at this point."""
    ended: bool = number(False)
    """Whether the run ended at the current point; a run that continues from it repeats the check."""
    evaluations: int = number(0, survives=True)
    seconds: float = number(0.0, survives=True)
    lowest_penalty_parameter: float = number(np.inf, survives=True)
    history: list[tuple[float, ...]] = other(default_factory=list)
    step: Step | None = transient(default=None)
    """The step proposed at the current point."""

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
        """The solver's own measure at the current point; the independent check runs when it is small."""
        return self.history[-1][COLUMNS.index("stationarity")]

    @property
    def penalty_parameter(self) -> float:
        """μ, the weight of the objective in μ·f + violation."""
        return 1.0 / self.weight

    def count_update(self, outcome: UpdateOutcome, *, damped: bool) -> None:
        """Count an update of the matrix by its outcome."""
        done = outcome in (UpdateOutcome.UPDATED, UpdateOutcome.SCALED)
        self.hessian_updates += done
        self.updates.updated += done
        self.updates.damped += done and damped
        self.updates.scaled += outcome is UpdateOutcome.SCALED
        self.updates.not_positive += outcome is UpdateOutcome.NOT_POSITIVE
        self.updates.not_finite += outcome is UpdateOutcome.NOT_FINITE

    def remember_hints(self) -> None:
        """Store the warm start before a step is computed, so that a continued run computes the same step."""
        self.hints = (self.bundle.weights, self.pieces.weights, self.multipliers)

    def record(self, f: float, stationarity: float, *, step: float, direction: Direction, null_steps: int) -> None:
        """Add a row to the history; f is in the user's units."""
        self.history.append((
            f, self.current.violation, self.penalty_parameter, stationarity, step, float(self.evaluations), self.seconds,
            float(direction), float(null_steps),
        ))  # fmt: skip

    def restart(self, fresh: State) -> None:
        """Restart with the point, matrix and gradients of a fresh state; counts and history continue."""
        roll_back(self, fresh)

    def save(self, path: str | Path) -> None:
        """Write the state to a file."""
        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> SavedState:
        """Read a file that `save` wrote."""
        return load(Path(path), State)
