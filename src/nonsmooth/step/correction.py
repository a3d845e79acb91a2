"""Second-order correction: a full step that left curved constraints is brought back to them.

An exact penalty function refuses full steps along curved constraints, however near the solution (the Maratos effect). Newton
steps on the constraints violated at the trial point, with their gradients there, bring it back; a correction with the
gradients at x is no help where these turn on the way, as those of a norm do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.step.model import Step
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]


def correct(
    evaluate: Callable[[Vector], Trial], at: Trial, step: Step, trial: Trial, needed: float, *, among_pieces: bool
) -> Trial | None:
    """A point near a failed trial point whose penalty is below what is `needed`; None where constraints are not to blame.

    Where pieces of a constraint meet, a correction leaves one for another, and their gradients do better; but an equality may
    be a norm that is to vanish, with more pieces than can be known.
    """
    excess = trial.f - at.f - step.objective_change
    bending = step.weight * (trial.total_violation - step.predicted_violation)
    if len(at.c) == 0 or not bending > 0.5 * (excess + bending):
        return None
    if among_pieces and not np.abs(trial.c[: at.equalities]).max(initial=0.0) > 0.5 * trial.total_violation:
        return None
    for _ in range(THRESHOLDS.max_corrections):
        back = _back_to_constraints(trial) if trial.finite and trial.differentiable else None
        if back is None:
            return None
        after = evaluate(trial.x - back)
        if after.penalty(step.weight) < needed and after.differentiable:
            return after
        if not after.total_violation < 0.5 * trial.total_violation:
            return None
        trial = after
    return None


def _back_to_constraints(trial: Trial) -> Vector | None:
    """The shortest Newton step to the violated constraints; None where their gradients are too long to be multiplied."""
    violated = np.concatenate([np.ones(trial.equalities, dtype=bool), trial.c[trial.equalities :] > 0])
    rows, values = trial.jacobian[violated], trial.c[violated]
    with np.errstate(over="ignore", invalid="ignore"):
        products = rows if len(rows) > len(trial.x) else rows @ rows.T
    if not np.isfinite(products).all():
        return None
    rank = THRESHOLDS.dependent_rows
    if len(rows) > len(trial.x):
        return np.asarray(np.linalg.lstsq(rows, values, rcond=rank)[0])
    return np.asarray(np.linalg.lstsq(products, values, rcond=rank**2)[0] @ rows)
