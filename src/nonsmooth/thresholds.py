"""Every threshold of the method, in one place, with its meaning.

The documentation of the method has a table of the effect of halving and doubling each value; `benchmarks/solver_ablation.py
--thresholds` measures it. Constants of linear algebra, which follow from floating-point precision, are next to the code that
uses them. So are the sizes above which other code is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _threshold(value: float, low: float, high: float, meaning: str) -> Any:
    return field(default=value, metadata={"range": (low, high), "meaning": meaning})


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of the method.

    >>> Thresholds().serious_decrease
    0.1
    """

    # Steps.
    serious_decrease: float = _threshold(
        0.1, 1e-4, 0.5, "Fraction of the predicted decrease that a full step must reach while null steps are possible."
    )
    least_magnitude: float = _threshold(
        1e-3, 1e-9, 1.0, "Sizes of x and of values below this do not reduce tolerances further."
    )
    rounding_multiple: float = _threshold(
        100.0, 1.0, 1e4, "Rounding error of a value of f, as a multiple of the relative precision."
    )
    max_corrections: int = _threshold(3, 0, 10, "Maximum number of Newton steps in a second-order correction.")
    max_corrected_parts: int = _threshold(
        8, 1, 20, "Maximum number of step lengths, each half the one before, that are corrected."
    )
    dependent_rows: float = _threshold(1e-5, 1e-8, 1e-2, "Relative singular value below which rows count as dependent.")
    max_idle_steps: int = _threshold(3, 0, 20, "Consecutive steps accepted by gradients alone, or found only by the check.")
    gradient_progress: float = _threshold(
        0.9, 0.1, 0.99, "Factor by which a step accepted by gradients alone must shorten the gradient."
    )

    # The penalty weight.
    max_weight: float = _threshold(1e12, 1e6, 1e15, "Largest penalty weight.")
    steering_slack: float = _threshold(
        1.5e-8, 0.0, 1e-4, "Relative shortfall of the predicted reduction of the violation that is accepted."
    )
    multiplier_at_bound: float = _threshold(
        0.99, 0.5, 1.0, "Fraction of the penalty weight at which a multiplier counts as at its bound."
    )
    weight_margin: float = _threshold(
        1.5, 1.0, 10.0, "Ratio of the penalty weight to the largest multiplier when it is derived from that."
    )
    excessive_weight: float = _threshold(
        5.0, 1.0, 100.0, "Ratio of the penalty weight to the required weight above which it is too large."
    )
    max_excessive_iterations: int = _threshold(
        4, 1, 50, "Consecutive iterations for which the weight may be too large, at first."
    )

    # The line search.
    search_reach: float = _threshold(
        1e5, 1e2, 1e10, "Length up to which a line search doubles a step before it reports an endless descent."
    )
    min_expansions: int = _threshold(10, 3, 50, "Number of doublings that every line search may make.")
    runaway_expansions: int = _threshold(3, 1, 10, "Doublings after which a growing violation ends a line search.")
    runaway_violation: float = _threshold(10.0, 1.5, 1e3, "Factor of growth of the violation that ends it.")

    # Kinks.
    kink_memory: int = _threshold(3, 1, 20, "Iterations after a null step during which models use earlier gradients.")
    informative_rise: float = _threshold(
        100.0, 2.0, 1e6, "Largest rise at a trial point, in predicted decreases, for its gradient to be used."
    )
    new_slope: float = _threshold(0.25, 0.01, 0.9, "Fraction of the predicted slope that a new cut must remove.")
    locality: float = _threshold(1e-3, 1e-8, 1.0, "Smallest error of a cut, relative to the square of its distance.")
    smooth_share: float = _threshold(
        0.35, 0.05, 0.5, "Smallest share of each linearization in the total error for a smooth function."
    )
    refuted_margin: float = _threshold(2.0, 0.1, 100.0, "Height of a cut above f, in changes of f, above which it is dropped.")
    jump: float = _threshold(0.3, 0.05, 0.9, "Relative change of a gradient above which it may belong to another piece.")
    distinct_piece: float = _threshold(
        0.1, 0.01, 0.5, "Relative change above which gradients of constraints with known kinks are stored."
    )
    turning_share: float = _threshold(
        0.2, 0.01, 0.9, "Least error of both linearizations for curvature, relative to what the gradients allow."
    )
    similar: float = _threshold(1e-3, 1e-6, 0.1, "Relative difference up to which values, or gradients, count as equal.")
    violation_share: float = _threshold(0.05, 1e-3, 0.5, "Share of the unpredicted violation above which a constraint counts.")
    max_variables_for_equality_pieces: int = _threshold(
        500, 50, 5000, "Largest number of variables for which equalities have pieces."
    )

    # The quasi-Newton matrix.
    least_curvature: float = _threshold(
        1e-2, 1e-8, 0.5, "Smallest ratio of s·y to y·H·y in an update, which limits the growth of the matrix."
    )
    max_skipped_updates: int = _threshold(3, 0, 20, "Maximum number of consecutive skipped updates.")
    first_step: float = _threshold(10.0, 0.1, 1e3, "Longest first step, relative to max(1, |x0|).")
    max_full_memory: int = _threshold(2000, 100, 10_000, "Largest number of variables for which the full matrix is stored.")
    default_pairs: int = _threshold(20, 3, 100, "Number of pairs in limited-memory BFGS.")

    # Units.
    natural_decades: float = _threshold(0.7, 0.0, 3.0, "Decades within which units count as natural.")
    max_unit_decades: float = _threshold(12.0, 3.0, 30.0, "Largest change of a unit, in decades.")
    balancing_rounds: int = _threshold(8, 1, 50, "Rounds in which units of variables and of functions are chosen in turn.")

    # The box.
    max_faces: int = _threshold(20, 4, 100, "Maximum number of faces of the box tried for one step.")

    # The end of a run.
    spare_digit: float = _threshold(0.1, 1e-3, 1.0, "Fraction of the tolerance that the solver aims for.")
    decrease_multiple: float = _threshold(10.0, 0.1, 1e3, "Weight of the predicted decrease in the termination test.")
    patience: int = _threshold(10, 1, 100, "Iterations at the tolerance, but not well below it, until the check runs.")
    stalled_change: float = _threshold(1e-10, 0.0, 1e-6, "Relative change of the penalty function that counts as none.")
    iterations_between_checks: int = _threshold(5, 1, 50, "Iterations between a failed check and the next.")
    max_failures: int = _threshold(12, 1, 100, "Maximum number of consecutive failed steps.")
    infeasibility_samples: int = _threshold(5, 1, 50, "Random points at each of four distances before the status INFEASIBLE.")
    unbounded_distance: float = _threshold(
        1e20, 1e6, 1e100, "Length of a ray, relative to max(1, |x|), that counts as infinite."
    )
    unbounded_fall: float = _threshold(
        1e13, 1e6, 1e100, "Decrease of f, relative to its first value, above which f may be unbounded."
    )

    # The independent check.
    neighbors: int = _threshold(3, 1, 20, "Random points near x whose gradients are compared with those at x.")
    approach: float = _threshold(
        0.01, 1e-4, 0.5, "Ratio of successive distances of the points that distinguish curvature from a jump."
    )
    approaches: int = _threshold(3, 1, 10, "Number of these points.")
    max_gradients: int = _threshold(400, 20, 5000, "Maximum number of gradients combined.")
    stalled_gradients: int = _threshold(40, 5, 400, "Number of gradients over which the residual must fall.")
    stalled_residual: float = _threshold(0.95, 0.5, 0.999, "Factor by which the residual must fall over them.")
    least_radius: float = _threshold(1e-5, 1e-9, 1e-1, "Smallest sampling radius, relative to the first.")
    checked_weight: float = _threshold(
        10.0, 2.0, 1e3, "Weight of violations along descent directions, relative to the gradients."
    )
    max_multiplier: float = _threshold(
        1e7, 1e3, 1e12, "Ratio of multipliers to gradients above which they count as undetermined."
    )
    max_rounded_part: float = _threshold(1e-4, 1e-8, 1e-1, "Longest part of a combination, times the relative precision.")
    max_turn: float = _threshold(0.002, 1e-5, 0.2, "Largest relative turn of constraint gradients within the radius.")
    complementarity_multiple: float = _threshold(10.0, 1.0, 1e3, "Largest complementarity, relative to its tolerance.")


THRESHOLDS = Thresholds()
"""The thresholds that the solver uses."""


def meanings() -> dict[str, tuple[float, tuple[float, float], str]]:
    """The value, the range and the meaning of every threshold."""
    return {
        item.name: (getattr(THRESHOLDS, item.name), item.metadata["range"], item.metadata["meaning"])
        for item in fields(Thresholds)
    }
