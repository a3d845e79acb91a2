"""Steps much longer than the radius along which what is left of the gradients still promises a descent.

A residual is small beside the gradients at the start. Where these were steep beyond measure, or some variables are measured in
much smaller units than others, a small one may still lead far down. So what looks stationary is put to the test: the step
that gradients and curvatures promise is taken, and a proof does not stand where it improves the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import MAX_DENSE_VARIABLES
from nonsmooth.certify.combination import Combination
from nonsmooth.evaluate import FunctionFailed, Trial
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class LongerStep:
    """What is asked at a point that looks stationary."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        at: Trial,
        combination: Combination,
        tolerances: Tolerances,
        *,
        length: float,
        radius: float,
    ) -> None:
        self._evaluate, self._at, self._combination, self._tolerances = evaluate, at, combination, tolerances
        self._length, self._radius = length, radius
        self.steepness: Vector | None = None
        """How steep the functions are along each variable, where that shows that units are not balanced."""

    def find(self, gathered: list[Trial], kinks: Matrix, model: Callable[[Vector], Trial] | None = None) -> Trial | None:
        """A better point, or None. Steps stay on the `kinks`, which have these gradients; the `model` tells curvatures."""
        at, combination = self._at, self._combination
        noise = THRESHOLDS.rounding_multiple * self._tolerances.noise
        if float(np.linalg.norm(combination.vector)) <= noise * (1.0 + combination.longest):
            return None  # all that is left are rounding errors
        largest = float(np.abs(combination.multipliers).max(initial=0.0))
        weight = 2.0 * largest + THRESHOLDS.checked_weight * (1.0 + combination.longest)
        least, value = self._least_gain(), at.penalty(weight)
        for direction in self._descents(gathered, kinks, model or self._evaluate):
            slope, step = -float(direction @ combination.vector), 1.0
            while step * slope > least and step * float(np.abs(direction).max()) > self._radius:
                trial = self._evaluated(self._evaluate, at.x + step * direction)
                better = trial is not None and trial.f < at.f - least and trial.penalty(weight) < value - least
                if better and trial is not None and trial.differentiable:
                    return trial
                step *= THRESHOLDS.spare_digit
        return None

    def _least_gain(self) -> float:
        """A gain that matters beside f, is more than its rounding errors, and more than the user's tolerance allows for."""
        tolerances, size = self._tolerances, abs(self._at.f)
        rounding = THRESHOLDS.rounding_multiple * tolerances.noise
        return max(tolerances.stationarity * size, max(rounding, tolerances.allowance) * (1.0 + size))

    def _evaluated(self, function: Callable[[Vector], Trial], x: Vector) -> Trial | None:
        try:
            return function(x)
        except FunctionFailed:  # it need not be defined so far away
            return None

    def _descents(self, gathered: list[Trial], kinks: Matrix, model: Callable[[Vector], Trial]) -> Iterator[Vector]:
        """Steps to where curvatures end the descent: those seen beside x, those in balanced units, and the steepest."""
        vector = self._combination.vector
        if gathered:
            beside = gathered[0]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                yield self._bounded(-vector / np.abs(self._change(self._at, beside) / (beside.x - self._at.x)))
        if gathered and len(vector) <= MAX_DENSE_VARIABLES:
            probe = self._balanced_probe(gathered, kinks)
            trial = None if probe is None else self._evaluated(model, self._at.x + probe)
            if probe is not None and trial is not None and trial.finite and trial.differentiable:
                yield self._bounded(self._along(kinks, self._curvature(trial, gathered, probe)))
        steepest = -vector / float(np.linalg.norm(vector))
        along = self._along(kinks, np.ones(len(vector))) if len(kinks) else np.zeros(len(vector))
        if along.any():  # however steep the kinks are, a step that stays on them does not climb them
            along = along / float(np.linalg.norm(along))
            yield self._length * along
        if float(np.linalg.norm(steepest - along)) > THRESHOLDS.similar:
            yield self._length * steepest

    def _bounded(self, step: Vector) -> Vector:
        farthest = self._length / self._tolerances.stationarity  # where there is no curvature, the start may not have shown it
        return np.clip(np.nan_to_num(step), -farthest, farthest)

    def _change(self, start: Trial, end: Trial) -> Vector:
        return change_of_gradients(start, end, self._combination.multipliers)

    def _balanced_probe(self, gathered: list[Trial], kinks: Matrix) -> Vector | None:
        """A short way, the longer along a variable the less steep the functions are along it."""
        steepness = steepness_at(self._at, gathered, self._combination.multipliers) + np.abs(kinks).sum(axis=0)
        if not (np.isfinite(steepness).all() and steepness.any()):
            return None
        noise = self._tolerances.noise
        # A function may happen to be flat here, along a variable or all: it counts as steep as it is farther away.
        signs = np.random.default_rng(2).choice([-1.0, 1.0], len(steepness))
        trial = self._evaluated(self._evaluate, self._at.x + THRESHOLDS.spare_digit * self._length * signs)
        if trial is not None and trial.finite and trial.differentiable:
            steepness = steepness + np.abs(self._change(self._at, trial))
        if spread(steepness, noise) * THRESHOLDS.similar < 1.0:
            return None
        self.steepness = steepness
        lengths = 1.0 / np.maximum(steepness, self._tolerances.noise * float(steepness.max()))
        generator = np.random.default_rng(1)
        signs = generator.choice([-1.0, 1.0], len(lengths))
        return np.asarray(self._radius * signs * generator.uniform(0.5, 1.0, len(lengths)) * lengths / float(lengths.max()))

    def _curvature(self, trial: Trial, gathered: list[Trial], probe: Vector) -> Vector:
        """That along each variable, if units are balanced. On another side of a kink, the gradient there changes."""
        changes = [self._change(beside, trial) for beside in (self._at, *gathered)]
        sizes = [float(np.linalg.norm(change * probe)) for change in changes]
        return np.asarray(np.abs(changes[int(np.argmin(sizes))] / probe))

    def _along(self, kinks: Matrix, curvature: Vector) -> Vector:
        """The step to the least of the model along which kinks and constraints that hold stay where they are."""
        vector = self._combination.vector
        farthest = self._length / self._tolerances.stationarity
        inverse = 1.0 / np.maximum(curvature, np.maximum(np.abs(vector) / farthest, np.finfo(float).tiny))
        held = np.vstack([kinks, self._at.jacobian[self._combination.multipliers != 0.0]])
        roots = np.sqrt(inverse)
        scaled = held * roots
        lengths = np.linalg.norm(scaled, axis=1)
        scaled = scaled[lengths > 0] / lengths[lengths > 0, None]
        within = roots * vector
        if len(scaled):
            within = within - np.linalg.lstsq(scaled.T, within, rcond=1e-10)[0] @ scaled
        return np.asarray(-roots * within)


def change_of_gradients(start: Trial, end: Trial, multipliers: Vector) -> Vector:
    """How the gradients change from one point to another, those of constraints by their multipliers."""
    return np.asarray(end.gradient - start.gradient + multipliers @ (end.jacobian - start.jacobian))


def steepness_at(at: Trial, gathered: Iterable[Trial], multipliers: Vector) -> Vector:
    """How steep the functions are along each variable, before anything cancels, and how much this changes beside x."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.abs(at.gradient) + np.abs(at.jacobian).T @ (1.0 + np.abs(multipliers))
        for trial in gathered:
            found = found + np.abs(change_of_gradients(at, trial, multipliers))
    return found


def spread(steepness: Vector, noise: float) -> float:
    """By which factor variables differ in steepness; those along which there is none but rounding errors do not count."""
    known = steepness[steepness > noise * steepness.max(initial=0.0)]
    return float(known.max() / known.min()) if len(known) and np.isfinite(known).all() else 1.0
