"""`pygranso`, PyGRANSO's entry point."""

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
    """Minimize f(X) subject to ci(X) ≤ 0 and ce(X) = 0, with PyGRANSO's calling interface.

    `var_spec` is a dict of shapes by variable name, or a module. `combined_fn(X)` gets a struct with one attribute per
    variable, or the module, and returns [f, ci, ce]; with globalAD=False it returns
    [f, f_grad, ci, ci_grad, ce, ce_grad]. `user_opts` has options with PyGRANSO's names.

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
    combined_problem = problem(combined_fn, unknowns, gradients=settings.own_gradients)
    scales = _scales(combined_problem, unknowns, options)
    table = _table(settings)
    tolerances = Tolerances.of(options, single=Variables(unknowns.start).single_precision)
    observer = Observer(
        unknowns, options, tolerances, show=None if table is None else table.show, halt_log_fn=settings.halt_log_fn
    )
    result = minimize(combined_problem, unknowns.start, options=options, callback=observer)
    if observer.exception is not None:
        raise observer.exception
    if table is not None:
        table.finish(result, CODES[result.status])
    return solution(result, unknowns, scales)


def _table(settings: Settings) -> Table | None:
    values = settings.values
    if values.get("print_level", 1) == 0:
        return None
    return Table(values.get("print_frequency", 1), values.get("print_width", 14), values.get("print_ascii", False))


def _scales(combined_problem: Problem, unknowns: Unknowns, options: Options) -> Scales | None:
    """The prescaling factors of the run, determined by a separate evaluation."""
    if not math.isfinite(options.prescaling_threshold):
        return None
    from nonsmooth.evaluate import FunctionFailed

    evaluator = Evaluator(combined_problem, Variables(unknowns.start))
    try:
        evaluator.choose_scales(evaluator(evaluator.variables.start), threshold=options.prescaling_threshold)
    except FunctionFailed as failure:
        raise failure.original from None
    return evaluator.scales


__all__ = ["pygranso"]
