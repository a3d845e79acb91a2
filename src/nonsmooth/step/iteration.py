"""One iteration: from a prepared step to the next iterate, gathering gradients on the way where there are kinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.norm import norm
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory, Outcome, curvature_pair, limit_growth
from nonsmooth.kinks.bundle import ConstraintRows, Cuts, own_cut
from nonsmooth.kinks.pieces import JUMP, MANY_VARIABLES, crossed, jumped, keep_gradients
from nonsmooth.loop.state import State
from nonsmooth.options import Options, Tolerances
from nonsmooth.qp import QPSolver
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.step.box_model import BoxModel
from nonsmooth.step.correction import Bending
from nonsmooth.step.line_search import Ending, search
from nonsmooth.step.model import Model, ModelLike, Step, steer

Vector = NDArray[np.float64]

SERIOUS = 0.1
"""Fraction of the predicted decrease that a full step must reach to be taken while gradients can still be gathered."""
CALM = 3
"""After so many iterations without a new gradient gathered, only the gradient at x itself is used again."""
LARGEST_WEIGHT = 1e12
SMOOTH_SHARE = 0.35
"""Of the errors that the linearizations at x and at a failed trial point have at each other's point, the share from which on
the one at the trial point is as wrong as that of a smooth function may be: for a quadratic it is one half, beyond a kink next
to x it is nothing."""
NEARLY, ALIKE = 0.2, 30.0
"""How far the linearisation at a far trial point may lie from the objective at x, relative to its rise along the step, and how
many times as long its gradient may be."""
ABOVE = 1.5
"""The penalty weight where rows of one constraint need a larger one together, by what they need."""
ROUNDINGS = 100.0
"""Values are sums: what rounding makes of them is so many times that of one number."""
REFUTED_FROM = 2.0
"""A cut that lies above f at a new point by more than so many times the change of f is dropped."""
MOST_BLIND = 3
"""So many steps that the values cannot judge may leave the gradients as they are, until no more are made."""
MOST_UNLEARNT = 3
"""So many steps in a row may teach nothing, because the gradient of a constraint jumped."""
GROWTH = 1e-2
"""The smallest s·y, as a fraction of y·H·y, that the matrix learns unchanged."""


class Stuck(Enum):
    """Why an iteration did not move."""

    NO_DECREASE = "the model predicts no decrease"
    SEARCH_FAILED = "the line search failed"
    NOT_TRIED = "the options ask for another kind of direction"
    UNBOUNDED = "the objective falls without end along a feasible ray"


class Move(NamedTuple):
    """An accepted step."""

    trial: Trial
    step: Step
    length: float
    """t: the step was t times the direction."""
    hessian_step: Vector | None
    """B·s where it is known."""
    level: int
    evaluations: int
    null_steps: int
    kinked: bool = False
    """Whether a gradient was gathered on the way that was not just another piece of a constraint."""


class Gathered(Enum):
    """What a step that failed has shown."""

    GRADIENT = "a gradient: x is near a kink, and all that are kept are used from now on"
    PIECE = "a piece of a constraint that has kinks; the objective may be smooth"


class Iteration:
    """Carries out iterations on a state."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        options: Options,
        tolerances: Tolerances,
        solver: QPSolver,
        clock: Clock | None = None,
        box: Box | None = None,
    ) -> None:
        self._box = box
        self._evaluate, self._options, self._tolerances, self._solver = evaluate, options, tolerances, solver
        clock = clock or Clock()
        self._directing = clock.phase(Phase.DIRECTIONS)
        self._bending = Bending(evaluate, options, clock)
        self.ray: Step | None = None
        """The step along which the objective falls without end: not always the first of its iteration."""

    def model(self, state: State, *, everything: bool | None = None) -> ModelLike:
        """The model at the current point; all cuts are used near kinks only."""
        at = state.current
        full = state.kinked if everything is None else everything
        cuts = state.bundle.cuts(at) if full and len(state.bundle) else own_cut(at)
        extra = state.constraint_cuts.at(at) if len(state.constraint_cuts) else None
        return self._model_of(at, cuts, extra, self._metric(state), state.multipliers)

    def _model_of(
        self, at: Trial, cuts: Cuts, extra: ConstraintRows | None, metric: InverseHessian, multipliers: Vector | None = None
    ) -> ModelLike:
        if self._box is None:
            return Model(at, cuts, extra, metric, self._solver, multipliers=multipliers)
        return BoxModel(at, cuts, extra, metric, self._solver, self._box, multipliers=multipliers)

    def _metric(self, state: State) -> InverseHessian:
        threshold = self._options.regularization_threshold
        if math.isfinite(threshold) and isinstance(state.hessian, FullMemory):
            return state.hessian.regularized(threshold, lower_large=self._options.regularize_large_eigenvalues)
        return state.hessian

    def propose(self, state: State, weight: float | None = None, *, everything: bool | None = None) -> tuple[ModelLike, Step]:
        """The step at the current point, for its own penalty weight or for another."""
        if weight is None:
            state.remember_hints()
        with self._directing:
            model = self.model(state, everything=everything)
            return model, self._steer(state, model, state.weight if weight is None else weight)

    def _steer(self, state: State, model: ModelLike, weight: float) -> Step:
        step = steer(model, state.current, weight, self._options)
        own = len(state.current.c)
        needed = float(np.abs(step.multipliers).max(initial=0.0))
        together = needed > step.weight and state.constraint_cuts.carried(step.rows[own:])
        if together and float(np.abs(step.rows).max()) < step.weight:
            # Rows of one constraint are bounded each for itself, so that the model can do what the penalty does not pay for.
            step = model.step(min(ABOVE * needed, LARGEST_WEIGHT))
        if len(step.weights) == len(state.bundle) + 1:
            state.bundle.weights = step.weights[1:]
        state.multipliers = step.rows[:own]
        if len(step.rows) == own + len(state.constraint_cuts):
            state.constraint_cuts.weights = step.rows[own:]
        return step

    def advance(self, state: State, model: ModelLike, step: Step) -> Move | Stuck:
        """Follow the model's step to a new iterate, or say why that is not possible."""
        options, at = self._options, state.current
        null_steps = retries = evaluations = 0
        kinked = False
        limit = options.first_penalty_retries if state.iteration == 0 else options.penalty_retries
        while True:
            value = at.penalty(step.weight)
            if not step.decrease < -self._tolerances.noise * max(1e-3, abs(value)):
                return self._blindly(state, step, value) or Stuck.NO_DECREASE
            direction = step.direction * (1.0 / norm(step.direction)) if options.normalize_direction else step.direction
            gather = null_steps < options.max_null_steps
            pieces = state.constraint_cuts.carried(step.rows[len(at.c) :])
            first_try = not (null_steps or retries or pieces)
            bent = self._bending.foreseen(state, model, step, value) if first_try else None
            if bent is not None:
                return self._moved(bent[0], bent[1], 1.0, 1, 0)
            first = self._evaluate(at.x + options.initial_step * direction)
            evaluations += 1
            needed = SERIOUS if gather else options.sufficient_decrease
            if not first.penalty(step.weight) < value + needed * options.initial_step * step.decrease and first.finite:
                blind = self._blindly(state, step, value, first)
                if blind is not None:
                    return blind
                later = null_steps > 0
                bent = self._bending.corrected(state, model, step, first, value, later=later, pieces=pieces)
                if bent is not None:
                    return self._moved(bent[0], bent[1], 1.0, evaluations + 1, null_steps, kinked)
                gathered = self._gather(state, model, step, first) if gather else None
                if gathered is not None:
                    null_steps, kinked = null_steps + 1, kinked or gathered is Gathered.GRADIENT
                    model, step = self.propose(state, step.weight, everything=kinked or state.kinked)
                    continue
            kink = partial(self._kinked, at, step) if gather and not options.normalize_direction else None
            found = search(
                self._evaluate, at, direction, step.decrease, step.weight, options,
                step_tolerance=self._tolerances.step, first=first, kink=kink, longest=self._longest(at, direction),
            )  # fmt: skip
            evaluations += found.evaluations - 1
            if found.ending is Ending.ACCEPTED:
                assert found.trial is not None
                if found.trial.differentiable:
                    return self._moved(found.trial, step, found.step, evaluations, null_steps, kinked)
                return Stuck.SEARCH_FAILED
            if found.ending is Ending.NEVER_BRACKETED:
                assert found.trial is not None
                if len(at.c) == 0 or found.trial.violation <= max(at.violation, self._tolerances.inequality):
                    self.ray = step
                    return Stuck.UNBOUNDED
                if retries >= limit or step.weight >= LARGEST_WEIGHT:
                    return Stuck.SEARCH_FAILED
                retries += 1
                with self._directing:
                    step = self._steer(state, model, step.weight / options.penalty_retry_factor)
                continue
            if not gather or found.trial is None or not found.trial.finite or not found.trial.differentiable:
                return Stuck.SEARCH_FAILED
            state.bundle.add(found.trial)
            if found.ending is not Ending.KINK:
                # Every point ahead is worse, however near: the gradients there belong to the other side of a kink.
                keep_gradients(state.constraint_cuts, at, found.trial, range(len(at.c)))
            null_steps, kinked = null_steps + 1, True
            model, step = self.propose(state, step.weight, everything=True)

    def _blindly(self, state: State, step: Step, value: float, trial: Trial | None = None) -> Move | None:
        """The full step, where its promise is lost in the rounding of the values: gradients can still tell whether it helps.

        Values change with the square of the way that is left: with them alone, half of the digits of x are out of reach.
        """
        at, (idle, shortest), before = state.current, state.blind, norm(step.gradient)
        rounding = ROUNDINGS * self._tolerances.noise * max(1.0, abs(value))
        violated = max(at.inequality_violation / self._tolerances.inequality, at.equality_violation / self._tolerances.equality)
        if abs(step.decrease) > rounding or violated > 1 or step.several:
            return None
        if idle >= MOST_BLIND or self._options.initial_step != 1.0 or self._options.normalize_direction:
            return None
        if state.history and state.stationarity <= 0.1 * self._tolerances.stationarity:
            return None  # nothing is left to be gained
        trial = self._evaluate(at.x + step.direction) if trial is None else trial
        if not trial.penalty(step.weight) <= value + rounding or not trial.differentiable:
            return None
        if len(step.rows) > len(at.c):  # the sum that vanishes is one of gradients of several pieces
            pieces = state.constraint_cuts.at(trial)
            there = self._model_of(trial, own_cut(trial), pieces, self._metric(state), step.multipliers)
            after = norm(there.step(step.weight).gradient)
        else:
            left = trial.gradient + step.multipliers @ trial.jacobian
            after = norm(left if self._box is None else self._box.projected_gradient(trial.x, left))
        state.blind = (0, after) if after <= 0.9 * min(before, shortest) else (idle + 1, min(before, shortest))
        return self._moved(trial, step, 1.0, 1, 0) if after <= 2.0 * before else None

    def _moved(self, trial: Trial, step: Step, length: float, evaluations: int, null_steps: int, kinked: bool = False) -> Move:
        scale = 1.0 / norm(step.direction) if self._options.normalize_direction else 1.0
        known = -length * scale * step.gradient if step.curvature_known else None
        return Move(trial, step, length * scale, known, 0, evaluations, null_steps, kinked)

    def _longest(self, at: Trial, direction: Vector) -> float:
        """The longest step that stays in the box; a full one does, but for rounding."""
        return math.inf if self._box is None else max(1.0, self._box.longest_step(at.x, direction))

    def _gather(self, state: State, model: ModelLike, step: Step, trial: Trial) -> Gathered | None:
        """Keep the gradients at a full step that failed, if they tell the model something new."""
        at = state.current
        excess = trial.f - at.f - step.objective_change
        bending = step.weight * (trial.total_violation - step.predicted_violation)
        if state.hessian_updates == 0:
            return None
        if not state.kinked and excess > 0.5 * (excess + bending) and trial.differentiable:
            slope = float(trial.gradient @ step.direction)
            if at.f - trial.f + slope >= SMOOTH_SHARE * (slope - step.objective_change):
                return None  # the function may as well be smooth and curved, which a line search and the matrix deal with
        if trial.f - at.f > -100.0 * step.decrease:  # it was too long by far; a gradient from there may say nothing about here
            if not self._kinked(at, step, trial, 1.0):
                return None
            state.bundle.add(trial)
            return Gathered.GRADIENT
        if excess > 0.5 * (excess + bending) and trial.differentiable:
            slope = float(trial.gradient @ step.direction)
            error = max(abs(at.f - trial.f + slope), 1e-3 * float(step.direction @ step.direction))
            if slope - error >= 0.25 * step.objective_change:
                state.bundle.add(trial)
                return Gathered.GRADIENT
        if bending > 0.5 * (excess + bending) and trial.differentiable:
            actual = np.concatenate([np.abs(trial.c[: at.equalities]), np.maximum(trial.c[at.equalities :], 0.0)])
            above = actual - model.violations(step.direction)
            if len(at.x) > MANY_VARIABLES:
                above[: at.equalities] = 0.0
            above[: at.equalities][crossed(at.c[: at.equalities], trial.c[: at.equalities])] = 0.0  # that is no kink
            rising = np.nonzero((above > 0.05 * float(above.sum())) & (above > 1e-14))[0]
            kept = keep_gradients(state.constraint_cuts, at, trial, rising, apart=JUMP)
            return None if not kept else Gathered.PIECE if len(state.constraint_cuts.kinked) else Gathered.GRADIENT
        return None

    @staticmethod
    def _kinked(at: Trial, step: Step, trial: Trial, length: float) -> bool:
        """Whether the objective rises towards a trial point at some length of the step, and did so nearly from x on."""
        excess = trial.f - at.f - length * step.objective_change
        predicted = at.total_violation + length * (step.predicted_violation - at.total_violation)
        if not excess > step.weight * (trial.total_violation - predicted) or not (trial.finite and trial.differentiable):
            return False
        if not np.abs(trial.gradient).max() <= ALIKE * np.abs(at.gradient).max():
            return False
        slope = float(trial.gradient @ step.direction)
        error = max(abs(at.f - trial.f + length * slope), 1e-3 * length * length * float(step.direction @ step.direction))
        return error <= NEARLY * slope

    def fall_back(self, state: State, level: int, generator: np.random.Generator) -> Move | None:
        """Try a simpler direction: 1 model with the identity, 2 quasi-Newton, 3 steepest descent, 4 random ones."""
        options, at, weight = self._options, state.current, state.weight
        identity = LimitedMemory(len(at.x), pairs=1) if level == 1 else None
        attempts = options.random_attempts if level == 4 else 1
        for _ in range(attempts):
            gradient = at.penalty_gradient(weight)
            if identity is not None:
                with self._directing:
                    step = steer(self._model_of(at, own_cut(at), None, identity), at, weight, options)
                direction, slope, weight = step.direction, step.decrease, step.weight
            else:
                if level == 4:
                    direction = generator.standard_normal(len(at.x))
                    direction *= -np.sign(gradient @ direction) * max(1e-8, float(np.linalg.norm(at.x))) / len(at.x)
                else:
                    direction = -state.hessian.apply(gradient) if level == 2 else -gradient
                direction = direction if self._box is None else self._box.inward(at.x, direction)
                slope = float(gradient @ direction)
                step = self.plain_step(at, direction, gradient, slope, weight)
            if not math.isfinite(slope) or (slope >= 0 and options.max_nondescent_evaluations == 0):
                continue
            most = options.max_nondescent_evaluations if slope >= 0 else None
            found = search(
                self._evaluate, at, direction, min(slope, -1e-300), weight, options,
                step_tolerance=self._tolerances.step, limit=most, longest=self._longest(at, direction),
            )  # fmt: skip
            if found.ending is Ending.ACCEPTED and found.trial is not None and found.trial.differentiable:
                known = -found.step * gradient if level == 2 and self._box is None else None
                return Move(found.trial, step, found.step, known, level, found.evaluations, 0)
            last = found.trial
            if options.accept_failed_search and level == 3 and last is not None and last.finite and last.differentiable:
                return Move(last, step, found.step, None, level, found.evaluations, 0)
        return None

    @staticmethod
    def plain_step(at: Trial, direction: Vector, gradient: Vector, slope: float, weight: float) -> Step:
        """A direction that no model stands behind."""
        return Step(
            direction=direction, gradient=gradient, objective_gradient=at.gradient, weights=np.ones(1),
            multipliers=weight * at.signs(), rows=np.zeros(0), weight=weight, objective_change=float(at.gradient @ direction),
            predicted_violation=at.total_violation, decrease=slope, error=0.0, trusted=True,
        )  # fmt: skip

    def accept(self, state: State, move: Move) -> Outcome:
        """Make the new point the current one and let the matrix learn from the step."""
        before, after, step = state.current, move.trial, move.step
        if move.kinked:
            state.kinked, state.calm = True, 0
        elif state.kinked:
            state.calm += 1
            state.kinked = state.calm < CALM
        state.bundle.add(before, float(step.weights[0]) if move.level == 0 else 0.0)
        after.share_rows(before)
        cuts = state.constraint_cuts
        cuts.notice(before)
        if len(cuts):
            keep_gradients(cuts, after, before, cuts.kinked)
        # Where the objective has kinks too, a matrix that learns too little is worse than one that learns jumps.
        skipped = len(cuts) > 0 and not step.several and state.unlearnt < MOST_UNLEARNT
        if skipped and jumped(cuts, step.multipliers, before, after):
            outcome, state.unlearnt = Outcome.KINKED, state.unlearnt + 1
            state.hessian.forget_products()  # there is no update that would
        else:
            outcome, state.unlearnt = self._learn(state, move), 0
        if state.kinked:
            change = REFUTED_FROM * abs(after.f - before.f)
            state.bundle.drop_refuted(after, max(change, ROUNDINGS * self._tolerances.noise * max(1.0, abs(after.f))))
        state.current, state.weight = after, step.weight
        before.release()
        after.release()
        return outcome

    def _objective_gradients(self, state: State, move: Move) -> tuple[Vector, Vector]:
        """Gradients of the objective before and after a step, between which no kink lies."""
        after, step = move.trial, move.step
        if move.level != 0 or not step.several:
            return step.objective_gradient, after.gradient
        # Near a kink the gradients themselves jump. The shortest combinations on either side do not.
        beyond = self._model_of(after, state.bundle.cuts(after), None, self._metric(state), step.multipliers)
        return step.objective_gradient, beyond.step(step.weight).objective_gradient

    def _learn(self, state: State, move: Move) -> Outcome:
        """Let the matrix learn how the gradient of the Lagrangian function has changed."""
        before, after, multipliers = state.current, move.trial, move.step.multipliers
        old, new = self._objective_gradients(state, move)
        change = new + multipliers @ after.jacobian - (old + multipliers @ before.jacobian)
        if self._box is not None and move.hessian_step is not None:
            # Of variables that stay on a bound nothing is learnt: their slopes change with those of the others.
            held = (after.x == before.x) & ((after.x == self._box.lower) | (after.x == self._box.upper))
            change = np.where(held, move.hessian_step, change)
        pair = curvature_pair(after.x - before.x, change, move.hessian_step, self._options.damping)
        if state.hessian_updates:
            pair = limit_growth(pair, state.hessian.apply(pair.y), GROWTH)
        outcome = state.hessian.update(pair)
        state.count_update(outcome, damped=pair.damped)
        return outcome
