"""Second-order correction of a full step that left curved constraints, or curved kinks of f.

An exact penalty function rejects full steps along curved constraints even very close to the solution (the Maratos effect).
Newton steps on the constraints violated at the trial point, with their gradients there, return to the constraints; a
correction with the gradients at x does not help where these change along the step, as those of a norm do. If the corrected
point is too far away for the objective, shorter steps are corrected in turn: a search along a straight line would leave the
constraints. Visible kinks on which the model places the step are treated as constraints u = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.step.model import Step
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Correction(NamedTuple):
    """The corrected trial point."""

    trial: Trial
    low_enough: bool
    """Whether its penalty is below the required value."""


def correct(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    step: Step,
    trial: Trial,
    needed: float,
    *,
    uses_pieces: bool,
    length: float = 1.0,
) -> Correction | None:
    """Correct a rejected trial point at some length of a step; None if constraints did not cause the rejection, or it fails.

    Where pieces of a constraint meet, a correction moves from one piece to another, and adding their gradients to the model
    works better. An exception is an equality that may be a norm that must vanish: it has more pieces than can be collected.
    """
    kinks = _left_kinks(trial, step) if length == 1.0 else None
    if len(at.c) == 0 and kinks is None:
        return None
    excess = trial.f - at.f - length * step.objective_change
    predicted = at.total_violation + length * (step.predicted_violation - at.total_violation)
    violation_excess = step.weight * (trial.total_violation - predicted)
    correctable = violation_excess if kinks is None else violation_excess + kinks.excess
    if not correctable > 0.5 * (excess + violation_excess):
        return None
    if uses_pieces and not np.abs(trial.c[: at.equalities]).max(initial=0.0) > 0.5 * trial.total_violation:
        return None
    restored = _restore(evaluate, trial, step, needed, kinks)
    return None if restored is None else Correction(restored, restored.penalty(step.weight) < needed)


def correct_shorter(
    evaluate: Callable[[Vector], Trial], at: Trial, step: Step, value: float, sufficient: float
) -> tuple[Trial, float] | None:
    """Halve the step until its corrected trial point is low enough; that point and its step length, or None."""
    length = 0.5
    for _ in range(THRESHOLDS.max_corrected_parts):
        needed = value + length * sufficient * step.decrease
        trial = evaluate(at.x + length * step.direction)
        if trial.penalty(step.weight) < needed and trial.differentiable:
            return trial, length
        correction = correct(evaluate, at, step, trial, needed, uses_pieces=False, length=length)
        if correction is None or correction.low_enough:
            return None if correction is None else (correction.trial, length)
        length *= 0.5
    return None


class _LeftKinks(NamedTuple):
    """Kinks of f on which the model placed the step, and which the trial point left."""

    rows: Matrix
    values: Vector
    excess: float
    """How far f lies above its linearization with the slopes that the model has chosen."""


def _left_kinks(trial: Trial, step: Step) -> _LeftKinks | None:
    reading = trial.reading if step.shares is not None and trial.finite else None
    if reading is None or step.shares is None or reading.hidden or not reading.finite:
        return None
    if reading.share_count != len(step.shares):
        return None
    terms, shares = reading.terms, step.shares[reading.terms.places]
    on_kink = terms.between_slopes(shares)
    if not on_kink.any():
        return None
    slopes = terms.left + shares * (terms.right - terms.left)
    excess = terms.sum(np.where(on_kink, terms.values, 0.0)) - float(slopes[on_kink] @ terms.values[on_kink])
    return _LeftKinks(terms.rows[on_kink], terms.values[on_kink], excess)


def _restore(
    evaluate: Callable[[Vector], Trial], trial: Trial, step: Step, needed: float, kinks: _LeftKinks | None
) -> Trial | None:
    """Take Newton steps to the constraints and kinks until the penalty is low enough; None if they do not help."""
    weight = step.weight
    for _ in range(THRESHOLDS.max_corrections):
        newton_step = _newton_step(trial, kinks) if trial.finite and trial.differentiable else None
        if newton_step is None:
            return None
        after = evaluate(trial.x - newton_step)
        if after.penalty(weight) < needed and after.differentiable:
            return after
        kinks_after = None if kinks is None else _left_kinks(after, step)
        change = 0.0 if kinks is None or kinks_after is None else kinks_after.excess - 0.5 * kinks.excess
        if not weight * (after.total_violation - 0.5 * trial.total_violation) + change < 0:
            return None
        trial, kinks = after, kinks_after
    return trial


def _newton_step(trial: Trial, kinks: _LeftKinks | None) -> Vector | None:
    """The least-norm Newton step for violated constraints and kinks; None if products of gradients overflow."""
    violated = np.concatenate([np.ones(trial.equalities, dtype=bool), trial.c[trial.equalities :] > 0])
    rows, values = trial.jacobian[violated], trial.c[violated]
    if kinks is not None:
        rows, values = np.concatenate([rows, kinks.rows]), np.concatenate([values, kinks.values])
    with np.errstate(over="ignore", invalid="ignore"):
        products = rows if len(rows) > len(trial.x) else rows @ rows.T
    if not np.isfinite(products).all():
        return None
    rank = THRESHOLDS.dependent_rows
    if len(rows) > len(trial.x):
        return np.asarray(np.linalg.lstsq(rows, values, rcond=rank)[0])
    return np.asarray(np.linalg.lstsq(products, values, rcond=rank**2)[0] @ rows)
