"""The loop: from a start to a status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.norm import norm
from nonsmooth.arrays.rows import LARGE
from nonsmooth.certify.certificate import Check
from nonsmooth.compile import CompiledMismatch
from nonsmooth.errors import ProblemError, StateError
from nonsmooth.evaluate import Evaluator, FunctionFailed, SkippedErrors, Trial
from nonsmooth.evaluate.evaluator import natural_scales
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.kinks.bundle import Bundle, ConstraintCuts, default_capacity
from nonsmooth.loop.ending import CallbackFailed, Ended
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.recovery import Rescue
from nonsmooth.loop.rollback import Trust
from nonsmooth.loop.start import check_graph, far_violation, initial_hessian
from nonsmooth.loop.state import COLUMNS, SavedState, State
from nonsmooth.loop.stationarity import Verdicts
from nonsmooth.options import Options, Tolerances
from nonsmooth.qp import QPSolver
from nonsmooth.report.clock import Phase
from nonsmooth.result import Status
from nonsmooth.step.iteration import Iteration, Stuck
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.step.valley import Follower

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

PATIENCE = 10
RELAX_TO, RELAX_ABOVE, RELAX_AFTER, MOST_RELAXATIONS = 2.0, 5.0, 5, 10
_PERHAPS_UNBOUNDED = (Status.SEARCH_FAILED_FEASIBLE, Status.ITERATION_LIMIT)
_INFEASIBLE_ENDINGS = (Status.INFEASIBLE, Status.SEARCH_FAILED_INFEASIBLE)


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
        self.clock = clock = evaluator.clock
        self._searching, self._learning = clock.phase(Phase.SEARCH), clock.phase(Phase.HESSIAN)
        self._testing, self._telling = clock.phase(Phase.STATIONARITY), clock.phase(Phase.CALLBACKS)
        self.solver = QPSolver(options.qp_solver, clock)
        self.incumbents = Incumbents(self.tolerances)
        self.last_check: Check | None = None
        self._model: ModelLike | None = None
        self._started = perf_counter()
        try:
            self.earlier = 0.0 if saved is None else float(saved.numbers["seconds"])
            self._base = 0 if saved is None else int(saved.numbers["evaluations"])
        except (TypeError, ValueError, OverflowError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error
        self._follower = Follower(self.evaluate, self.solver, clock)
        self.state = self._initial(saved)
        self._iteration = Iteration(self.evaluate, options, self.tolerances, self.solver, clock, evaluator.box)
        self._rescue = Rescue(
            self.evaluate, self._iteration, self.incumbents, self.tolerances, self.own_reference, options, self.certify,
            clock, evaluator.box,
        )  # fmt: skip
        if options.on_error == "skip":  # from now on: at the start, an exception is the user's to see
            evaluator.skipped = SkippedErrors()
        self._trust = Trust(evaluator, self.state, options)
        self._verdicts = Verdicts(evaluator, self.tolerances, self.reference, self._trust, self.evaluate, self._stop_at_limits)

    def _initial(self, saved: SavedState | None) -> State:
        variables, options = self.evaluator.variables, self.options
        try:
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
        check_graph(self.evaluator, start)
        user_start, natural = start, natural_scales(start)
        if saved is not None:
            if saved.scales is not None:
                saved.check_sizes(start)
                start = self.evaluator.use_scales(saved.scales, start)
            natural = self.evaluator.scales if options.scales_automatically else natural
        elif options.scales_automatically:
            start = start if natural is None else self.evaluator.use_scales(natural, start)
        elif np.isfinite(options.prescaling_threshold):
            start = self.evaluator.choose_scales(start, threshold=options.prescaling_threshold)
        units = None if natural is None else natural.variables
        self.reference = Reference(natural, user_start.x if units is None else user_start.x / units)
        self.incumbents.see(start)
        capacity = options.gradient_samples or default_capacity(variables.size)
        state = State(
            current=start,
            weight=1.0 / options.penalty_parameter,
            hessian=initial_hessian(start, options, variables.device),
            bundle=Bundle(variables.size, capacity),
            constraint_cuts=ConstraintCuts(variables.size, capacity),
            incumbents=self.incumbents,
            generator=np.random.default_rng(options.seed),
            form=variables.shaped,
            scales=self.evaluator.scales,
            evaluations=self.evaluator.costs.values,
            far=far_violation(start),
        )
        if options.initial_pairs is not None or (options.initial_hessian is not None and not options.scale_initial_hessian):
            state.hessian_updates = 1
        if saved is not None:
            saved.fill(state, None if self.evaluator.scales is None else self.evaluator.scales.constraints)
            self._base -= self.evaluator.costs.values  # the evaluation that told the shapes is not part of the run
        return state

    @property
    def own_reference(self) -> Reference | None:
        """The reference where it is in the units of the run."""
        return self.reference if self.reference.scales is self.evaluator.scales else None

    @property
    def seconds(self) -> float:
        """Time used, including that of runs this one continues."""
        return self.earlier + perf_counter() - self._started

    @property
    def _late(self) -> bool:
        return self.options.max_seconds < np.inf and self.seconds > self.options.max_seconds

    def evaluate(self, x: Vector) -> Trial:
        """Evaluate a point; ends the run at a limit, at the target, or when the function raises."""
        self._stop_at_limits()
        trial = self.evaluator(x)
        self.incumbents.see(trial)
        if self._reached(trial):
            raise Ended(Status.TARGET_REACHED, at=trial)
        return trial

    def _reached(self, trial: Trial) -> bool:
        """Whether a point is feasible and has the objective asked for."""
        target = self.options.target_value
        if target == -np.inf or not self.feasible(trial):
            return False
        return self.evaluator.unscaled(trial.f, trial.c)[0] <= target

    def _stop_at_limits(self) -> None:
        if self._late:
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
        return self._trust.through(self._until_something_ends_it)

    def _until_something_ends_it(self) -> Ended:
        depth = len(self.clock.open)
        try:
            status = self._loop()
            best = self.incumbents.best
            if (
                status is Status.SEARCH_FAILED_FEASIBLE
                and best is not None
                and not np.array_equal(best.x, self.state.current.x)
            ):
                self.state.current = self.evaluate(best.x)  # the last point could not be proven; perhaps the best one can
                status = Status.STATIONARY if self.certify(last=True).certificate.stationary else status
            if status is Status.ITERATION_LIMIT and self.feasible(self.state.current):
                status = Status.STATIONARY if self.certify(last=True).certificate.stationary else status
            if status in _INFEASIBLE_ENDINGS and best is not None:
                status = Status.SEARCH_FAILED_FEASIBLE  # feasible points are known, so that is not what can be said
            if status in _PERHAPS_UNBOUNDED and best is not None:
                f, _ = self.evaluator.unscaled(best.f, best.c)
                if self._rescue.falls_without_end(self.state, self.evaluator.variables.start, f):
                    status = Status.UNBOUNDED
            return Ended(status)
        except Ended as ended:
            return ended
        except CompiledMismatch:
            raise
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
        finally:
            self.clock.unwind(depth)

    def _loop(self) -> Status:
        state = self.state
        resumed = bool(state.history)
        if not resumed and self._reached(state.current):
            return Status.TARGET_REACHED
        step = self._propose()
        if not resumed:
            status = self._after(step, np.inf)
            if status is not None:
                return status
        while state.iteration < self.options.max_iterations:
            before, weight = state.current.penalty(state.weight), state.weight
            if self._follow_valley():
                step = self._propose()
                status = self._after(step, self._change(before, weight))
                if status is not None:
                    return status
                continue
            step = step if self._model is not None else self._propose()
            first = self.options.first_fallback
            curved, state.curved = state.curved, state.curved.copy()
            with self._searching:
                try:
                    moved = self._iteration.advance(state, self._take_model(), step) if first == 0 else Stuck.NOT_TRIED
                except BaseException:
                    state.curved = curved  # whoever continues begins this iteration anew
                    raise
            if isinstance(moved, Stuck):
                with self._searching:
                    outcome = self._rescue.unstick(state, moved, step)
                    if outcome in _INFEASIBLE_ENDINGS and self._rescue.recover(state):
                        outcome = None
                if isinstance(outcome, Status):
                    return outcome
                if outcome is None:  # the penalty weight or the cuts were changed: try again from here
                    step = self._propose()
                    continue
                moved = outcome
            elif moved.trial.total_violation > state.far and self._rescue.recover(state):
                step = self._propose()
                continue
            else:
                state.stuck = 0 if moved.trial.penalty(moved.step.weight) < before - 1e-10 * abs(before) else state.stuck
            with self._learning:
                self._iteration.accept(state, moved)
                if moved.level in (1, 3, 4) and self.options.first_fallback == 0:
                    state.reset_hessian()  # the matrix led nowhere
            state.iteration += 1
            self._relax_weight(moved.step)
            made = (moved.length, moved.level, moved.null_steps)
            del moved, step  # they hold vectors of size n
            step = self._propose()
            status = self._after(step, self._change(before, weight), made)
            if status is not None:
                return status
        return Status.ITERATION_LIMIT

    def _follow_valley(self) -> bool:
        """Move along a valley, where there is one; False where the next iteration must be an ordinary one."""
        state = self.state
        if self.options.first_fallback or self.evaluator.box is not None or not self._follower.wanted(state, self.evaluations):
            return False
        if len(state.current.x) > LARGE:
            self._model = None  # it would hold gradients that are not kept any more
        with self._searching:
            found = self._follower.advance(state)
        if found is None:
            self._follower.leave(state, self.evaluations)
            return False
        state.current, state.iteration = found, state.iteration + 1
        state.hessian.forget_products()  # there is no update that would
        found.release()
        return True

    def _change(self, before: float, weight: float) -> float:
        """How much the penalty function has changed in relation to a value of it with a weight."""
        state = self.state
        changed = before and state.weight == weight
        return abs(state.current.penalty(state.weight) - before) / abs(before) if changed else np.inf

    def _after(self, step: Step, change: float, made: tuple[float, int, int] = (0.0, 0, 0)) -> Status | None:
        """Records, tests and news after an iteration that `made` a step of some length, level and number of null steps.

        `step` is the one proposed at the new point.
        """
        with self._testing:
            self._record(step, made)
            status = self._tests(step, change)
        self.state.evaluations = self.evaluations  # with those of a certificate
        if self._tell() and status is None:
            status = Status.USER_STOP
        if status is None and self._late:
            status = Status.TIME_LIMIT
        if self.clock.trace is not None:
            row = dict(zip(COLUMNS, self.state.history[-1], strict=True))
            self.clock.trace.iteration(self.state.iteration, row, self.clock.now())
        return status

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

    def _take_model(self) -> ModelLike:
        """The model of the last proposal, handed over: the gradients in it can go as soon as it is replaced."""
        model, self._model = self._model, None
        assert model is not None
        return model

    def _propose(self) -> Step:
        self._model = self.state.step = None  # before the next ones are made
        self._model, step = self._iteration.propose(self.state)
        self.state.step = step
        if not step.trusted and self.options.stop_at_qp_failure:
            raise Ended(Status.QP_FAILURE)
        return step

    def _record(self, step: Step, made: tuple[float, int, int]) -> None:
        state = self.state
        length, level, null_steps = made
        state.evaluations, state.seconds = self.evaluations, self.seconds
        state.lowest_penalty_parameter = min(state.lowest_penalty_parameter, state.penalty_parameter)
        f, _ = self.evaluator.unscaled(state.current.f, state.current.c)
        state.record(f, self.stationarity(step), step=length, fallback=level, null_steps=null_steps)

    def _tell(self) -> bool:
        if self._callback is None:
            return False
        try:
            with self._telling:
                return bool(self._callback(self.state))
        except Exception as error:
            raise CallbackFailed(error) from error

    def stationarity(self, step: Step) -> float:
        """The solver's own measure: length of the combined gradient, or the error of its cuts, whichever is larger."""
        at = self.state.current
        gradient = norm(step.gradient) / (1.0 + norm(at.gradient))
        return max(gradient, step.error / (1.0 + abs(at.f)))

    def _tests(self, step: Step, change: float) -> Status | None:
        state, at = self.state, self.state.current
        if not self.feasible(at):
            return None
        measure = state.stationarity
        price = float(np.abs(step.multipliers) @ np.abs(at.c)) / (1.0 + abs(at.f)) if len(at.c) else 0.0
        promise = -step.decrease / (1.0 + abs(at.f))
        reached = max(measure, price, 10.0 * promise)
        # One more digit usually costs an iteration or two; only if it does not come is the tolerance itself enough.
        # Values that do not change any more are a sign of the end only if the measure does not change either.
        earlier = state.history[-1 - PATIENCE][3] if len(state.history) > PATIENCE else 0.0
        state.patience += reached <= self.tolerances.stationarity or (change <= 1e-10 and measure > 0.5 * earlier)
        iteration, value = state.last_check
        due = iteration < 0 or state.iteration >= iteration + 5 or measure <= 0.1 * value
        if due and (reached <= 0.1 * self.tolerances.stationarity or state.patience > PATIENCE):
            if self.certify().certificate.stationary:
                return Status.STATIONARY
            state.last_check, state.patience = (state.iteration, measure), 0
        if change <= self.options.relative_decrease_tolerance and self.options.relative_decrease_tolerance > 0:
            self.certify(last=True)
            return Status.RELATIVE_DECREASE
        return None

    def certify(self, *, last: bool = False) -> Check:
        """Ask the independent check about the current point; the `last` word is that of the functions themselves."""
        with self._testing:
            found = self._verdicts.at(self.state, last=last)
            self.last_check = replace(found, better=None, gathered=(), carrying=())  # its points are not needed any more
            logger.debug("iteration %d: %s", self.state.iteration, found.certificate)
            return found
