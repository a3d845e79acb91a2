"""Following a valley whose floor is a curved kink: guess ahead along the floor, then climb back down onto it.

Where several pieces of f meet in a curved kink, every straight step leaves the kink and f rises at once, so that each
iteration is short, however smooth f is along the floor. But points of the floor lie on a smooth curve. A parabola
through three of them guesses where it goes on, far beyond what a straight step can reach, and bundle steps in a small
round metric, which move across the floor rather than along it, lead from the guess back down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.hessian import LimitedMemory
from nonsmooth.qp import LARGE, QPSolver
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.step.model import Model, Step

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

FIRST = 60
"""No valley is looked for before this iteration: most problems are solved by then."""
WINDOW = 20
"""Iterations over which the ordinary progress is measured before a valley is followed."""
LONGEST_PAUSE = 2000
LONGEST_VISIT = 100
MOST_FAILURES = 5
MOST_DESCENTS = 25
CHEAP = 8
"""Evaluations up to which a climb back counts as easy, so that the next guess goes farther."""
ACROSS = 0.01
"""How far bundle steps may move along the floor, as a fraction of the guess."""
PARABOLA = 0.25
"""The least distance between the points of a parabola, as a fraction of the guess."""
REMEMBERED, REMEMBERED_IF_LARGE = 30, 3
"""Points of the path that are kept, up to 10,000 variables and beyond."""


@dataclass
class Valley:
    """Where the following of a valley stands; part of the state of a run."""

    following: bool = False
    due: int = FIRST
    """The iteration at which to try (again)."""
    pause: int = WINDOW
    since: int = 0
    """The iteration at which following began."""
    failures: int = 0
    settled: bool = False
    """Whether the current point was found to lie on the floor."""
    reach: float = 0.0
    """How far to guess ahead."""
    metric: float = 0.0
    """γ: bundle steps see the metric γI."""
    slope: float = 0.0
    """How fast the penalty function falls along the floor."""
    pace: float = 0.0
    """Decrease per evaluation of the ordinary iterations before."""
    anchor_value: float = np.nan
    anchor_evaluations: int = 0
    anchor: Vector = field(default_factory=lambda: np.zeros(0))
    """A point some iterations ago; empty where none was marked."""
    path: list[Vector] = field(default_factory=list)
    """Points of the floor, the latest last."""

    def numbers(self) -> dict[str, Any]:
        """Everything but the points, for saving."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("anchor", "path")}

    def arrays(self, size: int) -> dict[str, Any]:
        """The points, for saving."""
        return {"anchor": self.anchor, "path": np.array(self.path).reshape(-1, size)}

    @classmethod
    def restored(cls, numbers: dict[str, Any], anchor: Vector, path: NDArray[np.float64]) -> Valley:
        """What `numbers` and `arrays` gave."""
        return cls(**numbers, anchor=np.array(anchor), path=[np.array(point) for point in path])

    def mark(self, state: State, evaluations: int) -> None:
        """Remember the current point, to measure progress from."""
        self.anchor, self.anchor_evaluations = state.current.x, evaluations
        self.anchor_value = state.current.penalty(state.weight)


class Follower:
    """Decides when to follow a valley, and follows it one guess at a time."""

    def __init__(self, evaluate: Callable[[Vector], Trial], solver: QPSolver, clock: Clock | None = None) -> None:
        self._evaluate, self._solver = evaluate, solver
        self._directing = (clock or Clock()).phase(Phase.DIRECTIONS)
        self._round: LimitedMemory | None = None
        """γI; one for all steps, since it remembers products of gradients."""

    def wanted(self, state: State, evaluations: int) -> bool:
        """Whether the next iteration should follow a valley: called once before each iteration."""
        valley = state.valley
        if valley.following:
            return True
        if state.iteration == valley.due - WINDOW:
            valley.mark(state, evaluations)
        if state.iteration < valley.due or not state.kinked:
            return False
        distance = float(np.linalg.norm(state.current.x - valley.anchor)) if len(valley.anchor) else 0.0
        fallen = valley.anchor_value - state.current.penalty(state.weight)
        slope = fallen / distance if 0 < distance < np.inf else 0.0
        if not 0 < slope < np.inf or not ACROSS * 0.5 * distance / slope < np.inf:
            valley.due, valley.anchor = state.iteration + WINDOW, valley.anchor[:0]
            return False
        valley.following, valley.settled, valley.failures, valley.since = True, False, 0, state.iteration
        valley.reach, valley.slope = 0.5 * distance, slope
        valley.metric = ACROSS * valley.reach / valley.slope
        valley.pace = fallen / max(1, evaluations - valley.anchor_evaluations)
        valley.path = []
        valley.mark(state, evaluations)
        return True

    def leave(self, state: State, evaluations: int) -> None:
        """Go back to ordinary iterations, for longer if they made more of an evaluation."""
        valley = state.valley
        gained = valley.anchor_value - state.current.penalty(state.weight)
        better = gained > valley.pace * (evaluations - valley.anchor_evaluations)
        valley.following = False
        valley.pause = WINDOW if better else min(2 * valley.pause, LONGEST_PAUSE)
        valley.due = state.iteration + valley.pause
        valley.anchor, valley.path = valley.anchor[:0], []
        if valley.pause == WINDOW:
            valley.mark(state, evaluations)
        logger.debug("iteration %d: left a valley, %g lower than on entering", state.iteration, gained)

    def advance(self, state: State) -> Trial | None:
        """The next point of the floor, lower than the current one; None where the floor is lost."""
        if self._round is not None:
            self._round.forget_products()
        valley, weight, centre = state.valley, state.weight, state.current
        value = centre.penalty(weight)
        while valley.failures <= MOST_FAILURES and state.iteration < valley.since + LONGEST_VISIT:
            if not valley.settled:
                valley.metric *= 0.3
                centre, _ = self._descend(state, centre, -np.inf)
                valley.failures += not valley.settled
            else:
                centre = self._guess(state, centre)
            if centre.penalty(weight) < value:
                return centre
        return None

    def _guess(self, state: State, centre: Trial) -> Trial:
        """Guess ahead and climb back down; the same point where that led nowhere."""
        valley, weight = state.valley, state.weight
        value = centre.penalty(weight)
        gradient = self._step(state, centre).gradient
        length = float(np.linalg.norm(gradient))
        if length == 0:
            valley.failures = MOST_FAILURES + 1
            return centre
        kept = REMEMBERED if len(centre.x) <= 10_000 else REMEMBERED_IF_LARGE
        valley.path = [*valley.path, centre.x][-kept:]
        curve = self._parabola(valley) if valley.failures == 0 else None
        if valley.failures:
            valley.path = []
        if curve is None:
            trial = self._evaluate(centre.x - valley.reach / length * gradient)
            target = -np.inf
        else:
            trial = self._along(state, centre, *curve)
            target = value - 0.7 * valley.reach * valley.slope
        if not (trial.finite and trial.differentiable):
            valley.failures, valley.reach = valley.failures + 1, 0.3 * valley.reach
            return centre
        state.bundle.add(centre)
        valley.metric = ACROSS * valley.reach / length
        arrived, used = self._descend(state, trial, target)
        gained = value - arrived.penalty(weight)
        hoped = 0.1 * valley.reach * length
        if gained > 0:
            valley.slope = gained / float(np.linalg.norm(arrived.x - centre.x))
        else:
            valley.settled = False
            state.bundle.add(arrived)
            arrived = centre
        if gained > hoped:
            valley.failures = 0
            valley.reach *= 2.0 if used <= CHEAP else 1.0 if used <= 2 * CHEAP else 0.5
        else:
            valley.failures += 1
            valley.reach *= 0.3
        return arrived

    def _parabola(self, valley: Valley) -> tuple[Vector, Vector] | None:
        """First and second divided differences at the last point of the path."""
        spaced = [valley.path[-1]]
        for point in reversed(valley.path[:-1]):
            if len(spaced) < 3 and np.linalg.norm(point - spaced[-1]) >= PARABOLA * valley.reach:
                spaced.append(point)
        if len(spaced) < 3:
            spaced = valley.path[:-4:-1]
        if len(spaced) < 3:
            return None
        last, middle, oldest = spaced
        near, far = float(np.linalg.norm(last - middle)), float(np.linalg.norm(middle - oldest))
        if near == 0 or far == 0:
            return None
        first = (last - middle) / near
        second = (first - (middle - oldest) / far) / (near + far)
        return first + near * second, second

    def _along(self, state: State, centre: Trial, first: Vector, second: Vector) -> Trial:
        """The farthest point of a parabola at which the penalty function has fallen nearly as hoped; else the nearest."""
        valley, weight = state.valley, state.weight
        value, length, best = centre.penalty(weight), valley.reach, None
        while True:
            trial = self._evaluate(centre.x + length * first + length * length * second)
            fallen = value - trial.penalty(weight)
            if not (trial.finite and fallen > 0.3 * length * valley.slope and trial.differentiable):
                return trial if best is None else best
            best, valley.reach, length = trial, length, 2.0 * length

    def _step(self, state: State, at: Trial) -> Step:
        self._round = self._round or LimitedMemory(len(at.x), pairs=1)
        self._round.gamma = state.valley.metric
        with self._directing:
            model = Model(at, state.bundle.cuts(at), None, self._round, self._solver, multipliers=state.multipliers)
            step = model.step(state.weight)
        if len(step.weights) + len(step.rows) >= LARGE:
            state.bundle.weights, state.multipliers = step.weights[1:], step.rows  # where the next program begins
        return step

    def _descend(self, state: State, start: Trial, target: float) -> tuple[Trial, int]:
        """Bundle steps from a point until the target is met or the floor reached; also how many were taken.

        The floor is reached when a step kept its promise, the promise was that of a smooth function, and the shortest
        combination of gradients is nearly the same afterwards.
        """
        valley, weight, centre = state.valley, state.weight, start
        valley.settled = False
        step = self._step(state, centre)
        for used in range(MOST_DESCENTS):
            if not step.decrease < 0:
                return centre, used
            trial = self._evaluate(centre.x + step.direction)
            if not (trial.finite and trial.differentiable):
                return centre, used + 1
            gained = centre.penalty(weight) - trial.penalty(weight)
            state.bundle.add(centre if gained > 0 else trial)
            centre = trial if gained > 0 else centre
            after = self._step(state, centre)
            length = float(np.linalg.norm(step.gradient))
            smooth = step.error < 0.5 * valley.metric * length**2
            same = float(np.linalg.norm(after.gradient - step.gradient)) < 0.5 * length
            met = centre.penalty(weight) < target
            valley.settled = met or (gained > -0.5 * step.decrease and smooth and same)
            if valley.settled:
                return centre, used + 1
            step = after
        return centre, MOST_DESCENTS
