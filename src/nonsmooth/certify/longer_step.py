"""Steps far beyond the radius, along which the residual gradient still predicts descent.

A residual is small relative to the gradients at the start. If those were extremely steep, or if some variables have much
smaller units than others, f may still fall far along a small residual. So a point that looks stationary is tested: the check
takes the step that gradients and curvatures predict, and rejects the proof if this step improves the problem.
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
    """The search for a better point far from a point that looks stationary."""

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
        """How steep the functions are along each variable, if that shows that the units are not balanced."""

    def find(self, gathered_trials: list[Trial], kinks: Matrix, model: Callable[[Vector], Trial] | None = None) -> Trial | None:
        """A better point, or None. Steps stay on the `kinks`, given by their gradients; the `model` provides curvatures."""
        at, combination = self._at, self._combination
        noise = THRESHOLDS.rounding_multiple * self._tolerances.noise
        if float(np.linalg.norm(combination.vector)) <= noise * (1.0 + combination.longest):
            return None  # only rounding errors remain
        largest = float(np.abs(combination.multipliers).max(initial=0.0))
        weight = 2.0 * largest + THRESHOLDS.checked_weight * (1.0 + combination.longest)
        min_gain, value = self._min_gain(), at.penalty(weight)
        for direction in self._descents(gathered_trials, kinks, model or self._evaluate):
            slope, step = -float(direction @ combination.vector), 1.0
            while step * slope > min_gain and step * float(np.abs(direction).max()) > self._radius:
                trial = self._evaluated(self._evaluate, at.x + step * direction)
                better = trial is not None and trial.f < at.f - min_gain and trial.penalty(weight) < value - min_gain
                if better and trial is not None and trial.differentiable:
                    return trial
                step *= THRESHOLDS.spare_digit
        return None

    def _min_gain(self) -> float:
        """The smallest gain that is significant relative to f, to its rounding errors and to the user's tolerance."""
        tolerances, size = self._tolerances, abs(self._at.f)
        rounding = THRESHOLDS.rounding_multiple * tolerances.noise
        return max(tolerances.stationarity * size, max(rounding, tolerances.allowance) * (1.0 + size))

    def _evaluated(self, function: Callable[[Vector], Trial], x: Vector) -> Trial | None:
        try:
            return function(x)
        except FunctionFailed:  # the function may be undefined so far away
            return None

    def _descents(self, gathered_trials: list[Trial], kinks: Matrix, model: Callable[[Vector], Trial]) -> Iterator[Vector]:
        """Newton-like steps: by curvatures measured near x, by curvatures in balanced units, and steepest descent."""
        vector = self._combination.vector
        if gathered_trials:
            neighbor = gathered_trials[0]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                yield self._bounded(-vector / np.abs(self._change(self._at, neighbor) / (neighbor.x - self._at.x)))
        if gathered_trials and len(vector) <= MAX_DENSE_VARIABLES:
            probe = self._balanced_probe(gathered_trials, kinks)
            trial = None if probe is None else self._evaluated(model, self._at.x + probe)
            if probe is not None and trial is not None and trial.finite and trial.differentiable:
                yield self._bounded(self._along(kinks, self._curvature(trial, gathered_trials, probe)))
        steepest = -vector / float(np.linalg.norm(vector))
        along = self._along(kinks, np.ones(len(vector))) if len(kinks) else np.zeros(len(vector))
        if along.any():  # a step that stays on the kinks does not climb them, however steep they are
            along = along / float(np.linalg.norm(along))
            yield self._length * along
        if float(np.linalg.norm(steepest - along)) > THRESHOLDS.similar:
            yield self._length * steepest

    def _bounded(self, step: Vector) -> Vector:
        max_step = self._length / self._tolerances.stationarity  # a limit in case of no curvature
        return np.clip(np.nan_to_num(step), -max_step, max_step)

    def _change(self, start: Trial, end: Trial) -> Vector:
        return change_of_gradients(start, end, self._combination.multipliers)

    def _balanced_probe(self, gathered_trials: list[Trial], kinks: Matrix) -> Vector | None:
        """A short step whose component along each variable is inversely proportional to the steepness along it."""
        steepness = steepness_at(self._at, gathered_trials, self._combination.multipliers) + np.abs(kinks).sum(axis=0)
        if not (np.isfinite(steepness).all() and steepness.any()):
            return None
        noise = self._tolerances.noise
        # A function may happen to be flat here, along one variable or all: its steepness farther away counts too.
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

    def _curvature(self, trial: Trial, gathered_trials: list[Trial], probe: Vector) -> Vector:
        """The curvature along each variable, in balanced units. The smallest change avoids differences across a kink."""
        changes = [self._change(other, trial) for other in (self._at, *gathered_trials)]
        sizes = [float(np.linalg.norm(change * probe)) for change in changes]
        return np.asarray(np.abs(changes[int(np.argmin(sizes))] / probe))

    def _along(self, kinks: Matrix, curvature: Vector) -> Vector:
        """The step to the minimizer of the model that stays on kinks and active constraints, to first order."""
        vector = self._combination.vector
        max_step = self._length / self._tolerances.stationarity
        inverse = 1.0 / np.maximum(curvature, np.maximum(np.abs(vector) / max_step, np.finfo(float).tiny))
        normals = np.vstack([kinks, self._at.jacobian[self._combination.multipliers != 0.0]])
        roots = np.sqrt(inverse)
        scaled = normals * roots
        lengths = np.linalg.norm(scaled, axis=1)
        scaled = scaled[lengths > 0] / lengths[lengths > 0, None]
        within = roots * vector
        if len(scaled):
            within = within - np.linalg.lstsq(scaled.T, within, rcond=1e-10)[0] @ scaled
        return np.asarray(-roots * within)


def change_of_gradients(start: Trial, end: Trial, multipliers: Vector) -> Vector:
    """The change of the gradients from one point to another, with those of constraints times their multipliers."""
    return np.asarray(end.gradient - start.gradient + multipliers @ (end.jacobian - start.jacobian))


def steepness_at(at: Trial, gathered_trials: Iterable[Trial], multipliers: Vector) -> Vector:
    """How steep the functions are along each variable, before anything cancels, plus the changes of gradients near x."""
    with np.errstate(over="ignore", invalid="ignore"):
        steepness = np.abs(at.gradient) + np.abs(at.jacobian).T @ (1.0 + np.abs(multipliers))
        for trial in gathered_trials:
            steepness = steepness + np.abs(change_of_gradients(at, trial, multipliers))
    return steepness


def spread(steepness: Vector, noise: float) -> float:
    """The ratio of the largest to the smallest steepness, ignoring variables with nothing but rounding errors."""
    significant = steepness[steepness > noise * steepness.max(initial=0.0)]
    finite = len(significant) and np.isfinite(significant).all()
    return float(significant.max() / significant.min()) if finite else 1.0
