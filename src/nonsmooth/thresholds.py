"""Every threshold of the method, in one place, with its meaning.

The table of what happens at half and twice each value is in the documentation of the method; `benchmarks/solver_ablation.py
--thresholds` measures it. Constants of linear algebra, which follow from the precision of numbers, stand with the code that
uses them, and so do sizes from which on other code is faster.
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
        0.1, 1e-4, 0.5, "Part of the predicted decrease that a full step must reach while null steps are possible."
    )
    least_magnitude: float = _threshold(1e-3, 1e-9, 1.0, "Sizes of x and of values below this do not shrink tolerances.")
    rounding_multiple: float = _threshold(100.0, 1.0, 1e4, "Rounding errors of a value of f in those of one number.")
    max_corrections: int = _threshold(3, 0, 10, "Newton steps of a second-order correction.")
    max_corrected_parts: int = _threshold(8, 1, 20, "Parts of a step, each half the one before, that are corrected in turn.")
    dependent_rows: float = _threshold(1e-5, 1e-8, 1e-2, "Relative singular value from which on rows count as dependent.")
    max_idle_steps: int = _threshold(3, 0, 20, "Steps that gradients alone judged, or the check alone found, in a row.")
    gradient_progress: float = _threshold(0.9, 0.1, 0.99, "Factor by which such a step must shorten the combined gradient.")

    # The penalty weight.
    max_weight: float = _threshold(1e12, 1e6, 1e15, "The largest penalty weight.")
    steering_slack: float = _threshold(1.5e-8, 0.0, 1e-4, "Predicted reduction of violation that may be missing, relative.")
    multiplier_at_bound: float = _threshold(0.99, 0.5, 1.0, "Part of the weight from which on a multiplier is at its bound.")
    weight_margin: float = _threshold(1.5, 1.0, 10.0, "Weight by the largest multiplier, where it is chosen by that.")
    excessive_weight: float = _threshold(5.0, 1.0, 100.0, "Weight by what is needed from which on it is too large.")
    max_excessive_iterations: int = _threshold(4, 1, 50, "Iterations in a row for which it may be, at first.")

    # The line search.
    search_reach: float = _threshold(1e5, 1e2, 1e10, "How far a search doubles steps before it calls a descent endless.")
    min_expansions: int = _threshold(10, 3, 50, "Doublings that every search may make.")
    runaway_expansions: int = _threshold(3, 1, 10, "Doublings after which a growing violation ends a search.")
    runaway_violation: float = _threshold(10.0, 1.5, 1e3, "Growth of the violation that does.")

    # Kinks.
    kink_memory: int = _threshold(3, 1, 20, "Iterations after a null step for which models use earlier gradients.")
    informative_rise: float = _threshold(100.0, 2.0, 1e6, "Rise at a trial point, in predicted decreases, that is near.")
    new_slope: float = _threshold(0.25, 0.01, 0.9, "Part of the predicted slope that a new cut must take away.")
    locality: float = _threshold(1e-3, 1e-8, 1.0, "Least error of a cut by the square of its distance.")
    smooth_share: float = _threshold(0.35, 0.05, 0.5, "Share of an error that both linearizations of a smooth function have.")
    refuted_margin: float = _threshold(2.0, 0.1, 100.0, "Height of a cut above f, in changes of f, that drops it.")
    jump: float = _threshold(0.3, 0.05, 0.9, "Relative change of a gradient that may be that to another piece.")
    distinct_piece: float = _threshold(0.1, 0.01, 0.5, "Relative change from which on gradients of known kinks are kept.")
    turning_share: float = _threshold(0.2, 0.01, 0.9, "Error of both linearizations by what the turn of the gradient allows.")
    similar: float = _threshold(1e-3, 1e-6, 0.1, "Relative difference up to which values, or gradients, count as the same.")
    violation_share: float = _threshold(0.05, 1e-3, 0.5, "Share of the unforeseen violation from which on a constraint counts.")
    max_variables_for_equality_pieces: int = _threshold(500, 50, 5000, "Variables up to which equalities have pieces.")

    # The quasi-Newton matrix.
    least_curvature: float = _threshold(1e-2, 1e-8, 0.5, "Least s·y of an update by y·H·y: how far the matrix may grow.")
    max_skipped_updates: int = _threshold(3, 0, 20, "Updates in a row that may be skipped.")
    first_step: float = _threshold(10.0, 0.1, 1e3, "Longest first step by 1 + |x0|.")
    max_full_memory: int = _threshold(2000, 100, 10_000, "Variables up to which the whole matrix is kept.")
    default_pairs: int = _threshold(20, 3, 100, "Pairs of limited memory.")

    # Units.
    natural_decades: float = _threshold(0.7, 0.0, 3.0, "Decades within which units count as natural.")
    max_unit_decades: float = _threshold(12.0, 3.0, 30.0, "Decades by which units are changed at most.")
    balancing_rounds: int = _threshold(8, 1, 50, "How often units of variables and of functions are chosen in turn.")

    # The box.
    max_faces: int = _threshold(20, 4, 100, "Faces of the box that are tried for one step.")

    # The end of a run.
    spare_digit: float = _threshold(0.1, 1e-3, 1.0, "Part of the tolerance that is aimed at.")
    decrease_multiple: float = _threshold(10.0, 0.1, 1e3, "Weight of the predicted decrease in the test for the end.")
    patience: int = _threshold(10, 1, 100, "Iterations at the tolerance, but not below, until the check is asked.")
    stalled_change: float = _threshold(1e-10, 0.0, 1e-6, "Relative change of the penalty that is none.")
    iterations_between_checks: int = _threshold(5, 1, 50, "Iterations after a check that failed until the next.")
    max_failures: int = _threshold(12, 1, 100, "Failed steps in a row until a run ends.")
    infeasibility_samples: int = _threshold(5, 1, 50, "Random points at each of four distances before INFEASIBLE is said.")
    unbounded_distance: float = _threshold(1e20, 1e6, 1e100, "Length of a ray, by 1 + |x|, that is called endless.")
    unbounded_fall: float = _threshold(1e13, 1e6, 1e100, "Fall of f by its first value from which on it may be endless.")

    # The independent check.
    neighbors: int = _threshold(3, 1, 20, "Points at random beside x whose gradients are compared with those at x.")
    approach: float = _threshold(0.01, 1e-4, 0.5, "How much nearer each point is that tells curvature from a jump.")
    approaches: int = _threshold(3, 1, 10, "How many there are.")
    max_gradients: int = _threshold(400, 20, 5000, "Gradients that are combined at most.")
    stalled_gradients: int = _threshold(40, 5, 400, "Gradients over which the residual must fall.")
    stalled_residual: float = _threshold(0.95, 0.5, 0.999, "Factor by which it must.")
    least_radius: float = _threshold(1e-5, 1e-9, 1e-1, "Smallest radius, by the first, within which gradients are gathered.")
    checked_weight: float = _threshold(10.0, 2.0, 1e3, "Weight of violations, by the gradients, along directions of descent.")
    max_multiplier: float = _threshold(1e7, 1e3, 1e12, "Multipliers by gradients beyond which they are not determined.")
    max_rounded_part: float = _threshold(1e-4, 1e-8, 1e-1, "Longest part of a combination times the precision of numbers.")
    max_turn: float = _threshold(0.002, 1e-5, 0.2, "How far gradients of constraints may turn within the radius, relative.")
    complementarity_multiple: float = _threshold(10.0, 1.0, 1e3, "Complementarity by the tolerance.")


THRESHOLDS = Thresholds()
"""Those in use."""


def meanings() -> dict[str, tuple[float, tuple[float, float], str]]:
    """Value, range and meaning of every threshold."""
    return {
        item.name: (getattr(THRESHOLDS, item.name), item.metadata["range"], item.metadata["meaning"])
        for item in fields(Thresholds)
    }
