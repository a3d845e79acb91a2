"""What the user chose, in PyGRANSO's names, and the `Options` that follow from it."""

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
from nonsmooth.qp.backends import MODULES, installed

SMALLEST_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
"""A relative residual cannot be asked to be smaller than this; opt_tol below it is raised to it."""
SMALLEST_PENALTY_PARAMETER = 1e-8
"""Stands for mu0 = 0: feasibility first, and the objective only where it costs nothing."""


@dataclass(frozen=True)
class Settings:
    """The user's options, checked and converted, with everything that `Options` does not hold as a field."""

    given: Mapping[str, Any] = field(default_factory=dict)
    """The options that were set, by PyGRANSO's names."""

    @classmethod
    def of(cls, user_options: Any, *, stacklevel: int = 3) -> Settings:
        """Check the user's options; an unknown name gives a warning with the nearest known one.

        >>> Settings.of({"maxit": 50}).given
        {'maxit': 50}
        """
        given: dict[str, Any] = {}
        for name, value in _items(user_options):
            if name in OPTIONS:
                if value is not None:
                    given[name] = OPTIONS[name].convert(name, value)
                continue
            close = difflib.get_close_matches(str(name), OPTIONS, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else "see docs/how-to/from-pygranso.md for the list"
            warnings.warn(f"there is no option {name!r}, it has no effect; {hint}", UserWarning, stacklevel=stacklevel)
        return cls(given)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the run."""
        return torch.float64 if self.given.get("double_precision", True) else torch.float32

    @property
    def device(self) -> torch.device | None:
        """The device asked for; None where it is left to the start."""
        found: torch.device | None = self.given.get("torch_device")
        return found

    @property
    def gradients_given(self) -> bool:
        """Whether the function brings its own gradients."""
        return not self.given.get("globalAD", True)

    @property
    def halt_log_fn(self) -> Callable[..., Any] | None:
        """The user's callback."""
        found: Callable[..., Any] | None = self.given.get("halt_log_fn")
        return found

    def options(self, size: int) -> Options:
        """The options for a problem with `size` variables."""
        given = self.given
        values = {entry.target: given[name] for name, entry in OPTIONS.items() if name in given and entry.target}
        self._tolerances(values)
        if "limited_mem_size" in given and given["limited_mem_size"] > 0:
            values["memory"] = given["limited_mem_size"]
        if "steering_l1_model" in given:
            values["steering_model"] = "sum" if given["steering_l1_model"] else "max"
        if "linesearch_c_mu" not in given and "linesearch_c_mu_x0" in given:
            values["penalty_retry_factor"] = given["linesearch_c_mu_x0"]
        if values.get("regularization_threshold") == -math.inf:
            values["regularization_threshold"] = math.inf
        if values.get("penalty_parameter") == 0:
            values["penalty_parameter"] = SMALLEST_PENALTY_PARAMETER
        if values.get("damping") == 1:
            values["damping"] = math.nextafter(1.0, 0.0)
        if "qp_solver" in values:
            values["qp_solver"] = _solver(values["qp_solver"])
        values |= self._matrix(size) | {
            "scaling": "none"
        }  # PyGRANSO's options, matrices and printed values are in the user's units
        try:
            return Options(**values)
        except OptionError as error:
            raise OptionError(_in_their_names(str(error))) from None

    def _tolerances(self, values: dict[str, Any]) -> None:
        if self.dtype == torch.float64:
            values.setdefault("stationarity_tolerance", 1e-8)
        if "stationarity_tolerance" in values:
            values["stationarity_tolerance"] = max(values["stationarity_tolerance"], SMALLEST_TOLERANCE[self.dtype])
        if "sampling_radius" in values:
            values["sampling_radius"] = max(values["sampling_radius"], 100 * float(torch.finfo(self.dtype).eps))

    def _matrix(self, size: int) -> dict[str, Any]:
        """The fields that say where the quasi-Newton matrix starts."""
        given = self.given
        limited = given.get("limited_mem_size", 0) > 0
        values: dict[str, Any] = {}
        if "limited_mem_warm_start" in given and limited:
            values |= initial_pairs(given["limited_mem_warm_start"], size)
        if "H0" in given:
            matrix = initial_matrix(given["H0"], size, check=given.get("checkH0", True))
            if not limited:
                values["initial_hessian"] = matrix
            elif not np.array_equal(matrix, np.eye(size)):
                warnings.warn("H0 has no effect with limited_mem_size > 0: that matrix starts at the identity", stacklevel=5)
        elif given.get("limited_mem_size") == 0:
            values["initial_hessian"] = np.eye(size)  # asked for by name: the whole matrix, however large
        return values


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
    if lower != "auto" and not installed(lower):
        warnings.warn(
            f"QPsolver={name!r} needs the package {MODULES[lower]!r}, which is not installed; another solver is used",
            UserWarning, stacklevel=5,
        )  # fmt: skip
        return "auto"
    return str(lower)


def _in_their_names(message: str) -> str:
    """A message about `Options` with PyGRANSO's names.

    >>> _in_their_names("max_iterations must be a whole number of at least 0, not -1")
    'maxit must be a whole number of at least 0, not -1'
    """
    for name, entry in OPTIONS.items():
        if entry.target:
            message = re.sub(rf"\b{entry.target}\b", name, message)
    return re.sub(r"\bmemory\b", "limited_mem_size", message).replace(", or None for the default", "")
