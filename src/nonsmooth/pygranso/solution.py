"""The result of a run in PyGRANSO's form."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nonsmooth.evaluate.scaling import Scales
from nonsmooth.pygranso.matrices import as_tensors
from nonsmooth.pygranso.pygransoStruct import pygransoStruct
from nonsmooth.pygranso.termination import CODES
from nonsmooth.pygranso.variables import Unknowns
from nonsmooth.result import Point, Result, Status

Vector = NDArray[np.float64]


def solution(result: Result, unknowns: Unknowns, scales: Scales | None) -> pygransoStruct:
    """PyGRANSO's result, with the `Result` of `minimize` as its attribute `result`."""
    points: dict[str, Point | None] = {"final": result.final, "best": result.best}
    if len(result.state.current.c):
        points["most_feasible"] = result.most_feasible
    available = {name: point for name, point in points.items() if point is not None}
    code = CODES[result.status]
    answer = pygransoStruct()
    for name, point in available.items():
        setattr(answer, name, _point(point, result, unknowns, scales))
    if scales is not None:
        for name, point in available.items():
            setattr(answer, f"{name}_unscaled", _point(point, result, unknowns, None))
        count = result.state.current.equalities
        answer.scalings = pygransoStruct(
            f=scales.objective,
            ci=unknowns.column(scales.constraints[count:]),
            ce=unknowns.column(scales.constraints[:count]),
        )
    programs, updates = result.programs, result.updates
    answer.H_final = as_tensors(result.state.hessian, unknowns.device, unknowns.dtype)
    answer.stat_value = _stationarity(result)
    answer.iters = result.iterations
    answer.BFGS_updates = pygransoStruct(
        requests=updates.updated + updates.not_positive + updates.not_finite,
        updates=updates.updated,
        damped_requests=updates.damped,
        damped_updates=updates.damped,
        scaling_skips=0,
        sty_fails=updates.not_positive,
        infnan_fails=updates.not_finite,
    )
    answer.fn_evals = result.evaluations
    answer.termination_code = code
    answer.quadprog_failure_rate = 100.0 * programs.failed / programs.solved if programs.solved else 0.0
    if result.exception is not None:
        answer.error = result.exception
    if code == 8 and len(result.state.current.c):
        answer.mu_lowest = min(result.state.lowest_penalty_parameter, result.penalty_parameter)
    answer.result = result
    return answer


def _point(point: Point, result: Result, unknowns: Unknowns, scales: Scales | None) -> pygransoStruct:
    inequalities, equalities, f = _flat(point.inequalities), _flat(point.equalities), point.f
    if scales is not None:
        f = f * scales.objective
        equalities = equalities * scales.constraints[: len(equalities)]
        inequalities = inequalities * scales.constraints[len(equalities) :]
    tvi, tve = float(np.maximum(inequalities, 0.0).max(initial=0.0)), float(np.abs(equalities).max(initial=0.0))
    return pygransoStruct(
        x=unknowns.column(point.flat),
        f=f,
        ci=unknowns.column(inequalities),
        ce=unknowns.column(equalities),
        tvi=tvi,
        tve=tve,
        tv=max(tvi, tve),
        feasible_to_tol=point.feasible,
        mu=result.penalty_parameter if len(result.state.current.c) else 1.0,
    )


def _flat(block: Any) -> Vector:
    """Constraints, in the form that `minimize` returns, as one array."""
    if block is None:
        return np.zeros(0)
    pieces = [block] if isinstance(block, torch.Tensor) else list(block)
    return np.concatenate([np.asarray(piece, dtype=np.float64).reshape(-1) for piece in pieces])


def _stationarity(result: Result) -> float:
    """The residual of the certificate if the answer is proven, otherwise the solver's own measure."""
    if result.status is Status.STATIONARY or not result.state.history:
        return float(result.certificate.residual)
    return float(result.state.stationarity)
