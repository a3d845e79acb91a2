"""`minimize`: the front door."""

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

from nonsmooth.certificate import Certificate, check, unknown
from nonsmooth.clock import Clock, Phase
from nonsmooth.ending import Ended
from nonsmooth.errors import ProblemError
from nonsmooth.evaluate import Compilation, Evaluator, FunctionFailed, Outcome, Tier, Trial
from nonsmooth.incumbents import Candidate
from nonsmooth.options import Options, check_names
from nonsmooth.problem import Problem
from nonsmooth.result import History, Multipliers, Point, Result, Status
from nonsmooth.run import Run
from nonsmooth.state import SavedState, State
from nonsmooth.threads import one_thread
from nonsmooth.trace import Trace
from nonsmooth.variables import Start, Variables

Vector = NDArray[np.float64]


def minimize(
    fn: Callable[..., Any] | Problem | None,
    x0: Start,
    *,
    objective: Callable[..., Any] | None = None,
    inequalities: Callable[..., Any] | None = None,
    equalities: Callable[..., Any] | None = None,
    bounds: tuple[Any, Any] | None = None,
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
    """Minimise a nonsmooth, nonconvex function under nonsmooth constraints.

    `fn(x, *args, **kwargs)` returns f, or (f, ci, ce) with ci ≤ 0 and ce = 0; or give None and `objective`, with
    `inequalities` and `equalities`; or a `Problem`. x0 is a tensor, a dict of tensors or a module; its precision and
    device are those of the run. Options are given by name or as an `Options`.

    `callback(state)` is called at the start and after every iteration and ends the run by returning something true.
    `profile` is the path of a file in which the course of the run is written, for https://ui.perfetto.dev.
    `state` continues a run from `State.load(path)`. An exception raised by the function at x0 is passed on; a later one
    ends the run with the best point, or is raised as well with `throw=True`.

    >>> import torch
    >>> def rosenbrock(x):
    ...     f = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    ...     return f, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None
    >>> result = minimize(rosenbrock, torch.tensor([0.3, -0.7], dtype=torch.float64))
    >>> result.status.name, round(result.f, 8)
    ('STATIONARY', 0.08578644)
    """
    started = perf_counter()
    check_names(choices)
    options = (options or Options()).replace(**choices)
    if isinstance(fn, Problem):
        if objective or inequalities or equalities or bounds or gradients or args or kwargs:
            raise ProblemError("a Problem is complete; give constraints, bounds and arguments to it, not to minimize")
        problem = fn
    else:
        problem = Problem(
            fn, objective=objective, inequalities=inequalities, equalities=equalities, bounds=bounds, gradients=gradients,
            arguments=tuple(args), keywords=dict(kwargs or {}),
        )  # fmt: skip
    if state is not None and not isinstance(state, SavedState):
        raise ProblemError("state must come from State.load(path)")
    tier: Tier | None = None
    clock = Clock(started=started, trace=None if profile is None else Trace(profile))
    try:
        with ExitStack() as stack:
            stack.enter_context(one_thread())
            if progress:
                callback = stack.enter_context(_shown(options, callback, clock))
            evaluator = Evaluator(problem, Variables(x0), clock)
            if options.compile != "never":
                evaluator.tier = tier = Tier(evaluator, always=options.compile == "always")
            run = Run(evaluator, options, callback=callback, saved=state)
            ended = run.go()
        if throw and ended.exception is not None:
            raise ended.exception
        return _result(run, ended, Compilation(Outcome.NOT_WANTED) if tier is None else tier.report)
    finally:
        clock.close()


@contextmanager
def _shown(options: Options, callback: Callable[[State], object] | None, clock: Clock) -> Iterator[Callable[[State], object]]:
    """Progress on the terminal; to begin and to end it counts as time of callbacks."""
    stack, telling = ExitStack(), clock.phase(Phase.CALLBACKS)
    try:
        with telling:
            from nonsmooth.progress import Progress

            report = stack.enter_context(Progress(options, callback))
        yield report
    finally:
        with telling:
            stack.close()


def _result(run: Run, ended: Ended, compilation: Compilation) -> Result:
    evaluator, state = run.evaluator, run.state
    current = state.current if ended.at is None else ended.at
    final = Candidate.of(current)
    best, most_feasible = run.incumbents.best, run.incumbents.most_feasible
    assert most_feasible is not None  # the start was evaluated and finite
    if ended.status in (Status.STATIONARY, Status.TARGET_REACHED, Status.RELATIVE_DECREASE):
        answer = final
    else:
        answer = best if best is not None else most_feasible if ended.status is not Status.INFEASIBLE else final
    with run.clock.phase(Phase.STATIONARITY):
        certificate, flat_multipliers = _certificate(run, ended, answer)
    succeeded = ended.status is Status.TARGET_REACHED or (
        ended.status in (Status.STATIONARY, Status.RELATIVE_DECREASE) and certificate.stationary
    )
    candidates = [answer, final, most_feasible, *([] if best is None else [best])]
    seen = {id(candidate.x): candidate for candidate in candidates}  # often all come from one evaluation
    points = {key: _point(run, candidate) for key, candidate in seen.items()}
    point = points[id(answer.x)]
    x, multipliers = evaluator.variables.answer(answer.x), _multipliers(run, flat_multipliers)
    return Result(
        status=ended.status,
        success=succeeded,
        x=x,
        f=point.f,
        point=point,
        final=points[id(final.x)],
        best=None if best is None else points[id(best.x)],
        most_feasible=points[id(most_feasible.x)],
        multipliers=multipliers,
        certificate=certificate,
        iterations=state.iteration,
        evaluations=run.evaluations,
        costs=evaluator.costs,
        compilation=compilation,
        updates=state.updates,
        programs=run.solver.counts,
        penalty_parameter=state.penalty_parameter,
        scales=evaluator.scales,
        history=History.of(state.history),
        exception=ended.exception,
        state=state,
        recheck=_recheck(run, answer),
        time=run.clock.times(earlier=run.earlier),
    )


def _certificate(run: Run, ended: Ended, answer: Candidate) -> tuple[Certificate, Vector]:
    """The certificate of the answer: the one that ended the run, or one from what is known without more evaluations."""
    if ended.status in (Status.STATIONARY, Status.RELATIVE_DECREASE) and run.last_check is not None:
        return run.last_check.certificate, run.last_check.multipliers
    at = run.state.current
    try:
        evaluator = run.evaluator
        if evaluator.scales is not None:
            evaluator = Evaluator(evaluator.problem, evaluator.variables, run.clock)
        trial = at if np.array_equal(at.x, answer.x) and evaluator is run.evaluator else evaluator(answer.x)
        found = check(evaluator, trial, run.tolerances, max_samples=0)
        if found.certificate.stationary:  # the gradients at one point alone do not prove it
            partial = dataclasses.replace(found.certificate, stationary=False, reason="not checked beyond the point itself")
            return partial, found.multipliers
        return found.certificate, found.multipliers
    except (Exception, KeyboardInterrupt):  # whatever happens now, the answer is kept
        return unknown(answer, run.tolerances, "not checked, the function could not be evaluated again"), np.zeros(len(at.c))


def _recheck(run: Run, answer: Candidate) -> Callable[[], Certificate]:
    x = answer.x

    def recheck() -> Certificate:
        evaluator = Evaluator(run.evaluator.problem, run.evaluator.variables)

        def evaluate(y: Vector) -> Trial:
            return evaluator(y)

        try:
            return check(evaluate, evaluator(x), run.tolerances).certificate
        except FunctionFailed as failure:
            found = f"undecided, the function raised {type(failure.original).__name__}: {failure.original}"
            return unknown(answer, run.tolerances, found)
        finally:
            run.evaluator.variables.place(x)  # a module goes on holding the answer

    return recheck


def _point(run: Run, candidate: Candidate) -> Point:
    evaluator, tolerances = run.evaluator, run.tolerances
    f, c = evaluator.unscaled(candidate.f, candidate.c)
    plain = Candidate(candidate.x, f, c, candidate.equalities)
    inequalities, equalities, _, _ = _blocks(run, c)
    return Point(
        x=evaluator.variables.shaped(candidate.x),
        f=f,
        inequality_violation=plain.inequality_violation,
        equality_violation=plain.equality_violation,
        feasible=plain.inequality_violation <= tolerances.inequality and plain.equality_violation <= tolerances.equality,
        inequalities=inequalities,
        equalities=equalities,
        flat=candidate.x,
    )


def _blocks(run: Run, c: Vector) -> tuple[Any, Any, Vector, Vector]:
    """The user's inequalities and equalities in their own form, and the parts that belong to upper and lower bounds."""
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


def _multipliers(run: Run, flat: Vector) -> Multipliers:
    evaluator = run.evaluator
    inequalities, equalities, above, below = _blocks(run, flat)
    bounds = evaluator.bounds
    if evaluator.problem.bounds is None:
        return Multipliers(inequalities, equalities)
    upper, lower = np.zeros(bounds.size), np.zeros(bounds.size)
    upper[bounds.above], lower[bounds.below] = above, below
    fixed = flat[evaluator.forms[1].size :][: len(bounds.fixed)] if evaluator.forms is not None else flat[:0]
    upper[bounds.fixed], lower[bounds.fixed] = np.maximum(fixed, 0.0), np.maximum(-fixed, 0.0)
    shaped = evaluator.variables.shaped
    return Multipliers(inequalities, equalities, lower=shaped(lower), upper=shaped(upper))
