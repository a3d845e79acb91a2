"""An independent check that a point is stationary, stated for the original problem.

It uses nothing of the solver's matrix, penalty parameter or line search. Around x, within a small radius, it gathers
gradients of f and of the near-active constraints until it finds either multipliers for which

    Σ w_k ∇f(x_k) + Σ λ_ik ∇ci_i(x_k) + Σ ν_j ∇ce_j(x),    w on a simplex, λ ≥ 0

is short and combines pieces that meet at x (x is stationary within that radius), or a direction along which the problem
improves (x is not stationary). The choice of the next gradient is systematic: the negative of the shortest combination so
far is a descent direction unless another gradient within the radius prevents it; following it finds either the descent
or that gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.better_points import find_point_below_peak, find_point_on_kinks
from nonsmooth.certify.combination import Combination
from nonsmooth.certify.longer_step import LongerStep
from nonsmooth.certify.probes import find_refutation, follow, neighbors
from nonsmooth.certify.visible_kinks import Slopes, choose_slopes
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MAX_NUMBERS_IN_GRADIENTS = 15_000_000
"""Limit on the variables times the gradients; above 37,500 variables it is the limit that applies."""


@dataclass(frozen=True)
class Certificate:
    """The result of the independent check at a point."""

    stationary: bool
    """Whether the point is feasible and the residual and the complementarity are within their tolerances."""
    residual: float
    """Length of the shortest combination of gradients, relative to 1 + the longest gradient of f."""
    gap: float
    """How far f could still fall across the combined pieces, relative to 1 + |f|."""
    complementarity: float
    """Largest product of a multiplier and its constraint's distance from 0, relative to 1 + |f|."""
    inequality_violation: float
    equality_violation: float
    feasible: bool
    radius: float
    """Distance within which gradients were gathered; 0 if the gradients at the point itself were sufficient."""
    samples: int
    """How many gradients of f were combined."""
    descent: bool
    """Whether a better point was found, which proves that the point is not stationary."""
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
    """A certificate, with data that the solver can use."""

    certificate: Certificate
    multipliers: Vector
    better: Trial | None
    """A better point, if one was found."""
    gathered_trials: tuple[Trial, ...]
    support: tuple[Vector, ...] = ()
    """The gathered points whose gradients have positive weight in the combination."""
    bound_multipliers: Vector | None = None
    """Positive for lower bounds, negative for upper ones; None if there are no bounds."""
    steepness: Vector | None = None
    """How steep the functions are along each variable, if that shows that the units are not balanced."""


def check(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    tolerances: Tolerances,
    reference: Reference | None = None,
    box: Box | None = None,
    *,
    hints: Iterable[Vector] = (),
    max_samples: int | None = None,
) -> Check:
    """Decide whether a point is stationary; `reference` gives typical lengths and slopes. `hints` are points to evaluate
    before others."""
    return _StationarityTest(evaluate, at, tolerances, reference, box, max_samples).run(hints)


class _StationarityTest:
    """One check of a point, with the gradients gathered so far."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        at: Trial,
        tolerances: Tolerances,
        reference: Reference | None,
        box: Box | None,
        max_samples: int | None,
    ) -> None:
        self._evaluate, self._at, self._tolerances, self._tolerance = evaluate, at, tolerances, tolerances.stationarity
        self._reference, self._box = reference, box
        self._length = 1.0 if reference is None else reference.length(at.x)
        size = max(1.0, THRESHOLDS.least_magnitude * float(np.abs(at.x).max(initial=0.0)))
        self._radius = tolerances.radius * min(1.0, self._length) * size
        self._min_radius = THRESHOLDS.least_radius * self._radius
        steepness = np.ones(len(at.x)) if reference is None else reference.steepness(at.x)
        self._combination = Combination(at, self._radius, tolerances, steepness, box)
        self._gathered_trials: list[Trial] = []
        default = min(2 * len(at.x) + 20, THRESHOLDS.max_gradients, MAX_NUMBERS_IN_GRADIENTS // len(at.x) + 1)
        self._max_samples = default if max_samples is None else max_samples
        self._residuals: list[float] = []
        self._steepness: Vector | None = None

    def _conclude(self, reason: str, *, better: Trial | None = None, radius: float | None = None, proven: bool = True) -> Check:
        radius = self._radius if radius is None else radius
        return _conclude(
            self._at, self._combination, radius, self._tolerances, reason, better, self._gathered_trials, proven=proven
        )  # fmt: skip

    def run(self, hints: Iterable[Vector]) -> Check:
        """The verdict from visible kinks, or from the gradients at and around x; longer steps may still refute a proof."""
        closer = find_point_on_kinks(self._evaluate, self._at, 2.0 * self._radius) if self._max_samples else None
        if closer is not None:
            self._combination.solve()
            return self._conclude("not stationary, a point on a nearby kink is better", better=closer, radius=0.0, proven=False)
        proof = self._prove_by_visible_kinks() if self._max_samples else None
        if proof is not None:
            return proof
        verdict = self._decide_by_gradients(hints)
        stationary = verdict.certificate.stationary
        lower = (
            find_point_below_peak(self._evaluate, self._at, self._combination, self._gathered_trials) if stationary else None
        )
        if lower is not None:
            return self._conclude("not stationary, a point within the radius is better", better=lower, proven=False)
        better = self._longer_step(self._combination.kinks) if stationary else None
        if better is None:
            return replace(verdict, steepness=self._steepness)
        reason = "not stationary, a longer step along the remaining gradient improves it"
        return self._conclude(reason, better=better, proven=False)

    def _prove_by_visible_kinks(self) -> Check | None:
        """A proof from the visible kinks of f; None if they prove nothing."""
        slopes = choose_slopes(self._at, self._radius, self._tolerances, self._box)
        if slopes is None:
            return None
        # With these slopes, curvature within the radius may change the gradients by more than the remaining residual.
        radii = (self._radius * THRESHOLDS.spare_digit**number for number in range(THRESHOLDS.approaches))
        return next((proof for radius in radii if (proof := self._prove_by_slopes(slopes, radius)) is not None), None)

    def _prove_by_slopes(self, slopes: Slopes, radius: float) -> Check | None:
        """A proof from a choice of slopes, with which the function is smooth within a radius."""
        smooth = _StationarityTest(
            lambda x: slopes.apply_to(self._evaluate(x)), slopes.apply_to(self._at), self._tolerances, self._reference,
            self._box, self._max_samples,
        )  # fmt: skip
        smooth._radius = radius
        verdict = smooth._decide_at_point()
        gap = max(slopes.gap, 0.0) / (1.0 + abs(self._at.f))
        if verdict is None or not verdict.certificate.stationary or gap > THRESHOLDS.spare_digit * self._tolerance:
            return None
        # A hidden kink would separate x from one of two points on opposite sides, and the gradients there would differ.
        opposite = slopes.apply_to(self._evaluate(2.0 * self._at.x - smooth._gathered_trials[-1].x))
        neighbors = (opposite, *smooth._gathered_trials)
        if not all(one.finite and one.differentiable and not smooth._combination.find_jumps([one]) for one in neighbors):
            return None
        model, smooth._evaluate = smooth._evaluate, self._evaluate
        smooth._radius = self._radius
        if smooth._longer_step(slopes.rows, model) is not None:
            return None
        kinks = "the kink" if slopes.kinks == 1 else f"the {slopes.kinks} kinks"
        certificate = replace(verdict.certificate, gap=gap, reason=f"stationary, based on {kinks} read from the program")
        return replace(verdict, certificate=certificate, gathered_trials=(), steepness=smooth._steepness)

    def _longer_step(self, kinks: Matrix, model: Callable[[Vector], Trial] | None = None) -> Trial | None:
        """A better point at a distance much larger than the radius."""
        if not self._max_samples:
            return None
        search = LongerStep(
            self._evaluate, self._at, self._combination, self._tolerances, length=self._length, radius=self._radius
        )
        better = search.find(self._gathered_trials, kinks, model)
        self._steepness = search.steepness
        return better

    def _decide_by_gradients(self, hints: Iterable[Vector]) -> Check:
        verdict = self._decide_at_point()
        if verdict is not None:
            return verdict
        self._add_hints(hints)
        for _ in range(self._max_samples):
            verdict = self._decide() if self._combination.residual <= self._tolerance else self._gather()
            if verdict is not None:
                return verdict
        return self._conclude(f"undecided after {self._max_samples} gradients")

    def _decide_at_point(self) -> Check | None:
        """The verdict if the gradients at x and its neighbors suffice; otherwise None, after discarding unreliable gradients.

        Exactly on a kink, automatic differentiation may return a vector that is not a generalized gradient.
        """
        combination, at = self._combination, self._at
        combination.solve()
        jumps: set[int] = set()
        for trial in neighbors(self._evaluate, at, self._radius) if self._max_samples else ():
            self._gathered_trials.append(trial)
            jumps = combination.find_jumps(self._gathered_trials)
            if not jumps:
                break  # the gradients at x agree with those at a neighbor
        if not jumps and combination.residual <= self._tolerance:
            if self._max_samples and not self._gathered_trials:
                return self._conclude("undecided, no gradient near the point is finite", radius=0.0, proven=False)
            neighbor = None if not self._max_samples else self._gathered_trials[-1]
            refutation = (
                None if neighbor is None else find_refutation(self._evaluate, at, neighbor, combination, self._tolerances)
            )
            if refutation is None:
                return self._conclude("stationary", radius=0.0)
            self._gathered_trials.append(refutation)
            jumps = {-1, *range(len(at.c))}
        if jumps:
            combination.discard(jumps)
        for trial in self._gathered_trials:
            combination.add(trial)
        self._has_discarded = bool(jumps)
        return None

    def _add_hints(self, hints: Iterable[Vector]) -> None:
        """Add the gradients at points that are known to matter."""
        hints = tuple(hints)
        if self._has_discarded and hints:
            self._combination.solve()  # `add` uses the signs of the multipliers
        for x in hints:
            trial = self._evaluate(x)
            if trial.finite and trial.differentiable:
                self._gathered_trials.append(trial)
                self._combination.add(trial)
        self._combination.restrict(self._radius)
        self._restart_from_solution()

    def _restart_from_solution(self) -> None:
        self._combination.solve()
        self._residuals = [self._combination.residual]

    def _decide(self) -> Check | None:
        """The gradients prove that a kink is near; decide whether x is on it. None to continue within a smaller radius."""
        combination = self._combination
        if not combination.sign_conflict <= self._tolerance * (1.0 + combination.longest) and combination.use_one_sign():
            self._restart_from_solution()
            return None
        if combination.gap <= THRESHOLDS.spare_digit * self._tolerance and combination.turn <= THRESHOLDS.max_turn:
            return self._conclude("stationary within the radius")
        self._radius *= THRESHOLDS.spare_digit
        if self._radius < self._min_radius:
            return self._conclude("undecided, the function changes too much within the radius")
        combination.restrict(self._radius)
        if combination.samples == 0:
            for trial in neighbors(self._evaluate, self._at, self._radius):
                combination.add(trial)
        if combination.samples == 0:
            return self._conclude("undecided, no gradient within the radius is finite")
        self._restart_from_solution()
        return None

    def _gather(self) -> Check | None:
        """Follow the shortest combination: it leads to a better point or to a missing gradient."""
        combination, stalled = self._combination, THRESHOLDS.stalled_gradients
        progressing = len(self._residuals) <= stalled or not (
            combination.residual > THRESHOLDS.stalled_residual * self._residuals[-stalled]
        )
        if not progressing:
            return self._conclude(f"undecided, {stalled} more gradients did not reduce the residual")
        size = float(np.linalg.norm(combination.vector))
        if not np.isfinite(size):
            return self._conclude("undecided, the gradients are too large to be combined")
        # Large enough that violating the constraints never looks like an improvement, even before all gradients are known.
        largest = float(np.abs(combination.multipliers).max(initial=0.0))
        weight = 2.0 * largest + THRESHOLDS.checked_weight * (1.0 + combination.longest)
        direction = -combination.vector / size
        better, cut = follow(self._evaluate, self._at, direction, size, self._radius, weight)
        if better is not None:
            return self._conclude("not stationary, a step within the radius improves it", better=better)
        if cut is None:
            return self._conclude("undecided, found neither a descent nor a gradient that rules it out")
        self._gathered_trials.append(cut)
        combination.add(cut, rules_out_descent=True)
        combination.solve()
        self._residuals.append(combination.residual)
        return None


def check_violation(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    tolerances: Tolerances,
    reference: Reference | None = None,
    box: Box | None = None,
) -> Check:
    """Decide whether the sum of violations is stationary at an infeasible point: no step nearby makes it smaller."""

    def violation(trial: Trial) -> Trial:
        if not trial.finite:
            return Trial(trial.x, np.inf, np.zeros(0), 0, None)
        gradient = trial.signs() @ trial.jacobian
        return Trial.stored(trial.x, trial.total_violation, np.zeros(0), 0, gradient, np.zeros((0, len(trial.x))))

    return check(lambda x: violation(evaluate(x)), violation(at), tolerances, reference, box)


def unknown(at: Candidate, tolerances: Tolerances, reason: str) -> Certificate:
    """A certificate that proves nothing, for a point whose gradients are not available."""
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    return Certificate(
        stationary=False, residual=np.inf, gap=np.inf, complementarity=np.inf, inequality_violation=at.inequality_violation,
        equality_violation=at.equality_violation, feasible=feasible, radius=0.0, samples=0, descent=False, degenerate=False,
        reason=reason,
    )  # fmt: skip


def _conclude(
    at: Trial,
    combination: Combination,
    radius: float,
    tolerances: Tolerances,
    reason: str,
    better: Trial | None,
    gathered_trials: list[Trial],
    *,
    proven: bool,
) -> Check:
    multipliers = combination.multipliers
    largest = float(np.abs(multipliers).max(initial=0.0))
    complementarity = float((np.abs(multipliers) * np.abs(at.c)).max(initial=0.0))
    complementarity = max(complementarity, combination.bound_complementarity) / (1.0 + abs(at.f))
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    size = 1.0 + combination.longest
    max_part = min(THRESHOLDS.max_multiplier, THRESHOLDS.max_rounded_part / tolerances.noise)
    bounded = combination.longest_part <= max_part * size  # false for NaN
    degenerate = largest > THRESHOLDS.max_multiplier * size or not bounded
    tolerance = tolerances.stationarity
    exact = combination.gap <= THRESHOLDS.spare_digit * tolerance and combination.turn <= THRESHOLDS.max_turn
    cancels = combination.residual <= tolerance and exact
    sign_conflict = not combination.sign_conflict <= tolerances.stationarity * size
    complementary = complementarity <= THRESHOLDS.complementarity_multiple * max(tolerances.inequality, tolerance)
    valid = proven and cancels and not sign_conflict and complementary
    if not proven:
        pass  # the caller has given the reason
    elif cancels and sign_conflict:
        reason = "not certified, the gradients of an equality on the two sides of a kink are used with opposite signs"
    elif cancels and not valid:
        reason = "not certified, constraints with a nonzero multiplier are not at 0 (complementarity)"
    elif valid and degenerate:
        reason = "not certified, the multipliers are unbounded (the constraints are degenerate here)"
    elif valid and not feasible:
        reason = "the point is not feasible"
    certificate = Certificate(
        stationary=valid and feasible and not degenerate,
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
    return Check(certificate, multipliers, better, tuple(gathered_trials), combination.support, combination.bound_multipliers)
