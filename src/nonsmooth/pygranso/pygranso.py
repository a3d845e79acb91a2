"""`pygranso`: PyGRANSO's one function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from nonsmooth.evaluate import Evaluator
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.minimize import minimize
from nonsmooth.options import Options, Tolerances
from nonsmooth.problem import Problem
from nonsmooth.pygranso.function import problem
from nonsmooth.pygranso.progress import Observer
from nonsmooth.pygranso.pygransoStruct import pygransoStruct
from nonsmooth.pygranso.settings import Settings
from nonsmooth.pygranso.solution import solution
from nonsmooth.pygranso.table import Table
from nonsmooth.pygranso.termination import CODES
from nonsmooth.pygranso.variables import Unknowns, prepare
from nonsmooth.variables import Variables


def pygranso(
    var_spec: Mapping[str, Any] | nn.Module,
    combined_fn: Callable[[Any], Any],
    user_opts: pygransoStruct | Mapping[str, Any] | None = None,
) -> pygransoStruct:
    """Minimize f(X) subject to ci(X) ≤ 0 and ce(X) = 0, as called by PyGRANSO's users.

    `var_spec` gives the shapes of the variables by name, or is a module. `combined_fn(X)` gets a struct with one
    attribute per variable, or the module, and returns [f, ci, ce]; with globalAD=False it returns
    [f, f_grad, ci, ci_grad, ce, ce_grad]. `user_opts` holds options by PyGRANSO's names.

    >>> def rosenbrock(X):
    ...     ci = pygransoStruct(c1=2**0.5 * X.x1 - 1, c2=2 * X.x2 - 1)
    ...     return [8 * abs(X.x1**2 - X.x2) + (1 - X.x1) ** 2, ci, None]
    >>> options = pygransoStruct(x0=[0.3, -0.7], print_level=0)
    >>> answer = pygranso({"x1": [1], "x2": [1]}, rosenbrock, options)
    >>> answer.termination_code, round(answer.final.f, 8), tuple(answer.final.x.shape)
    (0, 0.08578644, (2, 1))
    """
    settings = Settings.of(user_opts)
    unknowns = prepare(var_spec, settings)
    options = settings.options(unknowns.size)
    described = problem(combined_fn, unknowns, gradients=settings.gradients_given)
    scales = _scales(described, unknowns, options)
    table = _table(settings)
    tolerances = Tolerances.of(options, single=Variables(unknowns.start).single_precision)
    observer = Observer(
        unknowns, options, tolerances, show=None if table is None else table.show, halt_log_fn=settings.halt_log_fn
    )
    result = minimize(described, unknowns.start, options=options, callback=observer)
    if observer.exception is not None:
        raise observer.exception
    if table is not None:
        table.finish(result, CODES[result.status])
    return solution(result, unknowns, scales)


def _table(settings: Settings) -> Table | None:
    given = settings.given
    if given.get("print_level", 1) == 0:
        return None
    return Table(given.get("print_frequency", 1), given.get("print_width", 14), given.get("print_ascii", False))


def _scales(described: Problem, unknowns: Unknowns, options: Options) -> Scales | None:
    """The factors that the run is going to use; known from an evaluation of its own."""
    if not math.isfinite(options.prescaling_threshold):
        return None
    from nonsmooth.evaluate import FunctionFailed

    evaluator = Evaluator(described, Variables(unknowns.start))
    try:
        evaluator.choose_scales(evaluator(evaluator.variables.start), threshold=options.prescaling_threshold)
    except FunctionFailed as failure:
        raise failure.original from None
    return evaluator.scales


__all__ = ["pygranso"]
