"""PyGRANSO's options: how to check each, and the corresponding field of `Options`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nonsmooth.errors import OptionError

Converter = Callable[[str, Any], Any]


def number(name: str, value: Any) -> float:
    """A number, also as a tensor or an array with one element.

    >>> number("opt_tol", torch.tensor([[0.5]]))
    0.5
    """
    if isinstance(value, torch.Tensor | np.ndarray) and math.prod(value.shape) == 1:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number) or math.isnan(float(value)):
        raise OptionError(f"{name} must be a number, not {value!r}")
    return float(value)


def tolerance(name: str, value: Any) -> float:
    """A number of at least 0; 0 becomes the smallest normal positive number.

    >>> tolerance("viol_ineq_tol", 0) > 0
    True
    """
    result = number(name, value)
    if result < 0:
        raise OptionError(f"{name} must be a number of at least 0, not {value!r}")
    return max(result, float(np.finfo(np.float64).tiny))


def whole(name: str, value: Any) -> int:
    """A whole number, also given as 1e3; infinity becomes a billion.

    >>> whole("maxit", 1e3), whole("maxit", math.inf)
    (1000, 1000000000)
    """
    result = number(name, value)
    if result == math.inf:
        return 10**9
    if result != round(result):
        raise OptionError(f"{name} must be a whole number, not {value!r}")
    return int(result)


def within(low: float, high: float) -> Converter:
    """A converter for whole numbers within limits.

    >>> within(9, 23)("print_width", 14)
    14
    """

    def convert(name: str, value: Any) -> int:
        result = whole(name, value)
        if not low <= result <= high:
            limits = f"between {low:g} and {high:g}" if high < math.inf else f"of at least {low:g}"
            raise OptionError(f"{name} must be a whole number {limits}, not {value!r}")
        return result

    return convert


def flag(name: str, value: Any) -> bool:
    """True or False, also given as 1 or 0.

    >>> flag("scaleH0", 0)
    False
    """
    if isinstance(value, torch.Tensor | np.ndarray) and math.prod(value.shape) == 1:
        value = value.item()
    if not isinstance(value, bool | np.bool_ | int | float) or value not in (0, 1):
        raise OptionError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def function(name: str, value: Any) -> Any:
    """A callable, or None."""
    if value is not None and not callable(value):
        raise OptionError(f"{name} must be a function or None, not {value!r}")
    return value


def device(name: str, value: Any) -> torch.device:
    """An available device, given by name or as an object.

    >>> device("torch_device", "cpu")
    device(type='cpu')
    """
    try:
        result = torch.device(value)
        torch.empty(0, device=result)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise OptionError(f"torch_device={value!r} cannot be used: {error}") from error
    return result


def anything(name: str, value: Any) -> Any:
    """Any value: it is checked later, when the problem is known."""
    return value


@dataclass(frozen=True)
class Entry:
    """One of PyGRANSO's options."""

    convert: Converter
    target: str | None = None
    """The field of `Options` that gets the value unchanged; None if the option needs its own code, or has no effect."""
    used: bool = True
    """False if the option is accepted but has no effect here."""


def _none(convert: Converter = flag) -> Entry:
    return Entry(convert, used=False)


OPTIONS: dict[str, Entry] = {
    "x0": Entry(anything),
    "mu0": Entry(number, "penalty_parameter"),
    "H0": Entry(anything),
    "checkH0": Entry(flag),
    "scaleH0": Entry(flag, "scale_initial_hessian"),
    "bfgs_damping": Entry(number, "damping"),
    "limited_mem_size": Entry(within(0, math.inf)),
    "limited_mem_fixed_scaling": Entry(flag, "fixed_scaling"),
    "limited_mem_warm_start": Entry(anything),
    "prescaling_threshold": Entry(number, "prescaling_threshold"),
    "prescaling_info_msg": _none(),
    "opt_tol": Entry(tolerance, "stationarity_tolerance"),
    "rel_tol": Entry(number, "relative_decrease_tolerance"),
    "step_tol": Entry(tolerance, "step_tolerance"),
    "viol_ineq_tol": Entry(tolerance, "inequality_tolerance"),
    "viol_eq_tol": Entry(tolerance, "equality_tolerance"),
    "ngrad": Entry(whole, "gradient_samples"),
    "evaldist": Entry(tolerance, "sampling_radius"),
    "maxit": Entry(whole, "max_iterations"),
    "maxclocktime": Entry(number, "max_seconds"),
    "fvalquit": Entry(number, "target_value"),
    "halt_on_quadprog_error": Entry(flag, "stop_at_qp_failure"),
    "halt_on_linesearch_bracket": Entry(flag, "stop_at_failed_search"),
    "min_fallback_level": Entry(whole, "first_fallback"),
    "max_fallback_level": Entry(whole, "last_fallback"),
    "max_random_attempts": Entry(whole, "random_attempts"),
    "steering_l1_model": Entry(flag),
    "steering_ineq_margin": Entry(number, "steering_inequality_margin"),
    "steering_maxit": Entry(whole, "steering_max_reductions"),
    "steering_c_viol": Entry(number, "steering_violation_fraction"),
    "steering_c_mu": Entry(number, "steering_penalty_factor"),
    "stat_l2_model": _none(),
    "regularize_threshold": Entry(number, "regularization_threshold"),
    "regularize_max_eigenvalues": Entry(flag, "regularize_large_eigenvalues"),
    "quadprog_info_msg": _none(),
    "QPsolver": Entry(anything, "qp_solver"),
    "wolfe1": Entry(number, "sufficient_decrease"),
    "wolfe2": Entry(number, "curvature"),
    "linesearch_nondescent_maxit": Entry(whole, "max_nondescent_evaluations"),
    "linesearch_reattempts": Entry(whole, "penalty_retries"),
    "linesearch_reattempts_x0": Entry(whole, "first_penalty_retries"),
    "linesearch_c_mu": Entry(number, "penalty_retry_factor"),
    "linesearch_c_mu_x0": _none(number),
    "linesearch_maxit": Entry(whole, "max_search_evaluations"),
    "init_step_size": Entry(number, "initial_step"),
    "is_backtrack_linesearch": Entry(flag, "backtracking_only"),
    "search_direction_rescaling": Entry(flag, "normalize_direction"),
    "disable_terminationcode_6": Entry(flag, "accept_failed_search"),
    "double_precision": Entry(flag),
    "globalAD": Entry(flag),
    "torch_device": Entry(device),
    "print_level": Entry(within(0, 3)),
    "print_frequency": Entry(within(1, math.inf)),
    "print_width": Entry(within(9, 23)),
    "print_ascii": Entry(flag),
    "print_use_orange": _none(),
    "halt_log_fn": Entry(function),
    "debug_mode": _none(),
}
"""All options by PyGRANSO's names."""
