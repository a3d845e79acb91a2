"""PyGRANSO's options: accepted, checked, and given the meaning they have there."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nonsmooth.errors import OptionError
from nonsmooth.pygranso import pygranso, pygransoStruct
from nonsmooth.pygranso.option_table import OPTIONS
from nonsmooth.pygranso.settings import Settings

DOCUMENTED: dict[str, Any] = {
    "x0": torch.ones(2, 1), "mu0": 1, "H0": torch.eye(2), "checkH0": True, "scaleH0": True, "bfgs_damping": 1e-4,
    "limited_mem_size": 0, "limited_mem_fixed_scaling": True, "limited_mem_warm_start": None,
    "prescaling_threshold": math.inf, "prescaling_info_msg": True, "opt_tol": 1e-8, "rel_tol": 0, "step_tol": 1e-12,
    "viol_ineq_tol": 1e-6, "viol_eq_tol": 1e-6, "ngrad": 4, "evaldist": 1e-4, "maxit": 1000, "maxclocktime": math.inf,
    "fvalquit": -math.inf, "halt_on_quadprog_error": False, "halt_on_linesearch_bracket": True, "min_fallback_level": 0,
    "max_fallback_level": 3, "max_random_attempts": 5, "steering_l1_model": True, "steering_ineq_margin": 1e-6,
    "steering_maxit": 10, "steering_c_viol": 0.1, "steering_c_mu": 0.9, "stat_l2_model": True,
    "regularize_threshold": math.inf, "regularize_max_eigenvalues": False, "quadprog_info_msg": True, "QPsolver": "osqp",
    "wolfe1": 1e-4, "wolfe2": 0.5, "linesearch_nondescent_maxit": 0, "linesearch_reattempts": 0,
    "linesearch_reattempts_x0": 10, "linesearch_c_mu": 0.5, "linesearch_c_mu_x0": 0.5, "linesearch_maxit": math.inf,
    "init_step_size": 1, "is_backtrack_linesearch": False, "search_direction_rescaling": False,
    "disable_terminationcode_6": False, "double_precision": True, "globalAD": True, "torch_device": "cpu", "print_level": 0,
    "print_frequency": 1, "print_width": 14, "print_ascii": False, "print_use_orange": True, "halt_log_fn": None,
    "debug_mode": False,
}  # fmt: skip
"""Every documented option with its documented default."""


def absolute(X: Any) -> list[Any]:  # noqa: N803
    return [abs(X.x).sum() + (X.x**2).sum(), pygransoStruct(c=1 - X.x[0]), None]


def run(**options: Any) -> pygransoStruct:
    return pygranso({"x": [2]}, absolute, pygransoStruct(**{"print_level": 0, "x0": torch.tensor([2.0, 1.0]), **options}))


def test_all_documented_options_are_known() -> None:
    assert set(DOCUMENTED) == set(OPTIONS)


def test_documented_defaults_run_together_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        answer = run(**{name: value for name, value in DOCUMENTED.items() if name != "x0"})
    assert answer.final.f == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_documented_default_runs_alone(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert run(**{name: DOCUMENTED[name]}).final.f == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("maxit", 7.0, "max_iterations", 7),
        ("maxit", math.inf, "max_iterations", 10**9),
        ("opt_tol", 1e-5, "stationarity_tolerance", 1e-5),
        ("opt_tol", 1e-14, "stationarity_tolerance", 1e-8),
        ("opt_tol", 0, "stationarity_tolerance", 1e-8),
        ("viol_ineq_tol", torch.tensor(1e-4), "inequality_tolerance", pytest.approx(1e-4)),
        ("viol_eq_tol", np.float32(0.5), "equality_tolerance", 0.5),
        ("evaldist", 1e-3, "sampling_radius", 1e-3),
        ("ngrad", 12, "gradient_samples", 12),
        ("mu0", 10, "penalty_parameter", 10),
        ("mu0", 0, "penalty_parameter", 1e-8),
        ("limited_mem_size", 5, "memory", 5),
        ("limited_mem_size", 0, "memory", None),
        ("limited_mem_fixed_scaling", True, "fixed_scaling", True),
        ("bfgs_damping", 0, "damping", 0),
        ("scaleH0", False, "scale_initial_hessian", False),
        ("rel_tol", 1e-3, "relative_decrease_tolerance", 1e-3),
        ("step_tol", 1e-9, "step_tolerance", 1e-9),
        ("fvalquit", 3, "target_value", 3),
        ("maxclocktime", 5, "max_seconds", 5),
        ("steering_l1_model", False, "steering_model", "max"),
        ("steering_ineq_margin", math.inf, "steering_inequality_margin", math.inf),
        ("steering_c_viol", 0.9, "steering_violation_fraction", 0.9),
        ("steering_c_mu", 0.1, "steering_penalty_factor", 0.1),
        ("steering_maxit", 3, "steering_max_reductions", 3),
        ("wolfe1", 0.1, "sufficient_decrease", 0.1),
        ("wolfe2", 0.9, "curvature", 0.9),
        ("linesearch_maxit", 9, "max_search_evaluations", 9),
        ("linesearch_reattempts", 2, "penalty_retries", 2),
        ("linesearch_reattempts_x0", 3, "first_penalty_retries", 3),
        ("linesearch_c_mu", 0.2, "penalty_retry_factor", 0.2),
        ("linesearch_c_mu_x0", 0.2, "penalty_retry_factor", 0.2),
        ("linesearch_nondescent_maxit", 4, "max_nondescent_evaluations", 4),
        ("init_step_size", 0.5, "initial_step", 0.5),
        ("is_backtrack_linesearch", True, "backtracking_only", True),
        ("search_direction_rescaling", 1, "normalize_direction", True),
        ("disable_terminationcode_6", True, "accept_failed_search", True),
        ("halt_on_linesearch_bracket", True, "stop_at_failed_search", True),
        ("halt_on_quadprog_error", True, "stop_at_qp_failure", True),
        ("min_fallback_level", 1, "first_fallback", 1),
        ("max_fallback_level", 3, "last_fallback", 3),
        ("max_random_attempts", 2, "random_attempts", 2),
        ("prescaling_threshold", 100, "prescaling_threshold", 100),
        ("regularize_threshold", 1e8, "regularization_threshold", 1e8),
        ("regularize_threshold", -math.inf, "regularization_threshold", math.inf),
        ("regularize_max_eigenvalues", True, "regularize_large_eigenvalues", True),
        ("QPsolver", "osqp", "qp_solver", "osqp"),
        ("QPsolver", "DAQP", "qp_solver", "daqp"),
    ],
)
def test_meaning(name: str, value: Any, field: str, expected: Any) -> None:
    assert getattr(Settings.of({name: value}).options(2), field) == expected


def test_defaults_are_documented_ones_where_ours_are_not_better() -> None:
    options = Settings.of(None).options(2)
    assert options.max_iterations == 1000 and options.stationarity_tolerance == 1e-8
    assert options.damping == 0.2 and options.sampling_radius is None and options.last_fallback == 4
    assert Settings.of({"double_precision": False}).options(2).stationarity_tolerance is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxit", -1), ("maxit", 1.5), ("maxit", "many"), ("maxit", True), ("opt_tol", -1), ("opt_tol", "small"),
        ("opt_tol", math.nan), ("viol_ineq_tol", -1e-3), ("mu0", -1), ("scaleH0", "yes"), ("bfgs_damping", 2),
        ("limited_mem_size", -2), ("wolfe1", 2), ("wolfe2", 1.5), ("wolfe2", 1e-9), ("print_width", 3), ("print_level", 9),
        ("print_frequency", 0), ("steering_c_mu", 1.5), ("max_fallback_level", 7), ("ngrad", 0), ("maxclocktime", 0),
        ("QPsolver", "cplex"), ("QPsolver", 3), ("halt_log_fn", 3), ("torch_device", "tpu!"), ("torch_device", 1.5),
        ("H0", torch.eye(3)), ("H0", -torch.eye(2)), ("H0", torch.tensor([[1.0, 2.0], [0.0, 1.0]])), ("H0", "identity"),
        ("x0", torch.ones(3)), ("x0", "here"), ("x0", torch.ones(2, dtype=torch.complex64)), ("regularize_threshold", 0.5),
        ("prescaling_threshold", 0), ("init_step_size", 0), ("rel_tol", -1), ("linesearch_maxit", 0),
    ],
)  # fmt: skip
def test_bad_values_name_the_option(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name):
        run(**{name: value})


def test_warm_start_of_the_wrong_form() -> None:
    for value in (torch.eye(2), {"S": torch.ones(2, 1)}, {"S": torch.ones(3, 1), "Y": torch.ones(3, 1), "gamma": 1.0}):
        with pytest.raises(OptionError, match="limited_mem_warm_start"):
            run(limited_mem_size=3, limited_mem_warm_start=value)


@pytest.mark.parametrize(("wrong", "right"), [("max_it", "maxit"), ("opttol", "opt_tol"), ("QPSolver", "QPsolver")])
def test_unknown_names_warn_with_the_nearest(wrong: str, right: str) -> None:
    with pytest.warns(UserWarning, match=f"there is no option '{wrong}', .* did you mean '{right}'") as caught:
        assert run(**{wrong: 1}).termination_code == 0
    assert caught[0].filename == __file__.replace(".pyc", ".py")


def test_a_solver_that_is_not_installed_is_replaced_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nonsmooth.pygranso.settings.is_installed", lambda name: name != "gurobi")
    with pytest.warns(UserWarning, match="gurobi"):
        assert run(QPsolver="gurobi").termination_code == 0


def test_options_as_a_dict_or_any_object() -> None:
    assert pygranso({"x": [2]}, absolute, {"print_level": 0, "maxit": 3}).iters <= 3
    with pytest.raises(OptionError, match="user_opts must be"):
        pygranso({"x": [2]}, absolute, 3)  # type: ignore[arg-type]


def test_limits_and_targets() -> None:
    assert run(maxit=1).termination_code == 4
    assert run(fvalquit=3.0).termination_code == 2
    assert run(maxclocktime=1e-9).termination_code == 5
    assert run(rel_tol=0.9).termination_code in (0, 1)


def test_a_given_matrix_is_used() -> None:
    matrices: list[Any] = []

    def keep(iteration: int, x: Any, parts: Any, d: Any, matrix: Any, *rest: Any) -> bool:
        matrices.append(matrix())
        return True

    given = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    answer = run(H0=given, halt_log_fn=keep)
    assert torch.equal(matrices[0], given) and torch.equal(answer.H_final, given)
    run(H0=given.to_sparse(), halt_log_fn=keep)
    assert torch.equal(matrices[1], given)
    assert run(H0=torch.diag(torch.tensor([1.0, 0.0])), checkH0=False).termination_code in range(14)
    with pytest.warns(UserWarning, match="H0 has no effect"):
        run(H0=given, limited_mem_size=3)


def test_the_whole_matrix_is_kept_when_asked_for_by_name() -> None:
    def function(X: Any) -> list[Any]:  # noqa: N803
        return [(X.x**2).sum(), None, None]

    options = {"x0": torch.ones(2100), "print_level": 0, "maxit": 1}
    assert isinstance(pygranso({"x": [2100]}, function, options).H_final, dict)
    assert pygranso({"x": [2100]}, function, {**options, "limited_mem_size": 0}).H_final.shape == (2100, 2100)


def test_the_documentation_names_every_option() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "from-pygranso.md").read_text()
    assert [name for name in OPTIONS if f"`{name}`" not in text] == []
    fields = {entry.target for entry in OPTIONS.values() if entry.target}
    assert [field for field in fields if f"`{field}`" not in text] == []


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda", torch.device("cuda:0")])
def test_on_a_gpu(device: Any) -> None:
    answer = run(torch_device=device)
    assert answer.final.x.device.type == answer.H_final.device.type == "cuda"
    assert answer.final.f == pytest.approx(2, abs=1e-6)
