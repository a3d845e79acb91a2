"""PyGRANSO's data about an iteration, derived from the state of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.hessian import FullMemory
from nonsmooth.loop.state import State
from nonsmooth.options import Options, Tolerances
from nonsmooth.pygranso.matrices import as_tensors
from nonsmooth.pygranso.pygransoStruct import pygransoStruct
from nonsmooth.pygranso.variables import Unknowns

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Progress:
    """One accepted iterate, in PyGRANSO's terms."""

    iteration: int
    mu: float
    """1 if there are no constraints."""
    penalty: float
    """mu·f + sum of violations."""
    f: float
    inequality_violation: float | None
    """The largest violation of an inequality; None if there are none."""
    equality_violation: float | None
    direction: Vector
    evaluations: int
    step: float
    gradients: int
    """The number of gradients of the objective that the stationarity measure combines."""
    stationarity_vector: Vector
    stationarity: float
    level: int

    @classmethod
    def of(cls, state: State, before: Progress | None, previous: Vector | None) -> Progress:
        """The progress from the iterate `previous`, described by `before`, to the current one."""
        at, (*_, stationarity, step, evaluations, _, level, _) = state.current, state.history[-1]
        mu = state.penalty_parameter if len(at.c) else 1.0
        displacement = np.zeros_like(at.x) if previous is None else at.x - previous
        model_step = getattr(state, "step", None)  # the model's step at this iterate, if the state has it
        combined = at.penalty_gradient(1.0 / mu) if model_step is None else model_step.gradient
        earlier = state.history[-2][5] if before is not None and len(state.history) > 1 else evaluations - 1
        return cls(
            iteration=state.iteration,
            mu=mu,
            penalty=mu * at.f + at.total_violation,
            f=at.f,
            inequality_violation=at.inequality_violation if len(at.c) > at.equalities else None,
            equality_violation=at.equality_violation if at.equalities else None,
            direction=displacement / step if step > 0 else displacement,
            evaluations=int(evaluations - earlier),
            step=step,
            gradients=1 if model_step is None else int((model_step.weights > 1e-10).sum()),
            stationarity_vector=-mu * combined,
            stationarity=stationarity,
            level=int(level),
        )


def penalty_parts(state: State, progress: Progress, unknowns: Unknowns, tolerances: Tolerances) -> pygransoStruct:
    """PyGRANSO's penaltyfn_parts: values and gradients of everything at the current iterate."""
    at, column, tensor = state.current, unknowns.column, unknowns.tensor
    count, signs = at.equalities, at.signs()
    equality_gradient, inequality_gradient = signs[:count] @ at.jacobian[:count], signs[count:] @ at.jacobian[count:]
    tve, tvi = float(np.abs(at.c[:count]).max(initial=0.0)), float(np.maximum(at.c[count:], 0.0).max(initial=0.0))
    tve_l1, tvi_l1 = float(np.abs(at.c[:count]).sum()), float(np.maximum(at.c[count:], 0.0).sum())
    return pygransoStruct(
        x=column(at.x),
        f=at.f,
        f_grad=column(at.gradient),
        ci=column(at.c[count:]),
        ci_grad=tensor(at.jacobian[count:].T),
        ce=column(at.c[:count]),
        ce_grad=tensor(at.jacobian[:count].T),
        tvi=tvi,
        tve=tve,
        tv=max(tvi, tve),
        tvi_l1=tvi_l1,
        tvi_l1_grad=column(inequality_gradient),
        tve_l1=tve_l1,
        tve_l1_grad=column(equality_gradient),
        tv_l1=tvi_l1 + tve_l1,
        tv_l1_grad=column(inequality_gradient + equality_gradient),
        p=progress.penalty,
        p_grad=column(progress.mu * at.gradient + inequality_gradient + equality_gradient),
        mu=progress.mu,
        feasible_to_tol=at.inequality_violation <= tolerances.inequality and at.equality_violation <= tolerances.equality,
        stat_value=progress.stationarity,
    )


class Observer:
    """The callback of a run: prints each iterate and calls the user's halt_log_fn.

    An exception of halt_log_fn ends the run; it is stored and raised again after the run.
    """

    def __init__(
        self,
        unknowns: Unknowns,
        options: Options,
        tolerances: Tolerances,
        *,
        show: Callable[[State, Progress], None] | None,
        halt_log_fn: Callable[..., Any] | None,
    ) -> None:
        self._unknowns, self._options, self._tolerances = unknowns, options, tolerances
        self._show, self._halt = show, halt_log_fn
        self._before: Progress | None = None
        self._previous: Vector | None = None
        self.exception: BaseException | None = None

    def __call__(self, state: State) -> bool:
        """Report the current iterate; true ends the run."""
        progress = Progress.of(state, self._before, self._previous)
        self._before, self._previous = progress, state.current.x
        if self._show is not None:
            self._show(state, progress)
        if self._halt is None:
            return False
        try:
            return bool(self._halt(*self._arguments(state, progress)))
        except BaseException as error:  # including KeyboardInterrupt: raised again after the run
            self.exception = error
            return True

    def _arguments(self, state: State, progress: Progress) -> tuple[Any, ...]:
        unknowns, options, hessian = self._unknowns, self._options, state.hessian
        regularized = None
        if np.isfinite(options.regularization_threshold) and isinstance(hessian, FullMemory):
            lower = options.regularize_large_eigenvalues
            matrix = hessian.regularized(options.regularization_threshold, lower_large=lower).matrix
            regularized = unknowns.tensor(matrix)
        return (
            progress.iteration,
            unknowns.column(state.current.x),
            penalty_parts(state, progress, unknowns, self._tolerances),
            unknowns.column(progress.direction),
            lambda: as_tensors(hessian, unknowns.device, unknowns.dtype),
            regularized,
            progress.evaluations,
            progress.step,
            progress.gradients,
            unknowns.column(progress.stationarity_vector),
            progress.stationarity,
            progress.level,
        )
