"""Second-order correction: a full step that left curved constraints, or curved kinks of f, is brought back to them.

An exact penalty function refuses full steps along curved constraints, however near the solution (the Maratos effect). Newton
steps on the constraints violated at the trial point, with their gradients there, bring it back; a correction with the
gradients at x is no help where these turn on the way, as those of a norm do. Where the corrected point is too far for the
objective, shorter steps are corrected in turn: a search along a straight line would leave the constraints. Kinks that can be
seen, and on which the model holds the step, are constraints of this kind: u = 0.
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
    """A trial point that was brought back to the constraints."""

    trial: Trial
    low_enough: bool
    """Whether its penalty is below what was needed."""


def correct(
    evaluate: Callable[[Vector], Trial],
    at: Trial,
    step: Step,
    trial: Trial,
    needed: float,
    *,
    among_pieces: bool,
    length: float = 1.0,
) -> Correction | None:
    """A failed trial point at some length of a step, brought back; None where constraints are not to blame, or it is no help.

    Where pieces of a constraint meet, a correction leaves one for another, and their gradients do better; but an equality may
    be a norm that is to vanish, with more pieces than can be known.
    """
    kinks = _left_kinks(trial, step) if length == 1.0 else None
    if len(at.c) == 0 and kinks is None:
        return None
    excess = trial.f - at.f - length * step.objective_change
    predicted = at.total_violation + length * (step.predicted_violation - at.total_violation)
    bending = step.weight * (trial.total_violation - predicted)
    blamed = bending if kinks is None else bending + kinks.excess
    if not blamed > 0.5 * (excess + bending):
        return None
    if among_pieces and not np.abs(trial.c[: at.equalities]).max(initial=0.0) > 0.5 * trial.total_violation:
        return None
    restored = _restore(evaluate, trial, step, needed, kinks)
    return None if restored is None else Correction(restored, restored.penalty(step.weight) < needed)


def correct_parts(
    evaluate: Callable[[Vector], Trial], at: Trial, step: Step, value: float, sufficient: float
) -> tuple[Trial, float] | None:
    """The longest part of a step, of halves of halves, that is low enough when it is brought back, and how long it is."""
    length = 0.5
    for _ in range(THRESHOLDS.max_corrected_parts):
        needed = value + length * sufficient * step.decrease
        trial = evaluate(at.x + length * step.direction)
        if trial.penalty(step.weight) < needed and trial.differentiable:
            return trial, length
        found = correct(evaluate, at, step, trial, needed, among_pieces=False, length=length)
        if found is None or found.low_enough:
            return None if found is None else (found.trial, length)
        length *= 0.5
    return None


class _LeftKinks(NamedTuple):
    """Kinks of f on which the model held a step that left them."""

    rows: Matrix
    values: Vector
    excess: float
    """What f is above what the slopes that the model has chosen make of it."""


def _left_kinks(trial: Trial, step: Step) -> _LeftKinks | None:
    reading = trial.reading if step.shares is not None and trial.finite else None
    if reading is None or step.shares is None or reading.hidden or reading.places != len(step.shares) or not reading.finite:
        return None
    terms, shares = reading.terms, step.shares[reading.terms.places]
    held = terms.held(shares)
    if not held.any():
        return None
    slopes = terms.left + shares * (terms.right - terms.left)
    excess = terms.sum(np.where(held, terms.values, 0.0)) - float(slopes[held] @ terms.values[held])
    return _LeftKinks(terms.rows[held], terms.values[held], excess)


def _restore(
    evaluate: Callable[[Vector], Trial], trial: Trial, step: Step, enough: float, kinks: _LeftKinks | None
) -> Trial | None:
    """Newton steps to the constraints until the penalty is low enough or no violation is left; None where they do not help.

    They lead back to kinks too.
    """
    weight = step.weight
    for _ in range(THRESHOLDS.max_corrections):
        back = _back_to_constraints(trial, kinks) if trial.finite and trial.differentiable else None
        if back is None:
            return None
        after = evaluate(trial.x - back)
        if after.penalty(weight) < enough and after.differentiable:
            return after
        again = None if kinks is None else _left_kinks(after, step)
        left = 0.0 if kinks is None or again is None else again.excess - 0.5 * kinks.excess
        if not weight * (after.total_violation - 0.5 * trial.total_violation) + left < 0:
            return None
        trial, kinks = after, again
    return trial


def _back_to_constraints(trial: Trial, kinks: _LeftKinks | None) -> Vector | None:
    """The shortest Newton step to violated constraints and to kinks; None where gradients are too long to be multiplied."""
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
