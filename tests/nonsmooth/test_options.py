"""Every option is checked when it is given."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from nonsmooth import NonsmoothError, OptionError, Options, QPError, minimize
from nonsmooth.options import Tolerances, check_names

POSITIVE_OR_NONE = (
    "stationarity_tolerance", "inequality_tolerance", "equality_tolerance", "sampling_radius", "step_tolerance",
)  # fmt: skip
POSITIVE = ("max_evaluations", "max_seconds", "penalty_parameter", "prescaling_threshold", "initial_step")
AT_LEAST_ZERO = ("relative_decrease_tolerance", "steering_inequality_margin", "max_nondescent_evaluations")
WHOLE = ("max_iterations", "steering_max_reductions", "max_null_steps", "penalty_retries", "first_penalty_retries", "seed")
WHOLE_FROM_ONE = ("max_search_evaluations", "random_attempts")
WHOLE_FROM_ONE_OR_NONE = ("memory", "gradient_samples")
FRACTIONS = ("steering_violation_fraction", "steering_penalty_factor", "penalty_retry_factor", "sufficient_decrease")

WRONG: list[tuple[str, Any]] = [
    *((name, value) for name in POSITIVE_OR_NONE for value in (0, -1e-6, math.nan, "1e-6", True)),
    *((name, value) for name in POSITIVE for value in (0, -1.0, math.nan, None, "1", False)),
    *((name, value) for name in AT_LEAST_ZERO for value in (-1, math.nan, None, "0")),
    *((name, value) for name in WHOLE for value in (-1, 1.5, 10.0, math.inf, None, "10", True)),
    *((name, value) for name in WHOLE_FROM_ONE for value in (0, -1, 2.0, None, True)),
    *((name, value) for name in WHOLE_FROM_ONE_OR_NONE for value in (0, -1, 2.0, "5", True)),
    *((name, value) for name in FRACTIONS for value in (0.0, 1.0, -0.5, 2, math.nan)),
    *(("damping", value) for value in (-0.1, 1.0, math.nan)),
    *(("curvature", value) for value in (0.0, 1e-5, 1e-4, 1.0, math.nan)),
    *(("regularization_threshold", value) for value in (0.5, -1, math.nan)),
    *(("target_value", value) for value in (math.nan, None, "low")),
    *(("steering_model", value) for value in ("mean", None, 1)),
    *(("first_fallback", value) for value in (-1, 5, None, "0")),
    *(("last_fallback", value) for value in (-1, 5, None)),
    *(("qp_solver", value) for value in ("quadprog", None, "")),
]

RIGHT: list[tuple[str, Any]] = [
    *((name, value) for name in POSITIVE_OR_NONE for value in (None, 1e-12, 1, np.float64(1e-3))),
    *((name, value) for name in ("max_evaluations", "max_seconds", "prescaling_threshold") for value in (1, 0.5, math.inf)),
    *((name, value) for name in AT_LEAST_ZERO for value in (0, 3)),
    *((name, value) for name in WHOLE for value in (0, 7, np.int64(3))),
    *((name, value) for name in WHOLE_FROM_ONE for value in (1, 100)),
    *((name, value) for name in WHOLE_FROM_ONE_OR_NONE for value in (None, 1, np.int32(5))),
    *((name, value) for name in FRACTIONS for value in (1e-3, 0.4)),
    ("damping", 0), ("damping", 0.9), ("curvature", 0.9), ("regularization_threshold", 1), ("target_value", -math.inf),
    ("target_value", 3), ("steering_model", "max"), ("first_fallback", 4), ("last_fallback", 0), ("qp_solver", "daqp"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_is_named(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"^{name} must be .*, not {value!r}$"):
        Options(**{name: value})


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_a_right_value_is_kept(name: str, value: Any) -> None:
    assert getattr(Options(**{name: value}), name) == value


@pytest.mark.parametrize(
    "name",
    ["damping", "curvature", "regularization_threshold", "sufficient_decrease", "steering_violation_fraction",
     "steering_penalty_factor", "penalty_retry_factor"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["much", None, [0.5]])
def test_what_is_no_number_is_refused_in_the_same_way(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name):
        Options(**{name: value})


@pytest.mark.parametrize("name", ["penalty_parameter", "initial_step"])
def test_what_must_be_finite_is_not_infinite(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        Options(**{name: math.inf})


@pytest.mark.parametrize(("name", "value"), [("first_fallback", 2.0), ("last_fallback", 3.5), ("first_fallback", True)])
def test_kinds_of_directions_are_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name):
        Options(**{name: value})


def test_fallbacks_are_in_order() -> None:
    assert Options(first_fallback=2, last_fallback=2).first_fallback == 2
    with pytest.raises(OptionError, match=r"last_fallback must be between first_fallback \(3\) and 4, not 2"):
        Options(first_fallback=3, last_fallback=2)


def test_curvature_lies_above_sufficient_decrease() -> None:
    with pytest.raises(OptionError, match=r"curvature must be between sufficient_decrease \(0\.95\) and 1, not 0\.9"):
        Options(sufficient_decrease=0.95)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("max_iteration", "max_iterations"),
        ("maxiterations", "max_iterations"),
        ("qpsolver", "qp_solver"),
        ("dampning", "damping"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_right_one(wrong: str, right: str) -> None:
    message = f"there is no option '{wrong}'; did you mean '{right}'\\?"
    with pytest.raises(OptionError, match=message):
        Options(**{wrong: 1})
    with pytest.raises(OptionError, match=message):
        Options().replace(**{wrong: 1})
    with pytest.raises(OptionError, match=message):
        minimize(lambda x: x.sum(), None, **{wrong: 1})


def test_a_name_unlike_any_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(OptionError, match="there is no option 'zzz'; the options are stationarity_tolerance, "):
        check_names(["zzz"])


def test_replace_changes_what_it_is_told_and_checks_it() -> None:
    options = Options(max_iterations=7, damping=0.1)
    changed = options.replace(damping=0.3)
    assert (options.damping, changed.damping, changed.max_iterations) == (0.1, 0.3, 7)
    with pytest.raises(OptionError, match="damping"):
        options.replace(damping=2)


def test_options_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().damping = 0.5  # type: ignore[misc]


def test_options_given_by_name_win_over_those_given_as_a_whole() -> None:
    import torch

    result = minimize(
        lambda x: ((x - 3) ** 4).sum() + x.abs().sum(),
        torch.zeros(2).double(),
        options=Options(max_iterations=1),
        max_iterations=2,
    )
    assert result.iterations == 2


def test_defaults_follow_the_precision() -> None:
    double, single = (Tolerances.of(Options(), single=flag) for flag in (False, True))
    assert (double.stationarity, double.inequality, double.equality, double.radius) == (1e-6, 1e-6, 1e-6, 1e-6)
    assert (single.stationarity, single.inequality, single.equality, single.radius) == (1e-3, 1e-5, 1e-5, 1e-3)
    assert double.step == 1e-12 and single.step == 1e-6
    assert double.noise < single.noise


def test_given_tolerances_hold_in_any_precision() -> None:
    options = Options(
        stationarity_tolerance=1e-4,
        inequality_tolerance=1e-3,
        equality_tolerance=1e-2,
        sampling_radius=1e-1,
        step_tolerance=1e-5,
    )
    for single in (False, True):
        found = Tolerances.of(options, single=single)
        assert (found.stationarity, found.inequality, found.equality, found.radius, found.step) == (1e-4, 1e-3, 1e-2, 0.1, 1e-5)


def test_errors_can_be_caught_together() -> None:
    assert issubclass(OptionError, NonsmoothError) and issubclass(OptionError, ValueError)
    assert issubclass(QPError, NonsmoothError)
