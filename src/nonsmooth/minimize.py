"""`minimize`, the entry point of the solver."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nonsmooth.arrays.threads import one_thread
from nonsmooth.certify.certificate import Check, check, unknown
from nonsmooth.certify.recheck import Recheck
from nonsmooth.compile import Compilation, CompileOutcome, Tier
from nonsmooth.errors import ProblemError
from nonsmooth.evaluate import Evaluator, SkippedErrors
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.loop.end_of_run import EndOfRun
from nonsmooth.loop.run import Run
from nonsmooth.loop.saved_state import SavedState
from nonsmooth.loop.state import State
from nonsmooth.options import Options, check_names
from nonsmooth.problem import Problem
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.report.trace import Trace
from nonsmooth.result import History, Multipliers, Point, Result, Status
from nonsmooth.variables import Start, Variables

Vector = NDArray[np.float64]

MAX_MULTIPLICATIONS_OF_LATE_CHECK = 1e9
"""After a time limit the answer is checked only if that takes at most this many multiplications, about a second."""


def minimize(
    fn: Callable[..., Any] | Problem | None,
    x0: Start,
    *,
    objective: Callable[..., Any] | None = None,
    inequalities: Callable[..., Any] | None = None,
    equalities: Callable[..., Any] | None = None,
    bounds: Any = None,
    soft_bounds: bool = False,
    gradients: bool = False,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    options: Options | None = None,
    callback: Callable[[State], object] | None = None,
    progress: bool = False,
    profile: str | os.PathLike[str] | None = None,
    state: SavedState | None = None,
    throw: bool = False,
    **choices: Any,
) -> Result:
    """Minimize a nonsmooth, nonconvex function under nonsmooth constraints.

    `fn(x, *args, **kwargs)` returns f, or (f, ci, ce) with ci ≤ 0 and ce = 0; or give None and `objective`, with
    `inequalities` and `equalities`; or a `Problem`. x0 is a tensor, a dict of tensors or a module; its precision and
    device are those of the run. x0 may also be a NumPy array or a list of numbers: the function then gets a float64
    tensor, and the answer is a NumPy array. Give options by name or as an `Options`.

    `callback(state)` is called at the start and after every iteration; the run ends when it returns a true value.
    `profile` is the path of a trace file of the run, for https://ui.perfetto.dev.
    `state` continues a run from `State.load(path)`. An exception raised by the function at x0 propagates. A later one ends
    the run with the best point, or propagates too with `throw=True`; with `on_error="skip"` the point counts as outside
    the domain and the run continues.

    >>> import torch
    >>> def rosenbrock(x):
    ...     f = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    ...     return f, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None
    >>> result = minimize(rosenbrock, torch.tensor([0.3, -0.7], dtype=torch.float64))
    >>> result.status.name, round(result.f, 5)
    ('STATIONARY', 0.08579)
    """
    started = perf_counter()
    check_names(choices)
    options = (options or Options()).replace(**choices)
    if isinstance(fn, Problem):
        if objective or inequalities or equalities or bounds is not None or gradients or args or kwargs:
            raise ProblemError("fn is a Problem; pass constraints, bounds and arguments to Problem(...), not to minimize")
        problem = fn
    else:
        problem = Problem(
            fn, objective=objective, inequalities=inequalities, equalities=equalities, bounds=bounds,
            soft_bounds=soft_bounds, gradients=gradients, arguments=tuple(args), keywords=dict(kwargs or {}),
        )  # fmt: skip
    if state is not None and not isinstance(state, SavedState):
        raise ProblemError("state must come from State.load(path)")
    clock = Clock(started=started, trace=None if profile is None else Trace(profile))
    try:
        return _solve(problem, Variables(x0), options, clock, callback, progress=progress, saved_state=state, throw=throw)
    finally:
        clock.close()


def _solve(
    problem: Problem,
    variables: Variables,
    options: Options,
    clock: Clock,
    callback: Callable[[State], object] | None,
    *,
    progress: bool,
    saved_state: SavedState | None,
    throw: bool,
) -> Result:
    tier: Tier | None = None
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        user_errors = np.geterr()
        stack.enter_context(np.errstate(all="ignore"))  # products of large gradients may overflow; this is detected later
        if progress:
            callback = stack.enter_context(_with_progress(options, callback, clock))
        evaluator = Evaluator(problem, variables, clock, user_errors=user_errors)
        if options.compile != "never":
            evaluator.tier = tier = Tier(evaluator, always=options.compile == "always")
        run = Run(evaluator, options, callback=callback, saved_state=saved_state)
        end = run.go()
    run.state.current.forget_reading()  # it references the autograd graph of the user's function
    if throw and end.exception is not None:
        raise end.exception
    with one_thread():  # an answer that is not the last point is evaluated once more
        return _result(run, end, Compilation(CompileOutcome.NOT_WANTED) if tier is None else tier.report)


@contextmanager
def _with_progress(
    options: Options, callback: Callable[[State], object] | None, clock: Clock
) -> Iterator[Callable[[State], object]]:
    """Progress on the terminal. Starting and stopping the display counts as callback time."""
    stack, callbacks = ExitStack(), clock.phase(Phase.CALLBACKS)
    try:
        with callbacks:
            from nonsmooth.report.progress import Progress

            report = stack.enter_context(Progress(options, callback))
        yield report
    finally:
        with callbacks:
            stack.close()


def _result(run: Run, end: EndOfRun, compilation: Compilation) -> Result:
    evaluator, state = run.evaluator, run.state
    current = state.current if end.at is None else end.at
    final = Candidate.of(current)
    best, most_feasible = run.incumbents.best, run.incumbents.most_feasible
    assert most_feasible is not None  # the start was evaluated and finite
    if end.status in (Status.STATIONARY, Status.TARGET_REACHED, Status.RELATIVE_DECREASE):
        answer = final
    else:
        answer = best if best is not None else most_feasible if end.status is not Status.INFEASIBLE else final
    with run.clock.phase(Phase.STATIONARITY):
        verdict = _check_answer(run, end, answer)
    certificate = verdict.certificate
    success = end.status is Status.TARGET_REACHED or (
        end.status in (Status.STATIONARY, Status.RELATIVE_DECREASE) and certificate.stationary
    )
    candidates = [answer, final, most_feasible, *([] if best is None else [best])]
    distinct = {id(candidate.x): candidate for candidate in candidates}  # often all come from one evaluation
    points = {key: _point(run, candidate) for key, candidate in distinct.items()}
    point = points[id(answer.x)]
    x, multipliers = evaluator.variables.answer(evaluator.in_user_units(answer.x)), _multipliers(run, verdict)
    return Result(
        status=end.status,
        success=success,
        x=x,
        f=point.f,
        point=point,
        final=points[id(final.x)],
        best=None if best is None else points[id(best.x)],
        most_feasible=points[id(most_feasible.x)],
        multipliers=multipliers,
        certificate=certificate,
        iterations=state.iteration,
        evaluations=run.evaluate.evaluations,
        costs=evaluator.costs,
        compilation=compilation,
        updates=state.updates,
        programs=run.solver.counts,
        method=run.solver.method,
        penalty_parameter=state.penalty_parameter,
        scales=evaluator.scales,
        history=History.of(state.history),
        exception=end.exception,
        state=state,
        recheck=Recheck(
            evaluator.problem,
            evaluator.variables,
            _in_user_units(evaluator, answer),
            run.tolerances,
            run.reference,
            skip_errors=evaluator.skipped_errors is not None,
            structured=evaluator.structured,
            watch=evaluator.watching or not evaluator.problem.terms,
        ),
        skipped_errors=evaluator.skipped_errors or SkippedErrors(),
        time=run.clock.times(earlier=run.evaluate.earlier_seconds),
    )


def _check_answer(run: Run, end: EndOfRun, answer: Candidate) -> Check:
    """The check of the answer: the one that ended the run, or a check from the gradients at that point alone."""
    if end.status in (Status.STATIONARY, Status.RELATIVE_DECREASE) and run.stationarity.last is not None:
        return run.stationarity.last
    at = run.state.current
    bounds = None if run.evaluator.box is None else np.zeros(len(at.x))
    if end.status is Status.TIME_LIMIT and len(at.c) ** 2 * len(at.x) > MAX_MULTIPLICATIONS_OF_LATE_CHECK:
        multipliers = run.state.multipliers if len(run.state.multipliers) == len(at.c) else np.zeros(len(at.c))
        certificate = unknown(answer, run.tolerances, "not checked, the time limit was reached")
        return Check(certificate, multipliers, None, (), (), bounds)
    try:
        evaluator = run.evaluator
        trial = at if np.array_equal(at.x, answer.x) else evaluator(answer.x)
        verdict = check(evaluator, trial, run.tolerances, run.own_reference, evaluator.box, max_samples=0)
        if verdict.certificate.stationary:  # the gradients at one point alone do not prove it
            partial = dataclasses.replace(verdict.certificate, stationary=False, reason="not checked beyond the point itself")
            return dataclasses.replace(verdict, certificate=partial)
        return verdict
    except (Exception, KeyboardInterrupt):  # no failure here may lose the answer
        certificate = unknown(answer, run.tolerances, "not checked, the function could not be evaluated again")
        return Check(certificate, np.zeros(len(at.c)), None, (), (), bounds)


def _in_user_units(evaluator: Evaluator, candidate: Candidate) -> Candidate:
    f, c = evaluator.unscaled(candidate.f, candidate.c)
    return Candidate(evaluator.in_user_units(candidate.x), f, c, candidate.equalities)


def _point(run: Run, candidate: Candidate) -> Point:
    evaluator, tolerances = run.evaluator, run.tolerances
    plain = _in_user_units(evaluator, candidate)
    inequalities, equalities, _, _ = _blocks(run, plain.c)
    return Point(
        x=evaluator.variables.shaped(plain.x),
        f=plain.f,
        inequality_violation=plain.inequality_violation,
        equality_violation=plain.equality_violation,
        feasible=plain.inequality_violation <= tolerances.inequality and plain.equality_violation <= tolerances.equality,
        inequalities=inequalities,
        equalities=equalities,
        flat=plain.x,
    )


def _blocks(run: Run, c: Vector) -> tuple[Any, Any, Vector, Vector]:
    """The user's inequalities and equalities in their own form, then the entries of upper and of lower bounds."""
    evaluator = run.evaluator
    assert evaluator.forms is not None
    inequality_form, equality_form = evaluator.forms
    bounds = evaluator.bounds
    first = equality_form.size + len(bounds.fixed)
    second = first + inequality_form.size
    third = second + len(bounds.above)
    return (
        inequality_form.restore(torch.from_numpy(c[first:second].copy())),
        equality_form.restore(torch.from_numpy(c[: equality_form.size].copy())),
        c[second:third],
        c[third:],
    )


def _multipliers(run: Run, verdict: Check) -> Multipliers:
    evaluator = run.evaluator
    flat = evaluator.multipliers_in_user_units(verdict.multipliers)
    inequalities, equalities, above, below = _blocks(run, flat)
    if evaluator.problem.bounds is None:
        return Multipliers(inequalities, equalities)
    rows, shaped = evaluator.bounds, evaluator.variables.shaped
    upper, lower = np.zeros(evaluator.variables.size), np.zeros(evaluator.variables.size)
    signed = evaluator.bound_multipliers_in_user_units(verdict.bound_multipliers)
    if signed is not None:
        upper, lower = np.maximum(-signed, 0.0), np.maximum(signed, 0.0)
    elif evaluator.forms is not None:
        fixed = flat[evaluator.forms[1].size :][: len(rows.fixed)]
        upper[rows.above], lower[rows.below] = above, below
        upper[rows.fixed], lower[rows.fixed] = np.maximum(fixed, 0.0), np.maximum(-fixed, 0.0)
    return Multipliers(inequalities, equalities, lower=shaped(lower), upper=shaped(upper))
