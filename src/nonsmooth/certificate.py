"""An independent check that a point is stationary, in the terms of the original problem.

It knows nothing of the solver's matrix, penalty parameter or line search. Around x, within a small radius, it gathers
gradients of f and of the near-active constraints until it either finds multipliers for which

    Σ w_k ∇f(x_k) + Σ λ_ik ∇ci_i(x_k) + Σ ν_j ∇ce_j(x),    w on a simplex, λ ≥ 0

is short and made of pieces that meet at x (x is stationary to that radius), or a direction in which the problem really
improves (it is not). Which gradient to gather next is not left to chance: the shortest combination found so far is
itself a direction of descent, unless another gradient within the radius prevents that; following it finds either the
descent or that gradient.

The shortest combination is a nonnegative least-squares problem. With a simplex it is solved exactly by asking for
Σ w_k = 1 in the least-squares sense and rescaling: the residual is homogeneous in all multipliers together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.incumbents import Candidate
from nonsmooth.options import Tolerances
from nonsmooth.rows import Rows, stack, triangular_factor

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

GAP = 0.1
"""Largest gap of a stationary point, as a fraction of the tolerance for the residual."""
NEIGHBOURS = 3
STALLED, PROGRESS = 40, 0.95
"""Where so many gradients leave more than this fraction of the residual, there is no kink that more of them would explain."""
MEMORY = 15_000_000
"""Most numbers in the gradients that are gathered: beyond n = 37,500 there are fewer than 400 of them."""
DEGENERATE = 1e7
"""Multipliers larger than this, relative to the gradients, mean that the constraints do not determine them."""


@dataclass(frozen=True)
class Certificate:
    """What the independent check found at a point."""

    stationary: bool
    """Whether the point is feasible and the residual and the complementarity are within their tolerances."""
    residual: float
    """Length of the shortest combination of gradients, relative to 1 + the longest gradient of f."""
    gap: float
    """How far f could still fall over the pieces that were combined, relative to 1 + |f|."""
    complementarity: float
    """Largest multiplier times distance of its constraint from 0, relative to 1 + |f|: what the slack may cost."""
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
            f"{self.reason}: residual {self.residual:.1e} {where}, gap {self.gap:.1e}, "
            f"complementarity {self.complementarity:.1e}, "
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
    carrying: tuple[Vector, ...] = ()
    """Those of the gathered points whose gradients are part of the combination."""


@dataclass(frozen=True)
class _Gradient:
    """A gradient of f (constraint −1) or of a constraint, at some distance from x."""

    constraint: int
    sign: float
    row: Vector
    error: float
    """How far its linearisation lies from the value at x."""
    distance: float
    point: Vector | None = None
    """Where it was gathered; None at x itself."""

    @cached_property
    def length(self) -> float:
        """Length of the row, computed once: certificates ask for it again and again."""
        return float(np.linalg.norm(self.row))


class _Combination:
    """Gradients gathered so far, and the combination of them that comes nearest to proving x stationary."""

    def __init__(self, at: Trial, radius: float, tolerances: Tolerances) -> None:
        self._at = at
        lengths = np.linalg.norm(at.jacobian, axis=1)
        reach = 2.0 * radius * lengths + tolerances.inequality
        equalities = at.equalities
        self._near = [i for i in range(equalities, len(at.c)) if at.c[i] >= -reach[i]]
        self._all = [_Gradient(-1, 1.0, at.gradient, 0.0, 0.0)]
        for i in range(equalities):
            self._all += [_Gradient(i, 1.0, at.jacobian[i], 0.0, 0.0), _Gradient(i, -1.0, -at.jacobian[i], 0.0, 0.0)]
        self._all += [_Gradient(i, 1.0, at.jacobian[i], 0.0, 0.0) for i in self._near]
        self.multipliers = np.zeros(len(at.c))
        self.vector = at.gradient
        self.gap = 0.0
        self.carrying: tuple[Vector, ...] = ()
        """Points whose gradients are part of the combination."""

    @property
    def longest(self) -> float:
        """Length of the longest gradient of f."""
        return max((g.length for g in self._all if g.constraint < 0), default=0.0)

    @property
    def samples(self) -> int:
        """How many gradients of f there are."""
        return sum(g.constraint < 0 for g in self._all)

    @property
    def residual(self) -> float:
        """Length of the combination, relative to 1 + the longest gradient of f."""
        return float(np.linalg.norm(self.vector)) / (1.0 + self.longest)

    def distrust(self, trials: list[Trial]) -> bool:
        """Forget gradients at x that are unlike those at all of the trial points, and use the latter; False if none is."""

        def unlike(own: Vector, others: list[Vector]) -> bool:
            longest = max(float(np.linalg.norm(g)) for g in (own, *others))
            return all(float(np.linalg.norm(other - own)) > 1e-3 * (1e-3 + longest) for other in others)

        wrong = {
            i
            for i in (*range(self._at.equalities), *self._near)
            if unlike(self._at.jacobian[i], [trial.jacobian[i] for trial in trials])
        }
        if unlike(self._at.gradient, [trial.gradient for trial in trials]):
            wrong.add(-1)
        if not wrong:
            return False
        self._all = [g for g in self._all if g.constraint not in wrong]
        for trial in trials:
            self.add(trial)
        return True

    def add_known(self, x: Vector, f: float, gradient: Vector) -> None:
        """A gradient of f alone, from a point where f was known."""
        way = self._at.x - x
        error = abs(self._at.f - f - float(gradient @ way))
        self._all.append(_Gradient(-1, 1.0, gradient, error, float(np.linalg.norm(way)), x))

    def add(self, trial: Trial) -> None:
        """All gradients at a point. Constraints count only where their gradient really differs: a kink, not a curve."""
        self.add_known(trial.x, trial.f, trial.gradient)
        way = self._at.x - trial.x
        distance = float(np.linalg.norm(way))
        looked_at = np.array([*range(self._at.equalities), *self._near], dtype=np.intp)
        here, there = self._at.jacobian[looked_at], trial.jacobian[looked_at]
        longer = np.maximum(np.linalg.norm(here, axis=1), np.linalg.norm(there, axis=1))
        for i in looked_at[np.linalg.norm(there - here, axis=1) > 0.01 * longer].tolist():
            row = trial.jacobian[i]
            sign = 1.0 if i >= self._at.equalities or self.multipliers[i] >= 0 else -1.0
            error = abs(float(self._at.c[i] - trial.c[i] - row @ way))
            self._all.append(_Gradient(i, sign, sign * row, error, distance, trial.x))

    def restrict(self, radius: float) -> None:
        """Forget gradients from points farther away."""
        self._all = [g for g in self._all if g.distance <= radius]

    def solve(self) -> None:
        """Find the combination: short, and with small errors."""
        from scipy.optimize import nnls

        gradients = sorted(self._all, key=lambda g: g.constraint >= 0)  # those of f first
        count, scale = self.samples, max(self.longest, 1e-300)
        rows = stack(*(g.row[None] for g in gradients))
        errors = np.array([g.error for g in gradients]) * (1.0 + self.longest) / (1.0 + abs(self._at.f))
        lengths = np.array([scale if g.constraint < 0 else max(g.length, 1e-300) for g in gradients])
        system = triangular_factor(rows, errors, lengths) if isinstance(rows, Rows) else np.vstack([rows.T, errors]) / lengths
        if not np.isfinite(system).all():
            self.vector, self.gap = np.full(len(self._at.x), np.inf), np.inf
            return
        if len(system) > len(gradients):
            system = np.linalg.qr(system, mode="r")
        simplex = np.zeros(len(gradients))
        simplex[:count] = 1.0
        try:
            y, _ = nnls(np.vstack([system, simplex]), np.append(np.zeros(len(system)), 1.0), maxiter=50 * len(gradients))
        except RuntimeError:  # too many iterations: no combination is known to be short
            y = simplex / count
        total = float(y[:count].sum())
        if not total > 0:
            y, total = simplex, float(count)
        weights = y / total / lengths * scale
        self.multipliers = np.zeros(len(self._at.c))
        for gradient, weight in zip(gradients[count:], weights[count:], strict=True):
            self.multipliers[gradient.constraint] += gradient.sign * weight
        self.vector = weights @ rows
        points = {id(g.point): g.point for g, weight in zip(gradients, weights.tolist(), strict=True) if weight > 0}
        self.carrying = tuple(point for point in points.values() if point is not None)
        self.gap = float(weights @ np.array([g.error for g in gradients])) / (1.0 + abs(self._at.f))


def check(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    tolerances: Tolerances,
    *,
    known: Iterable[tuple[Vector, float, Vector]] = (),
    hints: Iterable[Vector] = (),
    max_samples: int | None = None,
) -> Check:
    """Decide whether a point is stationary.

    `known` are (x, f, gradient of f) of other points; near ones are used. `hints` are points to look at before others.
    """
    radius = tolerances.radius * max(1.0, 1e-3 * float(np.abs(at.x).max(initial=0.0)))
    combination = _Combination(at, radius, tolerances)
    gathered: list[Trial] = []
    limit = min(2 * len(at.x) + 20, 400, MEMORY // len(at.x) + 1) if max_samples is None else max_samples

    def conclude(used: float, reason: str, better: Trial | None = None) -> Check:
        return _conclude(at, combination, used, tolerances, reason, better, gathered)

    combination.solve()
    if limit:
        for trial in _neighbours(evaluate, at, radius):
            gathered.append(trial)
        if gathered and combination.distrust(gathered):
            # Exactly on a kink, automatic differentiation returns some value that need not be a gradient of anything.
            combination.solve()
        elif combination.residual <= tolerances.stationarity:
            return conclude(0.0, "stationary")
    elif combination.residual <= tolerances.stationarity:
        return conclude(0.0, "stationary")
    for x, f, gradient in known:
        combination.add_known(x, f, gradient)
    for x in hints:
        trial = evaluate(x)
        if trial.finite and trial.differentiable:
            gathered.append(trial)
            combination.add(trial)
    combination.restrict(radius)
    combination.solve()
    smallest, residuals = 1e-5 * radius, [combination.residual]
    for _ in range(limit):
        if combination.residual <= tolerances.stationarity:
            if combination.gap <= GAP * tolerances.stationarity:
                return conclude(radius, "stationary within the radius")
            # The gradients prove that a kink is near, not that x is on it: look closer.
            radius *= 0.1
            if radius < smallest:
                return conclude(radius, "undecided, the function changes too much within the radius")
            combination.restrict(radius)
            if combination.samples == 0:
                for trial in _neighbours(evaluate, at, radius):
                    combination.add(trial)
            if combination.samples == 0:
                return conclude(radius, "undecided, no gradient could be had within the radius")
            combination.solve()
            residuals = [combination.residual]
            continue
        if len(residuals) > STALLED and combination.residual > PROGRESS * residuals[-STALLED]:
            return conclude(radius, f"undecided, {STALLED} more gradients did not bring the residual down")
        size = float(np.linalg.norm(combination.vector))
        if not np.isfinite(size):
            return conclude(radius, "undecided, the gradients are too large to be combined")
        # Large enough that leaving the constraints never looks like an improvement, also before all gradients are known.
        weight = 2.0 * float(np.abs(combination.multipliers).max(initial=0.0)) + 10.0 * (1.0 + combination.longest)
        better, informative = _follow(evaluate, at, -combination.vector / size, size, radius, weight)
        if better is not None:
            return conclude(radius, "not stationary, a step within the radius improves it", better)
        if informative is None:
            return conclude(radius, "undecided, neither descent nor a gradient that prevents it was found")
        gathered.append(informative)
        combination.add(informative)
        combination.solve()
        residuals.append(combination.residual)
    return conclude(radius, f"undecided after {limit} gradients")


def _neighbours(evaluate: Callable[[Vector], Trial], at: Trial, radius: float) -> list[Trial]:
    """A few points at random within the radius at which everything is finite."""
    generator = np.random.default_rng(0)
    trials = []
    for _ in range(NEIGHBOURS):
        direction = generator.standard_normal(len(at.x))
        trial = evaluate(at.x + radius * generator.uniform(0.1, 0.9) * direction / np.linalg.norm(direction))
        if trial.finite and trial.differentiable:
            trials.append(trial)
    return trials


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
        outside = trial.total_violation > at.total_violation + 1e-3 * radius
        if trial.finite and not outside and trial.penalty(weight) < value - 0.1 * step * size:
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


def unknown(at: Candidate, tolerances: Tolerances, reason: str) -> Certificate:
    """A certificate that certifies nothing, for a point at which no gradient could be had."""
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    return Certificate(
        stationary=False, residual=np.inf, gap=np.inf, complementarity=np.inf, inequality_violation=at.inequality_violation,
        equality_violation=at.equality_violation, feasible=feasible, radius=0.0, samples=0, descent=False, degenerate=False,
        reason=reason,
    )  # fmt: skip


def _conclude(
    at: Trial,
    combination: _Combination,
    radius: float,
    tolerances: Tolerances,
    reason: str,
    better: Trial | None,
    gathered: list[Trial],
) -> Check:
    multipliers = combination.multipliers
    largest = float(np.abs(multipliers).max(initial=0.0))
    complementarity = float((np.abs(multipliers) * np.abs(at.c)).max(initial=0.0)) / (1.0 + abs(at.f))
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    degenerate = largest > DEGENERATE * (1.0 + combination.longest)
    cancels = combination.residual <= tolerances.stationarity and combination.gap <= GAP * tolerances.stationarity
    holds = cancels and complementarity <= 10.0 * max(tolerances.inequality, tolerances.stationarity)
    if cancels and not holds:
        reason = "not certified, constraints that have a multiplier are not at 0 (complementarity)"
    elif holds and degenerate:
        reason = "not certified, the multipliers are unbounded (the constraints are degenerate here)"
    elif holds and not feasible:
        reason = "the point is not feasible"
    certificate = Certificate(
        stationary=holds and feasible and not degenerate,
        residual=combination.residual,
        gap=combination.gap,
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
    return Check(certificate, multipliers, better, tuple(gathered), combination.carrying)
