"""The main loop, from a start to a status."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from nonsmooth.compile import CompiledMismatch
from nonsmooth.errors import StateError
from nonsmooth.evaluate import Evaluator, FunctionFailed, SkippedErrors, Trial
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.loop.end_of_run import CallbackFailed, EndOfRun
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.limits import LimitedEvaluator
from nonsmooth.loop.recovery import Recovery, Retry
from nonsmooth.loop.rollback import CompiledGuard
from nonsmooth.loop.saved_state import SavedState
from nonsmooth.loop.start import begin, first_trial, may_use_structure
from nonsmooth.loop.state import COLUMNS, State
from nonsmooth.loop.stationarity import StationarityCheck
from nonsmooth.loop.termination import Termination, stationarity_measure
from nonsmooth.options import Options, Tolerances
from nonsmooth.qp import OutOfTime, QPSolver
from nonsmooth.report.clock import Phase
from nonsmooth.result import Status
from nonsmooth.step.attempt import Stepper
from nonsmooth.step.fallback import Fallback
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.step.outcome import AcceptedStep, Direction, StepFailure
from nonsmooth.step.proposal import Proposer
from nonsmooth.step.steering import Steering
from nonsmooth.step.update import Acceptance
from nonsmooth.thresholds import THRESHOLDS

logger = logging.getLogger("nonsmooth")

_INFEASIBLE = (Status.INFEASIBLE, Status.SEARCH_FAILED_INFEASIBLE)
_PERHAPS_UNBOUNDED = (Status.SEARCH_FAILED_FEASIBLE, Status.ITERATION_LIMIT)


class Run:
    """One run of the solver."""

    def __init__(
        self,
        evaluator: Evaluator,
        options: Options,
        *,
        callback: Callable[[State], object] | None = None,
        saved_state: SavedState | None = None,
    ) -> None:
        self.evaluator, self.options, self._callback = evaluator, options, callback
        self.tolerances = tolerances = Tolerances.of(options, single=evaluator.variables.single_precision)
        self.clock, box = evaluator.clock, evaluator.box
        self._search_phase, self._hessian_phase = self.clock.phase(Phase.SEARCH), self.clock.phase(Phase.HESSIAN)
        self._stationarity_phase, self._callback_phase = self.clock.phase(Phase.STATIONARITY), self.clock.phase(Phase.CALLBACKS)
        self.solver = QPSolver(options.qp_solver, self.clock)
        self.incumbents = Incumbents(tolerances)
        seconds, evaluations = _earlier_usage(saved_state)
        self.evaluate = evaluate = LimitedEvaluator(
            evaluator, self.incumbents, options, earlier_seconds=seconds, earlier_evaluations=evaluations
        )
        self.solver.deadline = evaluate.deadline
        evaluator.structured = may_use_structure(evaluator, options)
        start, reference = first_trial(evaluator, options, saved_state)
        box = evaluator.box  # in the chosen units
        self.incumbents.consider(start)
        self.state = self._begin(start)
        if saved_state is not None:
            saved_state.fill(self.state, None if evaluator.scales is None else evaluator.scales.constraints)
            self._restore_readings()
            evaluate.earlier_evaluations -= evaluator.costs.values  # evaluations that only determined shapes do not count
        if options.on_error == "skip":  # only from here on: an exception at the start must reach the user
            evaluator.skipped_errors = SkippedErrors()
        self._guard = CompiledGuard(evaluator, self.state, self._begin)
        self.stationarity = StationarityCheck(evaluator, evaluate, tolerances, reference, self._guard)
        steering = Steering(options)
        self._proposer = Proposer(options, steering, self.solver, self.clock, box)
        units = None if evaluator.scales is None else evaluator.scales.variables
        self._stepper = Stepper(evaluate, self._proposer, options, tolerances, box, units)
        self._acceptance = Acceptance(self._proposer, steering, options, tolerances, box)
        self._termination = Termination(self.stationarity, self.incumbents, options, tolerances)
        fallback = Fallback(evaluate, self._proposer, self._stepper, options, tolerances, box)
        self._recovery = Recovery(
            evaluate, fallback, steering, self.stationarity, self.incumbents, tolerances, self.own_reference, options,
            self.clock, box,
        )  # fmt: skip
        self._model: ModelLike | None = None

    def _begin(self, at: Trial) -> State:
        return begin(at, self.evaluator, self.options, self.incumbents)

    def _restore_readings(self) -> None:
        """Read the kinks again at the points of a saved state, since the file does not contain them."""
        evaluator, state = self.evaluator, self.state
        evaluator.structured = state.structured
        for point in (state.current, state.better) if state.structured else ():
            if point is not None:
                trial = evaluator(point.x)
                point.read_by(lambda trial=trial: trial.reading)  # type: ignore[misc]

    @property
    def reference(self) -> Reference:
        """The units of the certificates."""
        return self.stationarity.reference

    @property
    def own_reference(self) -> Reference | None:
        """The reference if it uses the units of the run."""
        return self.reference if self.reference.scales is self.evaluator.scales else None

    def go(self) -> EndOfRun:
        """Iterate until the run ends in a way that does not depend on compiled functions alone."""
        end: EndOfRun | None = None
        try:
            while True:
                try:
                    end = self._iterate_to_end()
                    if self._guard.accepts(end):
                        return end
                except CompiledMismatch as mismatch:
                    self._guard.roll_back(mismatch)
                    if end is not None and (end.status is Status.USER_STOP or end.exception is not None):
                        return EndOfRun(end.status, exception=end.exception)
                end = None
        except FunctionFailed as failure:
            return EndOfRun(Status.FUNCTION_ERROR, exception=failure.original)
        except KeyboardInterrupt:
            return EndOfRun(Status.USER_STOP)
        finally:
            self._guard.close()

    def _iterate_to_end(self) -> EndOfRun:
        depth = len(self.clock.open)
        try:
            return EndOfRun(self._final_status(self._iterate()))
        except EndOfRun as end:
            return end
        except OutOfTime:
            return EndOfRun(Status.TIME_LIMIT)
        except CompiledMismatch:
            raise
        except CallbackFailed as failure:
            raise failure.original from None
        except FunctionFailed as failure:
            logger.warning("the function raised %r; returning the best point so far", failure.original)
            return EndOfRun(Status.FUNCTION_ERROR, exception=failure.original)
        except KeyboardInterrupt:
            logger.info("interrupted from the keyboard")
            return EndOfRun(Status.USER_STOP)
        except Exception as error:
            logger.exception("the solver failed")
            return EndOfRun(Status.SOLVER_ERROR, exception=error)
        finally:
            self.clock.unwind(depth)

    def _iterate(self) -> Status:
        """Propose a step, try it, accept or recover, record, check; repeat until there is a status."""
        state, options = self.state, self.options
        resumed = bool(state.history)
        if not resumed and self.evaluate.reaches_target(state.current):
            return Status.TARGET_REACHED
        step = self._propose()
        status = self._status_of_ended_run() if resumed else self._finish_iteration(step, None, np.inf)
        while status is None and state.iteration < options.max_iterations:
            before, weight = state.current.penalty(state.weight), state.weight
            with self._search_phase:
                outcome = self._try(step)
                if isinstance(outcome, StepFailure):
                    recovered = self._recovery.recover(state, outcome, self._stepper.take_ray() or step)
                    if isinstance(recovered, Status):
                        return recovered
                    if isinstance(recovered, Retry):
                        step = self._propose()
                        continue
                    outcome = recovered
                elif outcome.trial.penalty(outcome.step.weight) < before - THRESHOLDS.stalled_change * abs(before):
                    state.failures = 0
            with self._hessian_phase:
                self._acceptance.accept(state, outcome)
            state.iteration += 1
            last_step = (outcome.length, outcome.direction, outcome.null_steps)
            del outcome, step  # free their vectors of size n
            step = self._propose()
            status = self._finish_iteration(step, last_step, self._relative_change(before, weight))
        return Status.ITERATION_LIMIT if status is None else status

    def _status_of_ended_run(self) -> Status | None:
        """The status of a continued run that had already ended: the check repeats the proof."""
        if not self.state.ended:
            return None
        return Status.STATIONARY if self.stationarity.check(self.state).certificate.stationary else None

    def _propose(self) -> Step:
        self._model = self.state.step = None  # free them before the next ones are created
        self._model, step = self._proposer.propose(self.state)
        self.evaluator.structured = self.state.structured
        self.state.step = step
        if not step.trusted and self.options.stop_at_qp_failure:
            raise EndOfRun(Status.QP_FAILURE)
        return step

    def _try(self, step: Step) -> AcceptedStep | StepFailure:
        model, self._model = self._model, None  # allows its gradients to be freed as soon as it is replaced
        better, self.state.better = self.state.better, None
        if better is not None:
            return AcceptedStep(better, step, 0.0, None, Direction.STEEPEST_DESCENT)
        if self.options.first_fallback > 0:
            return StepFailure.NOT_TRIED
        assert model is not None
        return self._stepper.advance(self.state, model, step)

    def _relative_change(self, before: float, weight: float) -> float:
        """Relative change of the penalty function; infinite if the weight has changed or the earlier value is 0."""
        state = self.state
        comparable = before and state.weight == weight
        return abs(state.current.penalty(state.weight) - before) / abs(before) if comparable else np.inf

    def _finish_iteration(self, step: Step, last_step: tuple[float, Direction, int] | None, change: float) -> Status | None:
        """Record an iterate, test termination, run the callback; `step` starts at the iterate, `last_step` led to it."""
        state = self.state
        with self._stationarity_phase:
            self._record(step, last_step or (0.0, Direction.MODEL, 0))
            status = self._termination.test(state, step, change)
        state.evaluations, state.ended = self.evaluate.evaluations, status is not None  # includes those of the check
        if self._run_callback() and status is None:
            status = Status.USER_STOP
        if status is None and self.evaluate.out_of_time:
            status = Status.TIME_LIMIT
        if self.clock.trace is not None:
            row = dict(zip(COLUMNS, state.history[-1], strict=True))
            self.clock.trace.iteration(state.iteration, row, self.clock.now())
        return status

    def _record(self, step: Step, last_step: tuple[float, Direction, int]) -> None:
        state, (length, direction, null_steps) = self.state, last_step
        state.evaluations, state.seconds = self.evaluate.evaluations, self.evaluate.seconds
        state.lowest_penalty_parameter = min(state.lowest_penalty_parameter, state.penalty_parameter)
        f, _ = self.evaluator.unscaled(state.current.f, state.current.c)
        measure = stationarity_measure(state.current, step)
        state.record(f, measure, step=length, direction=direction, null_steps=null_steps)

    def _run_callback(self) -> bool:
        if self._callback is None:
            return False
        try:
            with self._callback_phase, np.errstate(**self.evaluator.user_errors):
                return bool(self._callback(self.state))
        except Exception as error:
            raise CallbackFailed(error) from error

    def _final_status(self, status: Status) -> Status:
        """The status after a last attempt at a proof: that the best point is stationary, or that f is unbounded."""
        state, best = self.state, self.incumbents.best
        if status is Status.SEARCH_FAILED_FEASIBLE and best is not None and not np.array_equal(best.x, state.current.x):
            state.current = self.evaluate(best.x)  # the last point could not be proven stationary; the best one may be
            status = Status.STATIONARY if self.stationarity.check(state, final=True).certificate.stationary else status
        at_limit = status is Status.ITERATION_LIMIT and self.incumbents.feasible(state.current)
        if at_limit and state.step is not None and not self._termination.predicts_more_decrease(state.current, state.step):
            status = Status.STATIONARY if self.stationarity.check(state, final=True).certificate.stationary else status
        if status in _INFEASIBLE and best is not None:
            status = Status.SEARCH_FAILED_FEASIBLE  # a feasible point is known
        if status in _PERHAPS_UNBOUNDED and best is not None:
            f, _ = self.evaluator.unscaled(best.f, best.c)
            if self._recovery.seems_unbounded(state, self.evaluator.variables.start, f):
                status = Status.UNBOUNDED
        return status


def _earlier_usage(saved_state: SavedState | None) -> tuple[float, int]:
    """Seconds and evaluations of the earlier runs that this run continues."""
    if saved_state is None:
        return 0.0, 0
    try:
        return float(saved_state.numbers["seconds"]), int(saved_state.numbers["evaluations"])
    except (TypeError, ValueError, OverflowError) as error:
        raise StateError(f"the saved state is damaged: {error}") from error
