"""An independent check that a point is stationary, in the terms of the original problem.

It knows nothing of the solver's matrix, penalty parameter or line search. Around x, within a small radius, it gathers
gradients of f and of the near-active constraints until it either finds multipliers for which

    Σ w_k ∇f(x_k) + Σ λ_ik ∇ci_i(x_k) + Σ ν_j ∇ce_j(x),    w on a simplex, λ ≥ 0

is short (x is stationary to that radius), or a direction in which the problem really improves (it is not). Which
gradient to gather next is not left to chance: the shortest combination found so far is itself a direction of descent,
unless another gradient within the radius prevents that; following it finds either the descent or that gradient.

The shortest combination is a nonnegative least-squares problem. With a simplex it is solved exactly by asking for
Σ w_k = 1 in the least-squares sense and rescaling: the residual is homogeneous in all multipliers together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.options import Tolerances

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

DEGENERATE = 1e7
"""Multipliers larger than this, relative to the gradients, mean that the constraints do not determine them."""


@dataclass(frozen=True)
class Certificate:
    """What the independent check found at a point."""

    stationary: bool
    """Whether the point is feasible and the residual and the complementarity are within their tolerances."""
    residual: float
    """Length of the shortest combination of gradients, relative to 1 + the longest gradient of f."""
    complementarity: float
    """Largest multiplier times distance of its inequality from 0, relative to 1 + the largest multiplier."""
    inequality_violation: float
    equality_violation: float
    feasible: bool
    radius: float
    """Distance within which gradients were gathered; 0 if the gradients at the point itself were enough."""
    samples: int
    """How many gradients of f were combined."""
    descent: bool
    """Whether a step within the radius was found that improves the problem: proof that the point is not stationary."""
    degenerate: bool
    """Whether the residual is small only with unbounded multipliers."""
    reason: str

    def __str__(self) -> str:
        where = "at the point itself" if self.radius == 0 else f"from {self.samples} gradients within {self.radius:.1e}"
        return (
            f"{self.reason}: residual {self.residual:.1e} {where}, complementarity {self.complementarity:.1e}, "
            f"violation {max(self.inequality_violation, self.equality_violation):.1e}"
        )


@dataclass(frozen=True)
class Check:
    """A certificate with what the solver can use of it."""

    certificate: Certificate
    multipliers: Vector
    better: Trial | None
    """The point that improves the problem, where one was found."""
    gathered: tuple[Trial, ...]


class _Combination:
    """Gradients gathered so far, and their shortest combination."""

    def __init__(self, at: Trial, radius: float, tolerances: Tolerances) -> None:
        self._at = at
        self._objective = [at.gradient]
        lengths = np.linalg.norm(at.jacobian, axis=1)
        reach = 2.0 * radius * lengths + tolerances.inequality
        equalities = at.equalities
        self._near = [i for i in range(equalities, len(at.c)) if at.c[i] >= -reach[i]]
        self._rows: list[tuple[int, float, Vector]] = []  # (constraint, sign of its multiplier, gradient)
        for i in range(equalities):
            self._rows += [(i, 1.0, at.jacobian[i]), (i, -1.0, -at.jacobian[i])]
        self._rows += [(i, 1.0, at.jacobian[i]) for i in self._near]
        self.multipliers = np.zeros(len(at.c))

    @property
    def longest(self) -> float:
        """Length of the longest gradient of f."""
        return max(float(np.linalg.norm(g)) for g in self._objective)

    @property
    def samples(self) -> int:
        """How many gradients of f there are."""
        return len(self._objective)

    def add_gradients(self, gradients: Iterable[Vector]) -> None:
        """Gradients of f alone."""
        self._objective += list(gradients)

    def add(self, trial: Trial) -> None:
        """All gradients at a point. Constraints count only where their gradient really differs: a kink, not a curve."""
        self._objective.append(trial.gradient)
        for i in (*range(self._at.equalities), *self._near):
            here, there = self._at.jacobian[i], trial.jacobian[i]
            if np.linalg.norm(there - here) > 0.01 * max(float(np.linalg.norm(here)), float(np.linalg.norm(there))):
                sign = 1.0 if i >= self._at.equalities or self.multipliers[i] >= 0 else -1.0
                self._rows.append((i, sign, sign * there))

    def shortest(self) -> Vector:
        """The shortest combination; sets the multipliers that give it."""
        from scipy.optimize import nnls

        objective, rows = np.array(self._objective), [row for _, _, row in self._rows]
        columns = np.concatenate([objective, np.array(rows).reshape(-1, objective.shape[1])])
        scale = max(self.longest, 1e-300)
        lengths = np.array([scale] * len(objective) + [max(float(np.linalg.norm(row)), 1e-300) for row in rows])
        system = (columns / lengths[:, None]).T
        if len(system) > len(columns):
            system = np.linalg.qr(system, mode="r")
        simplex = np.zeros(len(columns))
        simplex[: len(objective)] = 1.0
        try:
            y, _ = nnls(np.vstack([system, simplex]), np.append(np.zeros(len(system)), 1.0), maxiter=50 * len(columns))
        except RuntimeError:  # too many iterations: no combination is known to be short
            y = simplex / len(objective)
        total = float(y[: len(objective)].sum())
        if not total > 0:
            y, total = simplex, float(len(objective))
        weights = y / total / lengths * scale
        self.multipliers = np.zeros(len(self._at.c))
        for (index, sign, _), weight in zip(self._rows, weights[len(objective) :], strict=True):
            self.multipliers[index] += sign * weight
        combination: Vector = weights @ columns
        return combination


def check(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    tolerances: Tolerances,
    *,
    known: Iterable[Vector] = (),
    max_samples: int | None = None,
) -> Check:
    """Decide whether a point is stationary. `known` are gradients of f at points within the radius."""
    radius = tolerances.radius * max(1.0, float(np.abs(at.x).max(initial=0.0)))
    combination = _Combination(at, radius, tolerances)
    gathered: list[Trial] = []
    limit = min(2 * len(at.x) + 20, 400) if max_samples is None else max_samples

    def conclude(shortest: Vector, used: float, reason: str, better: Trial | None = None) -> Check:
        return _conclude(at, combination, shortest, used, tolerances, reason, better, gathered)

    shortest = combination.shortest()
    size = float(np.linalg.norm(shortest))
    if size <= tolerances.stationarity * (1.0 + combination.longest):
        return conclude(shortest, 0.0, "stationary")
    combination.add_gradients(known)
    if combination.samples > 1:
        shortest = combination.shortest()
    for _ in range(limit):
        size = float(np.linalg.norm(shortest))
        if size <= tolerances.stationarity * (1.0 + combination.longest):
            return conclude(shortest, radius, "stationary within the radius")
        weight = 2.0 * float(np.abs(combination.multipliers).max(initial=0.0)) + 1e-8
        better, informative = _follow(evaluate, at, -shortest / size, size, radius, weight)
        if better is not None:
            return conclude(shortest, radius, "not stationary, a step within the radius improves it", better)
        if informative is None:
            return conclude(shortest, radius, "undecided, neither descent nor a gradient that prevents it was found")
        gathered.append(informative)
        combination.add(informative)
        shortest = combination.shortest()
    return conclude(shortest, radius, f"undecided after {limit} gradients")


def check_violation(evaluate: Callable[[Vector], Trial], at: Trial, tolerances: Tolerances) -> Check:
    """Decide whether the sum of violations is stationary at an infeasible point: no step nearby makes it smaller."""

    def violation(trial: Trial) -> Trial:
        if not trial.finite:
            return Trial(trial.x, np.inf, np.zeros(0), 0, None)
        gradient = trial.signs() @ trial.jacobian
        return Trial.stored(trial.x, trial.total_violation, np.zeros(0), 0, gradient, np.zeros((0, len(trial.x))))

    return check(lambda x: violation(evaluate(x)), violation(at), tolerances)


def _follow(
    evaluate: Callable[[Vector], Trial], at: Trial, direction: Vector, size: float, radius: float, weight: float
) -> tuple[Trial | None, Trial | None]:
    """A better point within the radius along a direction, or a point whose gradient denies the descent."""
    value, step, lowest, highest = at.penalty(weight), radius, 0.0, radius
    for _ in range(30):
        trial = evaluate(at.x + step * direction)
        if trial.penalty(weight) < value - 0.1 * step * size and trial.finite:
            if step == radius:
                return trial, None
            lowest = step
        else:
            highest = step
        if trial.finite and trial.differentiable:
            rate = float(trial.penalty_gradient(weight) @ direction)
            if rate >= -0.5 * size:
                return None, trial
        if highest - lowest < 1e-9 * radius:
            break
        step = 0.5 * (lowest + highest)
    return None, None


def _conclude(
    at: Trial,
    combination: _Combination,
    shortest: Vector,
    radius: float,
    tolerances: Tolerances,
    reason: str,
    better: Trial | None,
    gathered: list[Trial],
) -> Check:
    multipliers = combination.multipliers
    largest = float(np.abs(multipliers).max(initial=0.0))
    residual = float(np.linalg.norm(shortest)) / (1.0 + combination.longest)
    slack = np.abs(at.c[at.equalities :])
    complementarity = float((multipliers[at.equalities :] * slack).max(initial=0.0)) / (1.0 + largest)
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    degenerate = largest > DEGENERATE * (1.0 + combination.longest)
    holds = residual <= tolerances.stationarity and complementarity <= 10.0 * max(
        tolerances.inequality, tolerances.stationarity
    )
    if holds and degenerate:
        reason = "not certified, the multipliers are unbounded (the constraints are degenerate here)"
    elif holds and not feasible:
        reason = "the point is not feasible"
    certificate = Certificate(
        stationary=holds and feasible and not degenerate,
        residual=residual,
        complementarity=complementarity,
        inequality_violation=at.inequality_violation,
        equality_violation=at.equality_violation,
        feasible=feasible,
        radius=radius,
        samples=combination.samples,
        descent=better is not None,
        degenerate=degenerate,
        reason=reason,
    )
    return Check(certificate, multipliers, better, tuple(gathered))
