"""The user's options with PyGRANSO's names, and their conversion to `Options`."""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nonsmooth.errors import OptionError
from nonsmooth.options import Options, QPSolverName
from nonsmooth.pygranso.matrices import initial_matrix, initial_pairs
from nonsmooth.pygranso.option_table import OPTIONS
from nonsmooth.qp.backends import MODULES, is_installed

SMALLEST_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
"""The smallest tolerance for a relative residual; a smaller opt_tol is raised to it."""
SMALLEST_PENALTY_PARAMETER = 1e-8
"""Used for mu0 = 0, which puts feasibility before the objective."""


@dataclass(frozen=True)
class Settings:
    """The user's options, checked and converted, including those without a field in `Options`."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """The options that were set, by PyGRANSO's names."""

    @classmethod
    def of(cls, user_options: Any, *, stacklevel: int = 3) -> Settings:
        """Check the user's options; an unknown name gives a warning that suggests the nearest known one.

        >>> Settings.of({"maxit": 50}).values
        {'maxit': 50}
        """
        values: dict[str, Any] = {}
        for name, value in _items(user_options):
            if name in OPTIONS:
                if value is not None:
                    values[name] = OPTIONS[name].convert(name, value)
                continue
            close = difflib.get_close_matches(str(name), OPTIONS, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else "see docs/how-to/from-pygranso.md for the list"
            warnings.warn(f"there is no option {name!r}, it has no effect; {hint}", UserWarning, stacklevel=stacklevel)
        return cls(values)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the run."""
        return torch.float64 if self.values.get("double_precision", True) else torch.float32

    @property
    def device(self) -> torch.device | None:
        """The requested device; None to use that of the start."""
        device: torch.device | None = self.values.get("torch_device")
        return device

    @property
    def own_gradients(self) -> bool:
        """Whether the function computes its own gradients."""
        return not self.values.get("globalAD", True)

    @property
    def halt_log_fn(self) -> Callable[..., Any] | None:
        """The user's callback."""
        function: Callable[..., Any] | None = self.values.get("halt_log_fn")
        return function

    def options(self, size: int) -> Options:
        """The options for a problem with `size` variables."""
        values = self.values
        fields = {entry.target: values[name] for name, entry in OPTIONS.items() if name in values and entry.target}
        self._adjust_tolerances(fields)
        if "limited_mem_size" in values and values["limited_mem_size"] > 0:
            fields["memory"] = values["limited_mem_size"]
        if "steering_l1_model" in values:
            fields["steering_model"] = "sum" if values["steering_l1_model"] else "max"
        if "linesearch_c_mu" not in values and "linesearch_c_mu_x0" in values:
            fields["penalty_retry_factor"] = values["linesearch_c_mu_x0"]
        if fields.get("regularization_threshold") == -math.inf:
            fields["regularization_threshold"] = math.inf
        if fields.get("penalty_parameter") == 0:
            fields["penalty_parameter"] = SMALLEST_PENALTY_PARAMETER
        if fields.get("damping") == 1:
            fields["damping"] = math.nextafter(1.0, 0.0)
        if "qp_solver" in fields:
            fields["qp_solver"] = _solver(fields["qp_solver"])
        fields |= self._initial_matrix(size)
        fields["scaling"] = "none"  # PyGRANSO's options, matrices and printed values are in the user's units
        try:
            return Options(**fields)
        except OptionError as error:
            raise OptionError(_in_pygranso_names(str(error))) from None

    def _adjust_tolerances(self, fields: dict[str, Any]) -> None:
        if self.dtype == torch.float64:
            fields.setdefault("stationarity_tolerance", 1e-8)
        if "stationarity_tolerance" in fields:
            fields["stationarity_tolerance"] = max(fields["stationarity_tolerance"], SMALLEST_TOLERANCE[self.dtype])
        if "sampling_radius" in fields:
            fields["sampling_radius"] = max(fields["sampling_radius"], 100 * float(torch.finfo(self.dtype).eps))

    def _initial_matrix(self, size: int) -> dict[str, Any]:
        """The fields of `Options` for the initial quasi-Newton matrix."""
        values = self.values
        limited = values.get("limited_mem_size", 0) > 0
        fields: dict[str, Any] = {}
        if "limited_mem_warm_start" in values and limited:
            fields |= initial_pairs(values["limited_mem_warm_start"], size)
        if "H0" in values:
            matrix = initial_matrix(values["H0"], size, check=values.get("checkH0", True))
            if not limited:
                fields["initial_hessian"] = matrix
            elif not np.array_equal(matrix, np.eye(size)):
                warnings.warn("H0 has no effect with limited_mem_size > 0: that matrix starts at the identity", stacklevel=5)
        elif values.get("limited_mem_size") == 0:
            fields["initial_hessian"] = np.eye(size)  # an explicit 0 requests the full matrix, however large
        return fields


def _items(user_options: Any) -> list[tuple[str, Any]]:
    if user_options is None:
        return []
    if isinstance(user_options, Mapping):
        return list(user_options.items())
    if hasattr(user_options, "__dict__") and not isinstance(user_options, type):
        return list(vars(user_options).items())
    raise OptionError(f"user_opts must be a pygransoStruct, a dict or None, not {type(user_options).__name__}")


def _solver(name: Any) -> str:
    known: tuple[str, ...] = QPSolverName.__args__  # type: ignore[attr-defined]
    lower = name.lower() if isinstance(name, str) else name
    if lower not in known:
        raise OptionError(f"QPsolver must be one of {', '.join(map(repr, known))}, not {name!r}")
    if lower != "auto" and not is_installed(lower):
        warnings.warn(
            f"QPsolver={name!r} needs the package {MODULES[lower]!r}, which is not installed; another solver is used",
            UserWarning, stacklevel=5,
        )  # fmt: skip
        return "auto"
    return str(lower)


def _in_pygranso_names(message: str) -> str:
    """A message about `Options`, with PyGRANSO's names.

    >>> _in_pygranso_names("max_iterations must be a whole number of at least 0, not -1")
    'maxit must be a whole number of at least 0, not -1'
    """
    for name, entry in OPTIONS.items():
        if entry.target:
            message = re.sub(rf"\b{entry.target}\b", name, message)
    return re.sub(r"\bmemory\b", "limited_mem_size", message).replace(", or None for the default", "")
