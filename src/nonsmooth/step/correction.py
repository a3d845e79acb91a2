"""Steps where constraints are curved: a full step leaves them, and is bent back, or is bent before it is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.options import Options
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.step.model import ModelLike, Step

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]

RESTORATIONS = 3
"""Most steps from one trial point to the constraints."""
FREE_FAILURES, LONGEST_WAIT = 3, 32
"""So often something may fail in a row before it is left out for a while, and how often it is left out at most."""
AMONG_PIECES = 0.8
"""Fraction of the predicted decrease that going straight to the constraints must reach where pieces of them meet."""
FORESEEN = 0.1
"""Fraction of the predicted decrease that a step bent in advance must reach."""


@dataclass
class Habit:
    """Something that is tried less often the more often it has failed.

    >>> habit = Habit()
    >>> for _ in range(5):
    ...     habit.learn(False)
    >>> [habit.due() for _ in range(6)]
    [False, False, False, False, True, True]
    """

    failures: int = 0
    """In a row."""
    waiting: int = 0
    """How often it is to be left out from now on."""

    def copy(self) -> Habit:
        """The same, which may change by itself."""
        return Habit(self.failures, self.waiting)

    def due(self, *, later: bool = False) -> bool:
        """Whether to try it this time; `later` in an iteration only while it works now and then."""
        if later and self.failures >= FREE_FAILURES:
            return False
        if self.waiting:
            self.waiting -= 1
            return False
        return True

    def learn(self, worked: bool) -> None:
        """It was tried."""
        self.failures = 0 if worked else self.failures + 1
        late = self.failures - FREE_FAILURES
        self.waiting = min(2**late, LONGEST_WAIT) if 0 <= late < 32 else LONGEST_WAIT * (late > 0)


@dataclass
class Curved:
    """What a run has learnt about the curvature of its constraints."""

    correcting: Habit = field(default_factory=Habit)
    restoring: Habit = field(default_factory=Habit)
    foreseeing: Habit = field(default_factory=Habit)
    bend: Vector = field(default_factory=lambda: np.zeros(0))
    """How far each constraint was from its linearisation after the last step that had to be bent, by the square of its
    length; empty where none had to be."""

    def numbers(self) -> list[list[int]]:
        """For saving."""
        return [[habit.failures, habit.waiting] for habit in (self.correcting, self.restoring, self.foreseeing)]

    def copy(self) -> Curved:
        """The same, which may change by itself."""
        return Curved(self.correcting.copy(), self.restoring.copy(), self.foreseeing.copy(), self.bend)

    @classmethod
    def restored(cls, numbers: Any, bend: Vector) -> Curved:
        """From what was saved; ValueError where that cannot have been."""
        habits = [Habit(int(failures), int(waiting)) for failures, waiting in numbers]
        if len(habits) != 3 or any(habit.failures < 0 or not 0 <= habit.waiting <= LONGEST_WAIT for habit in habits):
            raise ValueError(f"habits are {numbers!r}")
        correcting, restoring, foreseeing = habits
        return cls(correcting, restoring, foreseeing, np.array(bend, dtype=np.float64))


class Bending:
    """Finds bent steps."""

    def __init__(self, evaluate: Callable[[Vector], Trial], options: Options, clock: Clock) -> None:
        self._evaluate, self._options = evaluate, options
        self._directing = clock.phase(Phase.DIRECTIONS)

    def foreseen(self, state: State, model: ModelLike, step: Step, value: float) -> tuple[Trial, Step] | None:
        """The step bent as the last one had to be, if it lowers the penalty from its value here by enough.

        Along a curved constraint every full step fails in the same way; to see it fail costs an evaluation each time.
        """
        at, curved = state.current, state.curved
        if not len(curved.bend) or len(curved.bend) != len(at.c) or not self._whole_steps or not curved.foreseeing.due():
            return None
        with self._directing:
            square = float(step.direction @ step.direction)
            bent = model.step(step.weight, constraints=at.c + square * curved.bend)
        trial = self._evaluate(at.x + bent.direction)
        worked = trial.penalty(step.weight) < value + FORESEEN * step.decrease and trial.differentiable
        curved.foreseeing.learn(worked)
        self._notice(state, trial, bent, worked)
        return (trial, bent) if worked else None

    def corrected(
        self, state: State, model: ModelLike, step: Step, first: Trial, value: float, *, later: bool, pieces: bool = False
    ) -> tuple[Trial, Step] | None:
        """A second-order correction, where the full step to `first` failed because the constraints are curved.

        It is no help where they have a kink, which is likely `later` in an iteration, after other steps have failed. Where
        `pieces` of a constraint meet, it leaves one for another, and their gradients do better; but an equality may be a
        norm that is to vanish, with more pieces than can be known.
        """
        at, curved = state.current, state.curved
        excess = first.f - at.f - step.objective_change
        bending = step.weight * (first.total_violation - step.predicted_violation)
        if len(at.c) == 0 or not bending > 0.5 * (excess + bending) or not self._whole_steps:
            return None
        needed = value + (AMONG_PIECES if pieces else self._options.sufficient_decrease) * step.decrease
        if pieces and not np.abs(first.c[: at.equalities]).max(initial=0.0) > 0.5 * first.total_violation:
            return None
        if not pieces and curved.correcting.due(later=later):
            with self._directing:
                bent = model.corrected(first, step)
            trial = self._evaluate(at.x + bent.direction)
            worked = trial.penalty(step.weight) < needed and trial.differentiable
            curved.correcting.learn(worked)
            self._notice(state, trial, bent, worked)
            if worked:
                return trial, bent
        if not curved.restoring.due(later=later):
            return None
        restored = self._restored(first, step.weight, needed)
        curved.restoring.learn(restored is not None)
        return None if restored is None else (restored, step)

    @property
    def _whole_steps(self) -> bool:
        return self._options.initial_step == 1.0 and not self._options.normalize_direction

    @staticmethod
    def _notice(state: State, trial: Trial, bent: Step, worked: bool) -> None:
        """Remember how the constraints bend, where knowing it helped."""
        at, square = state.current, float(bent.direction @ bent.direction)
        bend = (trial.c - at.c - at.jacobian @ bent.direction) / square if worked and square > 0 else np.zeros(0)
        state.curved.bend = bend if np.isfinite(bend).all() else np.zeros(0)

    def _restored(self, trial: Trial, weight: float, needed: float) -> Trial | None:
        """Go from a trial point straight to the constraints, by their gradients there, until the penalty is low enough.

        A correction with the gradients at x is no help where they turn on the way, as those of a norm do.
        """
        for _ in range(RESTORATIONS):
            if not (trial.finite and trial.differentiable):
                return None
            violated = np.concatenate([np.ones(trial.equalities, dtype=bool), trial.c[trial.equalities :] > 0])
            rows, values = trial.jacobian[violated], trial.c[violated]
            with np.errstate(over="ignore", invalid="ignore"):
                products = rows if len(rows) > len(trial.x) else rows @ rows.T
            if not np.isfinite(products).all():
                return None  # gradients too long to be multiplied
            if len(rows) > len(trial.x):
                back = np.linalg.lstsq(rows, values, rcond=1e-5)[0]
            else:
                back = np.linalg.lstsq(products, values, rcond=1e-10)[0] @ rows
            after = self._evaluate(trial.x - back)
            if after.penalty(weight) < needed and after.differentiable:
                return after
            if not after.total_violation < 0.5 * trial.total_violation:
                return None
            trial = after
        return None
