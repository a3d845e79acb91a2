"""What to do when the model's step leads nowhere: prove that this is the end, or find another way on."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.certificate import Check, check_violation
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.state import State
from nonsmooth.options import Options, Tolerances
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.result import Status
from nonsmooth.step.iteration import LARGEST_WEIGHT, Iteration, Move, Stuck
from nonsmooth.step.model import Step

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

MOST_STUCK = 12
MOST_RECOVERIES = 4
UNBOUNDED_DEPTH = 1e13
"""How many times the size of f at the start it must have fallen until it is asked whether there is an end to it."""
EDGE_OF_OVERFLOW = 1e290
"""Nothing can be asked about the other side of it."""
SHORTEST_PROLONGATION = 1e-5
"""The first step behind a point that may lie near the edge of overflow, as a part of the way to it."""


class Rescue:
    """Ways out of a point from which the model's step failed."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        iteration: Iteration,
        incumbents: Incumbents,
        tolerances: Tolerances,
        reference: Reference | None,
        options: Options,
        certify: Callable[[], Check],
        clock: Clock,
        box: Box | None = None,
    ) -> None:
        self._box = box
        self._evaluate, self._iteration, self._incumbents = evaluate, iteration, incumbents
        self._tolerances, self._reference, self._options, self._certify = tolerances, reference, options, certify
        self._testing = clock.phase(Phase.STATIONARITY)

    def recover(self, state: State) -> bool:
        """Go back to the best feasible point with a much larger weight; False if there is none, or too often."""
        best = self._incumbents.best
        if best is None or state.recoveries >= MOST_RECOVERIES:
            return False
        state.recoveries += 1
        found = self._evaluate(best.x)
        if not found.differentiable:
            return False
        logger.info("iteration %d: nothing to be gained at infeasible points, back to the best feasible one", state.iteration)
        state.current = found
        state.weight = max(100.0 * state.weight, 100.0 / self._options.penalty_parameter)
        state.reset_hessian()
        state.constraint_cuts.clear()
        return True

    def unstick(self, state: State, reason: Stuck, step: Step) -> Move | Status | None:
        """What to do when the model's step failed: a status, a move found otherwise, or None to propose again."""
        at, options = state.current, self._options
        if reason is Stuck.NOT_TRIED:
            moved = self._fall_back(state)
            if moved is not None:
                return moved
        state.stuck += 1
        if reason is Stuck.UNBOUNDED:
            ray, self._iteration.ray = self._iteration.ray, None  # it holds vectors of size n
            return self._follow_ray(state, ray or step)
        if self._incumbents.feasible(at):
            found = self._certify()
            if found.certificate.stationary:
                return Status.STATIONARY
            for trial in found.gathered:
                state.bundle.add(trial)
            if found.better is not None and found.better.differentiable:
                state.reset_hessian()  # the matrix saw no descent where there is some
                return Move(found.better, step, 0.0, None, 0, 0, 1, kinked=True)
            if options.stop_at_failed_search:
                return Status.SEARCH_FAILED_FEASIBLE
        else:
            if len(state.constraint_cuts) and state.stuck <= 2:
                state.constraint_cuts.clear()  # each of them is penalised by itself, which can be too much
                return None
            with self._testing:
                found = check_violation(self._evaluate, at, self._tolerances, self._reference, self._box)
            if found.certificate.stationary:
                if self._incumbents.best is not None and state.recoveries < MOST_RECOVERIES:
                    return Status.INFEASIBLE  # from which the run recovers to the best feasible point
                return self._look_around(state) or Status.INFEASIBLE
            if found.better is not None and (reason is Stuck.SEARCH_FAILED or state.stuck > 3):
                return self._towards_feasibility(state, found.better.x - at.x)
            if state.weight < LARGEST_WEIGHT and reason is Stuck.NO_DECREASE:
                state.weight *= 10.0
                return None
        if state.stuck <= MOST_STUCK:
            if len(state.constraint_cuts) or (state.kinked and state.stuck % 2):
                state.constraint_cuts.clear()
                state.kinked = not state.kinked
                return None
            moved = self._fall_back(state)
            if moved is not None:
                return moved
        return Status.SEARCH_FAILED_FEASIBLE if self._incumbents.feasible(at) else Status.SEARCH_FAILED_INFEASIBLE

    def _follow_ray(self, state: State, step: Step) -> Move | Status:
        """The penalty function fell at every point of a search: is there an end to it, much farther out?"""
        at = state.current
        last, length, far = at, 1.0, 1e20 * max(1.0, float(np.linalg.norm(at.x))) / float(np.linalg.norm(step.direction))
        while length < far:
            trial = self._evaluate(at.x + length * step.direction)
            if not (
                trial.finite and trial.penalty(step.weight) < last.penalty(step.weight) and self._incumbents.feasible(trial)
            ):
                break
            last, length = trial, 2.0 * length
        if length >= far:
            return Status.UNBOUNDED
        if last is at or not last.differentiable:
            return Status.SEARCH_FAILED_FEASIBLE if self._incumbents.feasible(at) else Status.SEARCH_FAILED_INFEASIBLE
        return Move(last, step, length, None, 3, 0, 0)

    def falls_without_end(self, state: State, start: Vector, f: float) -> bool:
        """Whether f at the best feasible point, in the user's units, is far below the start, and falls on behind it.

        The way from the start, or from the last points, is prolonged until values overflow. Where it ends before, because f
        rises or a constraint is violated, nothing is claimed.
        """
        best = self._incumbents.best
        if best is None or not -f > UNBOUNDED_DEPTH * max(1.0, abs(state.history[0][0])):
            return False
        if -f > EDGE_OF_OVERFLOW:
            return True
        kept = state.bundle.arrays()["points"]
        for origin in (start, *kept[-2:]):
            way, last, length = best.x - origin, best.f, SHORTEST_PROLONGATION
            while np.isfinite(length) and way.any():
                trial = self._evaluate(best.x + length * way)
                if not trial.finite:
                    if length > SHORTEST_PROLONGATION:
                        return True
                    break
                if not (trial.f < last and self._incumbents.feasible(trial)):
                    break
                last, length = trial.f, 4.0 * length
        return False

    def _towards_feasibility(self, state: State, way: Vector) -> Move:
        """Go on along a way that reduces the violation, as long as it does."""
        at = state.current
        best, length = self._evaluate(at.x + way), 1.0
        while length < 1e6:
            trial = self._evaluate(at.x + 2.0 * length * way)
            if not (trial.finite and trial.total_violation < best.total_violation and trial.differentiable):
                break
            best, length = trial, 2.0 * length
        step = self._iteration.plain_step(at, way, at.penalty_gradient(state.weight), 0.0, state.weight)
        return Move(best, step, length, None, 4, 0, 0)

    def _look_around(self, state: State) -> Move | None:
        """A clearly more feasible point not far from one where the violation is stationary (it may be a maximum)."""
        at, generator = state.current, state.generator
        slope = at.signs() @ at.jacobian
        if np.linalg.norm(slope) > 0:  # a slope may be small only because the constraint is measured in large units
            for power in range(-10, 60, 2):
                trial = self._evaluate(at.x - 2.0**power * slope / np.linalg.norm(slope))
                if trial.finite and trial.total_violation < (1.0 - 1e-3) * at.total_violation and trial.differentiable:
                    step = self._iteration.plain_step(at, -slope, slope, 0.0, state.weight)
                    return Move(trial, step, 2.0**power, None, 4, 0, 0)
        for distance in (1e-3, 1e-2, 1e-1):
            for _ in range(5):
                direction = generator.standard_normal(len(at.x))
                length = distance * max(1.0, float(np.linalg.norm(at.x))) / float(np.linalg.norm(direction))
                trial = self._evaluate(at.x + length * direction)
                if trial.finite and trial.total_violation < (1.0 - 1e-7) * at.total_violation and trial.differentiable:
                    gradient = at.penalty_gradient(state.weight)
                    return Move(
                        trial,
                        self._iteration.plain_step(at, direction, gradient, 0.0, state.weight),
                        length,
                        None,
                        4,
                        0,
                        0,
                    )
        return None

    def _fall_back(self, state: State) -> Move | None:
        options = self._options
        for level in range(max(1, options.first_fallback), options.last_fallback + 1):
            moved = self._iteration.fall_back(state, level, state.generator)
            if moved is not None:
                logger.info("iteration %d: fallback level %d", state.iteration, level)
                return moved
        return None
