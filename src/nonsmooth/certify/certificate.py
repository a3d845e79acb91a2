"""An independent check that a point is stationary, in the terms of the original problem.

It knows nothing of the solver's matrix, penalty parameter or line search. Around x, within a small radius, it gathers
gradients of f and of the near-active constraints until it either finds multipliers for which

    Σ w_k ∇f(x_k) + Σ λ_ik ∇ci_i(x_k) + Σ ν_j ∇ce_j(x),    w on a simplex, λ ≥ 0

is short and made of pieces that meet at x (x is stationary to that radius), or a direction in which the problem really
improves (it is not). Which gradient to gather next is not left to chance: the shortest combination found so far is
itself a direction of descent, unless another gradient within the radius prevents that; following it finds either the
descent or that gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.around import find_denial, follow, neighbors
from nonsmooth.certify.better_points import fall_from_a_peak, onto_kinks
from nonsmooth.certify.combination import Combination
from nonsmooth.certify.longer_step import LongerStep
from nonsmooth.certify.visible import Slopes, choose_slopes
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MEMORY = 15_000_000
"""Most numbers in the gradients that are gathered: beyond n = 37,500 there are fewer of them."""


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
    bound_multipliers: Vector | None = None
    """Positive for lower bounds, negative for upper ones; None where there are no bounds."""
    steepness: Vector | None = None
    """How steep the functions are along each variable, where that shows that units are not balanced."""


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
    """Decide whether a point is stationary, by the `reference` for how long and how steep things are. `hints` are points to
    look at before others."""
    return _Inquiry(evaluate, at, tolerances, reference, box, max_samples).answer(hints)


class _Inquiry:
    """One check: the gradients gathered so far, and what they say."""

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
        self._smallest = THRESHOLDS.least_radius * self._radius
        steepness = np.ones(len(at.x)) if reference is None else reference.steepness(at.x)
        self._combination = Combination(at, self._radius, tolerances, steepness, box)
        self._gathered: list[Trial] = []
        most = min(2 * len(at.x) + 20, THRESHOLDS.max_gradients, MEMORY // len(at.x) + 1)
        self._limit = most if max_samples is None else max_samples
        self._residuals: list[float] = []
        self._steepness: Vector | None = None

    def _conclude(self, reason: str, *, better: Trial | None = None, radius: float | None = None, proven: bool = True) -> Check:
        used = self._radius if radius is None else radius
        return _conclude(
            self._at, self._combination, used, self._tolerances, reason, better, self._gathered, proven=proven
        )  # fmt: skip

    def answer(self, hints: Iterable[Vector]) -> Check:
        """What visible kinks, or the gradients at x and around it, prove; a proof must stand where longer steps are tried."""
        closer = onto_kinks(self._evaluate, self._at, 2.0 * self._radius) if self._limit else None
        if closer is not None:
            self._combination.solve()
            return self._conclude("not stationary, a kink beside it is better", better=closer, radius=0.0, proven=False)
        visible = self._by_visible_kinks() if self._limit else None
        if visible is not None:
            return visible
        found = self._from_gradients(hints)
        stationary = found.certificate.stationary
        peak = fall_from_a_peak(self._evaluate, self._at, self._combination, self._gathered) if stationary else None
        if peak is not None:
            return self._conclude("not stationary, a point within the radius is better", better=peak, proven=False)
        better = self._longer_step(self._combination.kinks) if stationary else None
        if better is None:
            return replace(found, steepness=self._steepness)
        reason = "not stationary, a longer step along what is left of the gradients improves it"
        return self._conclude(reason, better=better, proven=False)

    def _by_visible_kinks(self) -> Check | None:
        """A proof from the kinks of f that can be seen; None where they prove nothing."""
        slopes = choose_slopes(self._at, self._radius, self._tolerances, self._box)
        if slopes is None:
            return None
        # With these slopes what is curved may change more within the radius than the little that is left of the gradients.
        radii = (self._radius * THRESHOLDS.spare_digit**number for number in range(THRESHOLDS.approaches))
        return next((found for radius in radii if (found := self._by_slopes(slopes, radius)) is not None), None)

    def _by_slopes(self, slopes: Slopes, radius: float) -> Check | None:
        """A proof from a choice of slopes, with which the function is smooth within a radius."""
        smooth = _Inquiry(
            lambda x: slopes.applied(self._evaluate(x)), slopes.applied(self._at), self._tolerances, self._reference, self._box,
            self._limit,
        )  # fmt: skip
        smooth._radius = radius
        found = smooth._from_the_point_itself()
        gap = max(slopes.gap, 0.0) / (1.0 + abs(self._at.f))
        if found is None or not found.certificate.stationary or gap > THRESHOLDS.spare_digit * self._tolerance:
            return None
        # A kink that hides passes between x and one of two points on opposite sides, with other gradients there.
        opposite = slopes.applied(self._evaluate(2.0 * self._at.x - smooth._gathered[-1].x))
        around = (opposite, *smooth._gathered)
        if not all(one.finite and one.differentiable and not smooth._combination.unlike([one]) for one in around):
            return None
        model, smooth._evaluate = smooth._evaluate, self._evaluate
        smooth._radius = self._radius
        if smooth._longer_step(slopes.rows, model) is not None:
            return None
        many = "the kink that is" if slopes.kinks == 1 else f"the {slopes.kinks} kinks that are"
        certificate = replace(found.certificate, gap=gap, reason=f"stationary, by {many} seen in the program")
        return replace(found, certificate=certificate, gathered=(), steepness=smooth._steepness)

    def _longer_step(self, kinks: Matrix, model: Callable[[Vector], Trial] | None = None) -> Trial | None:
        """A better point much farther away than the radius."""
        if not self._limit:
            return None
        search = LongerStep(
            self._evaluate, self._at, self._combination, self._tolerances, length=self._length, radius=self._radius
        )
        better = search.find(self._gathered, kinks, model)
        self._steepness = search.steepness
        return better

    def _from_gradients(self, hints: Iterable[Vector]) -> Check:
        decided = self._from_the_point_itself()
        if decided is not None:
            return decided
        self._add(hints)
        for _ in range(self._limit):
            decided = self._decide() if self._combination.residual <= self._tolerance else self._gather()
            if decided is not None:
                return decided
        return self._conclude(f"undecided after {self._limit} gradients")

    def _from_the_point_itself(self) -> Check | None:
        """The answer where the gradients at x, and beside it, suffice; else those that cannot be believed are dropped.

        Exactly on a kink, automatic differentiation returns some value that need not be a gradient of anything.
        """
        combination, at = self._combination, self._at
        combination.solve()
        wrong: set[int] = set()
        for trial in neighbors(self._evaluate, at, self._radius) if self._limit else ():
            self._gathered.append(trial)
            wrong = combination.unlike(self._gathered)
            if not wrong:
                break  # the gradients at x are like those beside it
        if not wrong and combination.residual <= self._tolerance:
            if self._limit and not self._gathered:
                return self._conclude("undecided, no gradient could be had beside the point", radius=0.0, proven=False)
            beside = None if not self._limit else self._gathered[-1]
            nearer = None if beside is None else find_denial(self._evaluate, at, beside, combination, self._tolerances)
            if nearer is None:
                return self._conclude("stationary", radius=0.0)
            self._gathered.append(nearer)
            wrong = {-1, *range(len(at.c))}
        if wrong:
            combination.distrust(wrong)
        for trial in self._gathered:
            combination.add(trial)
        self._distrusted = bool(wrong)
        return None

    def _add(self, hints: Iterable[Vector]) -> None:
        """Add the gradients at points that are known to matter."""
        hints = tuple(hints)
        if self._distrusted and hints:
            self._combination.solve()  # what they add to depends on its signs
        for x in hints:
            trial = self._evaluate(x)
            if trial.finite and trial.differentiable:
                self._gathered.append(trial)
                self._combination.add(trial)
        self._combination.restrict(self._radius)
        self._solve_anew()

    def _solve_anew(self) -> None:
        self._combination.solve()
        self._residuals = [self._combination.residual]

    def _decide(self) -> Check | None:
        """The gradients prove that a kink is near; is x on it? None to go on within a smaller radius."""
        combination = self._combination
        if not combination.torn <= self._tolerance * (1.0 + combination.longest) and combination.use_one_sign():
            self._solve_anew()
            return None
        if combination.gap <= THRESHOLDS.spare_digit * self._tolerance and combination.turn <= THRESHOLDS.max_turn:
            return self._conclude("stationary within the radius")
        self._radius *= THRESHOLDS.spare_digit
        if self._radius < self._smallest:
            return self._conclude("undecided, the function changes too much within the radius")
        combination.restrict(self._radius)
        if combination.samples == 0:
            for trial in neighbors(self._evaluate, self._at, self._radius):
                combination.add(trial)
        if combination.samples == 0:
            return self._conclude("undecided, no gradient could be had within the radius")
        self._solve_anew()
        return None

    def _gather(self) -> Check | None:
        """Follow the shortest combination: it leads to a better point, or to a gradient that is missing."""
        combination, stalled = self._combination, THRESHOLDS.stalled_gradients
        fallen = len(self._residuals) <= stalled or not (
            combination.residual > THRESHOLDS.stalled_residual * self._residuals[-stalled]
        )
        if not fallen:
            return self._conclude(f"undecided, {stalled} more gradients did not bring the residual down")
        size = float(np.linalg.norm(combination.vector))
        if not np.isfinite(size):
            return self._conclude("undecided, the gradients are too large to be combined")
        # Large enough that leaving the constraints never looks like an improvement, also before all gradients are known.
        largest = float(np.abs(combination.multipliers).max(initial=0.0))
        weight = 2.0 * largest + THRESHOLDS.checked_weight * (1.0 + combination.longest)
        direction = -combination.vector / size
        better, informative = follow(self._evaluate, self._at, direction, size, self._radius, weight)
        if better is not None:
            return self._conclude("not stationary, a step within the radius improves it", better=better)
        if informative is None:
            return self._conclude("undecided, neither descent nor a gradient that prevents it was found")
        self._gathered.append(informative)
        combination.add(informative, preventing=True)
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
    """A certificate that certifies nothing, for a point at which no gradient could be had."""
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
    gathered: list[Trial],
    *,
    proven: bool,
) -> Check:
    multipliers = combination.multipliers
    largest = float(np.abs(multipliers).max(initial=0.0))
    complementarity = float((np.abs(multipliers) * np.abs(at.c)).max(initial=0.0))
    complementarity = max(complementarity, combination.bound_complementarity) / (1.0 + abs(at.f))
    feasible = at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality
    size = 1.0 + combination.longest
    most = min(THRESHOLDS.max_multiplier, THRESHOLDS.max_rounded_part / tolerances.noise)
    bounded = combination.strain <= most * size  # not so where it is not a number
    degenerate = largest > THRESHOLDS.max_multiplier * size or not bounded
    tolerance = tolerances.stationarity
    exact = combination.gap <= THRESHOLDS.spare_digit * tolerance and combination.turn <= THRESHOLDS.max_turn
    cancels = combination.residual <= tolerance and exact
    torn = not combination.torn <= tolerances.stationarity * size
    complementary = complementarity <= THRESHOLDS.complementarity_multiple * max(tolerances.inequality, tolerance)
    holds = proven and cancels and not torn and complementary
    if not proven:
        pass  # the reason is known
    elif cancels and torn:
        reason = "not certified, the gradients of an equality on the two sides of a kink are used with opposite signs"
    elif cancels and not holds:
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
    return Check(certificate, multipliers, better, tuple(gathered), combination.carrying, combination.bound_multipliers)
