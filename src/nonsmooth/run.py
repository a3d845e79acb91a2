"""The loop: from a start to a status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nonsmooth.bundle import Bundle, ConstraintCuts, default_capacity
from nonsmooth.certificate import Check, check
from nonsmooth.errors import ProblemError, StateError
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory
from nonsmooth.incumbents import Incumbents
from nonsmooth.iteration import Iteration, Stuck
from nonsmooth.model import Model, Step
from nonsmooth.options import Options, Tolerances
from nonsmooth.qp import QPSolver
from nonsmooth.rescue import Rescue
from nonsmooth.result import Status
from nonsmooth.rows import LARGE
from nonsmooth.state import SavedState, State
from nonsmooth.valley import Follower

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

FULL_MEMORY_LIMIT = 2000
LARGE_PROBLEM_PAIRS = 20
PATIENCE = 10
RELAX_TO, RELAX_ABOVE, RELAX_AFTER, MOST_RELAXATIONS = 2.0, 5.0, 5, 10
_INFEASIBLE_ENDINGS = (Status.INFEASIBLE, Status.SEARCH_FAILED_INFEASIBLE)


class Ended(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The run has ended with a status; raised from anywhere below the loop."""

    def __init__(self, status: Status, *, at: Trial | None = None, exception: Exception | None = None) -> None:
        super().__init__(status.value)
        self.status, self.at, self.exception = status, at, exception


class CallbackFailed(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The user's callback raised the exception in `original`."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


@dataclass
class Phases:
    """Seconds spent outside the user's function."""

    directions: float = 0.0
    certificates: float = 0.0
    updates: float = 0.0


class Run:
    """One run of the solver."""

    def __init__(
        self,
        evaluator: Evaluator,
        options: Options,
        *,
        callback: Callable[[State], object] | None = None,
        saved: SavedState | None = None,
    ) -> None:
        self.evaluator, self.options, self._callback = evaluator, options, callback
        self.tolerances = Tolerances.of(options, single=evaluator.variables.single_precision)
        self.solver = QPSolver(options.qp_solver)
        self.incumbents = Incumbents(self.tolerances)
        self.phases = Phases()
        self.last_check: Check | None = None
        self._model: Model | None = None
        self._started = perf_counter()
        try:
            self._earlier = 0.0 if saved is None else float(saved.numbers["seconds"])
            self._base = 0 if saved is None else int(saved.numbers["evaluations"])
        except (TypeError, ValueError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error
        self._iteration = Iteration(self.evaluate, options, self.tolerances, self.solver)
        self._follower = Follower(self.evaluate, self.solver)
        self._rescue = Rescue(self.evaluate, self._iteration, self.incumbents, self.tolerances, options, self.certify)
        self.state = self._initial(saved)

    def _initial(self, saved: SavedState | None) -> State:
        variables, options = self.evaluator.variables, self.options
        try:
            start = self.evaluator(variables.start)
            if np.isfinite(options.prescaling_threshold):
                self.evaluator.scale(start, options.prescaling_threshold)
                start = self.evaluator(variables.start)
            finite = start.finite
            differentiable = start.differentiable if finite else False
        except FunctionFailed as failure:
            raise failure.original from None
        if not finite:
            what = "the objective" if not np.isfinite(start.f) else "a constraint"
            raise ProblemError(f"the value of {what} at x0 is not finite; start at a point where all functions are defined")
        if not differentiable:
            raise ProblemError("a gradient at x0 is not finite; start at a nearby point where all functions are differentiable")
        self._check_graph(start)
        self.incumbents.see(start)
        capacity = options.gradient_samples or default_capacity(variables.size)
        state = State(
            current=start,
            weight=1.0 / options.penalty_parameter,
            hessian=_hessian(start, options),
            bundle=Bundle(variables.size, capacity),
            constraint_cuts=ConstraintCuts(variables.size, capacity),
            incumbents=self.incumbents,
            generator=np.random.default_rng(options.seed),
            form=variables.shaped,
            evaluations=self.evaluator.costs.values,
        )
        if options.initial_pairs is not None or (options.initial_hessian is not None and not options.scale_initial_hessian):
            state.hessian_updates = 1
        if saved is not None:
            saved.fill(state, None if self.evaluator.scales is None else self.evaluator.scales.constraints)
            self._base -= self.evaluator.costs.values  # the evaluation that told the shapes is not part of the run
        return state

    def _check_graph(self, start: Trial) -> None:
        """Refuse functions that depend on x but are cut off from it for automatic differentiation."""
        if self.evaluator.problem.gradients or not self.evaluator.cut_off:
            return
        moved = start.x + 1e-3 * np.maximum(1.0, np.abs(start.x)) * np.random.default_rng(0).standard_normal(len(start.x))
        try:
            other = self.evaluator(moved)
        except FunctionFailed:
            return
        changed = other.f != start.f if "the objective" in self.evaluator.cut_off else not np.array_equal(other.c, start.c)
        if changed:
            raise ProblemError(
                f"{self.evaluator.cut_off} changes with x but has no gradient; return tensors computed from x, without "
                ".item(), .detach(), .numpy() or no_grad, or give gradients yourself with gradients=True"
            )

    @property
    def seconds(self) -> float:
        """Time used, including that of runs this one continues."""
        return self._earlier + perf_counter() - self._started

    def evaluate(self, x: Vector) -> Trial:
        """Evaluate a point; ends the run at a limit, at the target, or when the function raises."""
        self._stop_at_limits()
        trial = self.evaluator(x)
        self.incumbents.see(trial)
        if self.feasible(trial) and self.evaluator.unscaled(trial.f, trial.c)[0] <= self.options.target_value:
            raise Ended(Status.TARGET_REACHED, at=trial)
        return trial

    def _stop_at_limits(self) -> None:
        if self.seconds > self.options.max_seconds:
            raise Ended(Status.TIME_LIMIT)
        if self.evaluations >= self.options.max_evaluations:
            raise Ended(Status.EVALUATION_LIMIT)

    @property
    def evaluations(self) -> int:
        """Points evaluated, including those of runs this one continues."""
        return self._base + self.evaluator.costs.values

    def feasible(self, trial: Trial) -> bool:
        """Whether a point satisfies all constraints to tolerance."""
        return self.incumbents.feasible(trial)

    def go(self) -> Ended:
        """Iterate until something ends the run."""
        try:
            status = self._loop()
            best = self.incumbents.best
            if (
                status is Status.SEARCH_FAILED_FEASIBLE
                and best is not None
                and not np.array_equal(best.x, self.state.current.x)
            ):
                self.state.current = self.evaluate(best.x)  # the last point could not be proven; perhaps the best one can
                status = Status.STATIONARY if self.certify().certificate.stationary else status
            if status is Status.ITERATION_LIMIT and self.feasible(self.state.current):
                status = Status.STATIONARY if self.certify().certificate.stationary else status
            if status in _INFEASIBLE_ENDINGS and self.incumbents.best is not None:
                status = Status.SEARCH_FAILED_FEASIBLE  # feasible points are known, so that is not what can be said
            return Ended(status)
        except Ended as ended:
            return ended
        except CallbackFailed as failure:
            raise failure.original from None
        except FunctionFailed as failure:
            logger.warning("the function raised %r; returning the best point so far", failure.original)
            return Ended(Status.FUNCTION_ERROR, exception=failure.original)
        except KeyboardInterrupt:
            logger.info("interrupted from the keyboard")
            return Ended(Status.USER_STOP)
        except Exception as error:
            logger.exception("the solver failed")
            return Ended(Status.SOLVER_ERROR, exception=error)

    def _loop(self) -> Status:
        state = self.state
        resumed = bool(state.history)
        if not resumed and self.feasible(state.current):
            f, _ = self.evaluator.unscaled(state.current.f, state.current.c)
            if f <= self.options.target_value:
                return Status.TARGET_REACHED
        step = self._propose()
        if not resumed:
            self._record(step, length=0.0, level=0, null_steps=0)
            status = self._tests(step, np.inf)
            if self._tell() and status is None:
                status = Status.USER_STOP
            if status is not None:
                return status
        while state.iteration < self.options.max_iterations:
            before, weight = state.current.penalty(state.weight), state.weight
            if self._follow_valley():
                step = self._propose()
                self._record(step, length=0.0, level=0, null_steps=0)
                status = self._after(step, before, weight)
                if status is not None:
                    return status
                continue
            step = step if self._model is not None else self._propose()
            first = self.options.first_fallback
            moved = self._iteration.advance(state, self._take_model(), step) if first == 0 else Stuck.NOT_TRIED
            if isinstance(moved, Stuck):
                outcome = self._rescue.unstick(state, moved, step)
                if outcome in _INFEASIBLE_ENDINGS and self._rescue.recover(state):
                    outcome = None
                if isinstance(outcome, Status):
                    return outcome
                if outcome is None:  # the penalty weight or the cuts were changed: try again from here
                    step = self._propose()
                    continue
                moved = outcome
            else:
                state.stuck = 0 if moved.trial.penalty(moved.step.weight) < before - 1e-10 * abs(before) else state.stuck
            started = perf_counter()
            self._iteration.accept(state, moved)
            if moved.level in (1, 3, 4) and self.options.first_fallback == 0:
                state.reset_hessian()  # the matrix led nowhere
            self.phases.updates += perf_counter() - started
            state.iteration += 1
            self._relax_weight(moved.step)
            length, level, null_steps = moved.length, moved.level, moved.null_steps
            del moved, step  # they hold vectors of size n
            step = self._propose()
            self._record(step, length=length, level=level, null_steps=null_steps)
            status = self._after(step, before, weight)
            if status is not None:
                return status
        return Status.ITERATION_LIMIT

    def _follow_valley(self) -> bool:
        """Move along a valley, where there is one; False where the next iteration must be an ordinary one."""
        state = self.state
        if self.options.first_fallback or not self._follower.wanted(state, self.evaluations):
            return False
        if len(state.current.x) > LARGE:
            self._model = None  # it would hold gradients that are not kept any more
        found = self._follower.advance(state)
        if found is None:
            self._follower.leave(state, self.evaluations)
            return False
        state.current, state.iteration = found, state.iteration + 1
        found.release()
        return True

    def _after(self, step: Step, before: float, weight: float) -> Status | None:
        """Tests and news after an iteration that began with a value of the penalty function."""
        state = self.state
        changed = before and state.weight == weight
        change = abs(state.current.penalty(state.weight) - before) / abs(before) if changed else np.inf
        status = self._tests(step, change)
        if self._tell() and status is None:
            status = Status.USER_STOP
        if status is None and self.seconds > self.options.max_seconds:
            status = Status.TIME_LIMIT
        return status

    def _certify_unscaled(self, at: Trial) -> Check:
        """The check in the user's units, where the solver works with scaled functions."""
        plain = Evaluator(self.evaluator.problem, self.evaluator.variables)
        plain.costs = self.evaluator.costs

        def evaluate(x: Vector) -> Trial:
            self._stop_at_limits()
            return plain(x)

        found = check(evaluate, evaluate(at.x), self.tolerances)
        better = None if found.better is None else self.evaluate(found.better.x)
        return Check(found.certificate, found.multipliers, better, ())

    def _relax_weight(self, step: Step) -> None:
        """Lower a weight that has long been much larger than the multipliers need: it only shortens the steps."""
        state = self.state
        if not len(state.current.c):
            return
        needed = max(1.0 / self.options.penalty_parameter, RELAX_TO * float(np.abs(step.multipliers).max()))
        state.loose = state.loose + 1 if state.weight > RELAX_ABOVE * needed else 0
        if state.loose >= RELAX_AFTER and state.relaxations < MOST_RELAXATIONS:
            logger.debug("iteration %d: penalty weight %g lowered to %g", state.iteration, state.weight, needed)
            state.weight, state.loose, state.relaxations = needed, 0, state.relaxations + 1

    def _take_model(self) -> Model:
        """The model of the last proposal, handed over: the gradients in it can go as soon as it is replaced."""
        model, self._model = self._model, None
        assert model is not None
        return model

    def _propose(self) -> Step:
        started = perf_counter()
        self._model = self.state.step = None  # before the next ones are made
        self._model, step = self._iteration.propose(self.state)
        self.phases.directions += perf_counter() - started
        self.state.step = step
        if not step.trusted and self.options.stop_at_qp_failure:
            raise Ended(Status.QP_FAILURE)
        return step

    def _record(self, step: Step, *, length: float, level: int, null_steps: int) -> None:
        state = self.state
        state.evaluations, state.seconds = self.evaluations, self.seconds
        state.lowest_penalty_parameter = min(state.lowest_penalty_parameter, state.penalty_parameter)
        f, _ = self.evaluator.unscaled(state.current.f, state.current.c)
        state.record(f, self.stationarity(step), step=length, fallback=level, null_steps=null_steps)

    def _tell(self) -> bool:
        if self._callback is None:
            return False
        try:
            return bool(self._callback(self.state))
        except Exception as error:
            raise CallbackFailed(error) from error

    def stationarity(self, step: Step) -> float:
        """The solver's own measure: length of the combined gradient, or the error of its cuts, whichever is larger."""
        at = self.state.current
        gradient = float(np.linalg.norm(step.gradient)) / (1.0 + float(np.linalg.norm(at.gradient)))
        return max(gradient, step.error / (1.0 + abs(at.f)))

    def _tests(self, step: Step, change: float) -> Status | None:
        state, at = self.state, self.state.current
        if not self.feasible(at):
            return None
        measure = self.stationarity(step)
        price = float(np.abs(step.multipliers) @ np.abs(at.c)) / (1.0 + abs(at.f)) if len(at.c) else 0.0
        promise = -step.decrease / (1.0 + abs(at.f))
        reached = max(measure, price, 10.0 * promise)
        # One more digit usually costs an iteration or two; only if it does not come is the tolerance itself enough.
        state.patience += reached <= self.tolerances.stationarity or change <= 1e-10
        iteration, value = state.last_check
        due = iteration < 0 or state.iteration >= iteration + 5 or measure <= 0.1 * value
        if due and (reached <= 0.1 * self.tolerances.stationarity or state.patience > PATIENCE):
            if self.certify().certificate.stationary:
                return Status.STATIONARY
            state.last_check, state.patience = (state.iteration, measure), 0
        if change <= self.options.relative_decrease_tolerance and self.options.relative_decrease_tolerance > 0:
            self.certify()
            return Status.RELATIVE_DECREASE
        return None

    def certify(self) -> Check:
        """Ask the independent check about the current point."""
        started = perf_counter()
        at = self.state.current
        radius = 2.0 * self.tolerances.radius * max(1.0, float(np.abs(at.x).max()))
        if self.evaluator.scales is not None:
            found = self._certify_unscaled(at)
        else:
            known = self.state.bundle.nearby(at.x, radius)
            found = check(self.evaluate, at, self.tolerances, known=known)
            if found.certificate.stationary and found.certificate.radius > 0 and known:
                found = check(self.evaluate, at, self.tolerances)  # what is claimed must follow from x alone
        self.phases.certificates += perf_counter() - started
        self.last_check = replace(found, better=None, gathered=())  # its points are not needed beyond this iteration
        logger.debug("iteration %d: %s", self.state.iteration, found.certificate)
        return found


def _hessian(start: Trial, options: Options) -> InverseHessian:
    """The matrix to start with; without a better idea, one whose first step is not much longer than x."""
    size = len(start.x)
    reach = 10.0 * max(1.0, float(np.linalg.norm(start.x)))
    gamma = min(1.0, reach / max(float(np.linalg.norm(start.gradient)), 1e-300)) if options.scale_initial_hessian else 1.0
    if options.memory is None and (size <= FULL_MEMORY_LIMIT or options.initial_hessian is not None):
        initial = options.initial_hessian
        if initial is not None and np.shape(initial) != (size, size):
            raise ProblemError(f"initial_hessian has shape {np.shape(initial)}, the problem {size} variables")
        return FullMemory(size, initial, scale=options.scale_initial_hessian, gamma=gamma)
    pairs = options.memory or LARGE_PROBLEM_PAIRS
    scale, fixed = options.scale_initial_hessian, options.fixed_scaling
    memory = LimitedMemory(size, pairs=pairs, scale=scale, fixed_scaling=fixed, gamma=gamma)
    if options.initial_pairs is not None:
        steps, changes, gamma = options.initial_pairs
        if np.ndim(steps) != 2 or np.shape(steps)[1:] != (size,) or np.shape(steps) != np.shape(changes):
            raise ProblemError(
                f"initial_pairs has shapes {np.shape(steps)} and {np.shape(changes)}; both must be pairs × {size}"
            )
        memory.restore({"steps": steps, "changes": changes, "gamma": gamma, "updates": len(steps)})
    return memory
