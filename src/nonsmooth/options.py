"""The options of a run."""

from __future__ import annotations

import dataclasses
import difflib
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nonsmooth.errors import OptionError

CompileChoice = Literal["auto", "never", "always"]
ErrorChoice = Literal["stop", "skip"]
QPSolverName = Literal["auto", "daqp", "proxqp", "osqp", "gurobi", "native"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a run. The constructor checks every value.

    Tolerances that are None follow the precision of the variables: the first of the values below is for float64, the
    second for float32.

    >>> Options(max_iterations=50).max_iterations
    50
    >>> Options(max_iteration=50)
    Traceback (most recent call last):
    ...
    nonsmooth.errors.OptionError: there is no option 'max_iteration'; did you mean 'max_iterations'?
    """

    # When to stop.
    stationarity_tolerance: float | None = None
    """Largest relative residual of ∇f + Σλ∇c at an answer called stationary. 1e-6, or 1e-3 in float32."""
    inequality_tolerance: float | None = None
    """Largest value of an inequality at a feasible point. 1e-6, or 1e-5 in float32."""
    equality_tolerance: float | None = None
    """Largest absolute value of an equality at a feasible point. 1e-6, or 1e-5 in float32."""
    sampling_radius: float | None = None
    """Largest distance from x of the gradients that prove x stationary, relative to max(1, |x|/1000). 1e-6, or 1e-3."""
    relative_decrease_tolerance: float = 0.0
    """Stop at a feasible point when the penalty function decreases by no more than this fraction; 0 disables the test."""
    step_tolerance: float | None = None
    """Smallest interval of a line search, relative to |x|. 1e-12, or 1e-6 in float32."""
    target_value: float = -math.inf
    """Stop at a feasible point whose objective is no larger."""
    max_iterations: int = 1000
    max_evaluations: float = math.inf
    max_seconds: float = math.inf

    # How the functions are evaluated.
    compile: CompileChoice = "auto"
    """`auto` builds compiled functions in other processes if a run is long enough, and uses them once they agree with the
    original functions; the iterates of a long run then depend, in the last digits, on when the build is ready. `never` runs
    the original functions throughout. `always` waits for the build at the start."""

    on_error: ErrorChoice = "stop"
    """What to do when the function raises an exception at a trial point: `stop` ends the run with the best point; `skip` treats
    the point as outside the domain, as if the value were infinite, and continues. An exception at x0 always propagates."""

    # The penalty function and steering toward feasibility.
    penalty_parameter: float = 1.0
    """Initial weight μ of the objective in μ·f + violation; it decreases as needed, and increases where it was too small."""
    steering_violation_fraction: float = 0.1
    """Fraction of the possible reduction of the violation that a step must predict."""
    steering_penalty_factor: float = 0.9
    """μ is multiplied by this until it does."""
    steering_max_reductions: int = 10
    steering_inequality_margin: float = 1e-6
    """Without equalities, steering is skipped at points that satisfy all inequalities by this margin; inf always steers."""
    steering_model: Literal["sum", "max"] = "sum"
    """Whether the predicted violation is the sum of the violations or the largest violation."""
    structure: Literal["auto", "off"] = "auto"
    """Whether kinks of f are read from the program where possible, instead of being discovered by stepping over them."""
    scaling: Literal["auto", "none"] = "auto"
    """Whether to choose the units of variables, objective and constraints from the start (`Result.scales`)."""
    prescaling_threshold: float = math.inf
    """Functions whose gradient at the start is longer than this are scaled so that it has this length."""

    # The quasi-Newton matrix.
    memory: int | None = None
    """Number of pairs in limited-memory BFGS; None stores the full matrix up to n = 2000, and 20 pairs above."""
    initial_hessian: NDArray[np.float64] | None = field(default=None, compare=False)
    """Inverse Hessian of the Lagrangian at the start, n×n; the identity by default."""
    initial_pairs: tuple[Any, Any, float] | None = field(default=None, compare=False)
    """With limited memory: steps (k×n) and changes of the gradient (k×n), oldest first, and the initial scaling."""
    scale_initial_hessian: bool = True
    fixed_scaling: bool = False
    """With limited memory: use the first scaling of the initial matrix throughout instead of updating it."""
    damping: float = 0.2
    """Powell's damping constant; 0 skips updates with negative curvature instead."""
    regularization_threshold: float = math.inf
    """Largest condition number of the matrix given to the quadratic programs (full memory only)."""
    regularize_large_eigenvalues: bool = False
    """Lower the large eigenvalues instead of raising the small ones."""

    # The bundle of gradients of earlier points.
    gradient_samples: int | None = None
    """Size of the bundle. By default at most 250 and 3n + 10, and less for large n: 30 above n = 2000, 10 from 120,000 on."""
    max_null_steps: int = 20
    """Maximum number of null steps at one iterate before a shorter step is tried."""

    # The line search.
    sufficient_decrease: float = 1e-4
    curvature: float = 0.9
    initial_step: float = 1.0
    max_search_evaluations: int = 60
    max_nondescent_evaluations: int = 0
    """Evaluations along a direction that is not a descent direction; 0 tries the next kind of direction immediately."""
    normalize_direction: bool = False
    backtracking_only: bool = False
    """Test only for sufficient decrease: function values at trial points, no curvature condition."""
    accept_failed_search: bool = False
    """Move to the last trial point of a failed search instead of ending the run (for stochastic experiments only)."""
    stop_at_failed_search: bool = False
    """End the run at a feasible point if the search along the first direction fails, instead of trying other directions."""
    penalty_retries: int = 10
    """How often μ is lowered when the penalty function decreases without bound along a direction."""
    first_penalty_retries: int = 20
    penalty_retry_factor: float = 0.1

    # Which directions may be tried.
    first_fallback: int = 0
    last_fallback: int = 4
    """0 model with the BFGS matrix, 1 model with the identity, 2 quasi-Newton, 3 steepest descent, 4 random."""
    random_attempts: int = 5
    seed: int = 0

    # The quadratic programs.
    qp_solver: QPSolverName = "auto"
    stop_at_qp_failure: bool = False

    def __new__(cls, **values: Any) -> Options:
        """Reject unknown names, and suggest the nearest option."""
        check_names(values)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check every value."""
        for name in _POSITIVE_OR_NONE:
            value = getattr(self, name)
            if value is not None:
                self._require(name, _number(value) and value > 0, "a positive number, or None for the default")
        for name in ("relative_decrease_tolerance", "steering_inequality_margin", "max_nondescent_evaluations"):
            self._require(name, _number(getattr(self, name)) and getattr(self, name) >= 0, "a number of at least 0")
        for name in ("max_iterations", "steering_max_reductions", "max_null_steps", "penalty_retries", "first_penalty_retries"):
            self._require(name, _whole(getattr(self, name)) and getattr(self, name) >= 0, "a whole number of at least 0")
        for name in ("max_search_evaluations", "random_attempts"):
            self._require(name, _whole(getattr(self, name)) and getattr(self, name) >= 1, "a whole number of at least 1")
        for name in ("memory", "gradient_samples"):
            value = getattr(self, name)
            self._require(name, value is None or (_whole(value) and value >= 1), "a whole number of at least 1, or None")
        for name in ("max_evaluations", "max_seconds", "penalty_parameter", "prescaling_threshold", "initial_step"):
            self._require(name, _number(getattr(self, name)) and getattr(self, name) > 0, "a positive number")
        self._require("target_value", _number(self.target_value), "a number")
        for name in ("penalty_parameter", "initial_step"):
            self._require(name, math.isfinite(getattr(self, name)), "a finite number")
        for name in ("regularization_threshold", "damping", "curvature", "sufficient_decrease"):
            self._require(name, _number(getattr(self, name)), "a number")
        self._require("regularization_threshold", self.regularization_threshold >= 1, "at least 1 (inf switches it off)")
        for name in ("steering_violation_fraction", "steering_penalty_factor", "penalty_retry_factor", "sufficient_decrease"):
            self._require(name, _number(getattr(self, name)) and 0 < getattr(self, name) < 1, "between 0 and 1")
        self._require("damping", 0 <= self.damping < 1, "at least 0 and below 1")
        self._require(
            "curvature",
            self.sufficient_decrease < self.curvature < 1,
            f"between sufficient_decrease ({self.sufficient_decrease}) and 1",
        )
        self._require("steering_model", self.steering_model in ("sum", "max"), "'sum' or 'max'")
        self._require("first_fallback", _whole(self.first_fallback) and self.first_fallback in range(5), "0, 1, 2, 3 or 4")
        self._require(
            "last_fallback",
            _whole(self.last_fallback) and self.last_fallback in range(self.first_fallback, 5),
            f"between first_fallback ({self.first_fallback}) and 4",
        )
        self._require("seed", _whole(self.seed) and self.seed >= 0, "a whole number of at least 0")
        known = QPSolverName.__args__  # type: ignore[attr-defined]
        choices = ("auto", "never", "always")
        self._require("compile", self.compile in choices, "one of " + ", ".join(map(repr, choices)))
        self._require("structure", self.structure in ("auto", "off"), "'auto' or 'off'")
        self._require("scaling", self.scaling in ("auto", "none"), "'auto' or 'none'")
        self._require("on_error", self.on_error in ("stop", "skip"), "'stop' or 'skip'")
        self._require("qp_solver", self.qp_solver in known, "one of " + ", ".join(map(repr, known)))

    def _require(self, name: str, valid: bool, requirement: str) -> None:
        if not valid:
            raise OptionError(f"{name} must be {requirement}, not {getattr(self, name)!r}")

    @property
    def scales_automatically(self) -> bool:
        """Whether the solver chooses units; an initial matrix, and prescaling by a threshold, are in the user's units."""
        user_units = (
            self.initial_hessian is not None or self.initial_pairs is not None or math.isfinite(self.prescaling_threshold)
        )
        return self.scaling == "auto" and not user_units

    def replace(self, **changes: Any) -> Options:
        """The same options with some values changed.

        >>> Options().replace(max_seconds=5).max_seconds
        5
        """
        check_names(changes)
        return dataclasses.replace(self, **changes)


_POSITIVE_OR_NONE = (
    "stationarity_tolerance",
    "inequality_tolerance",
    "equality_tolerance",
    "sampling_radius",
    "step_tolerance",
)


def _number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and not math.isnan(float(value))


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_names(names: Any) -> None:
    """Raise OptionError for the first name that is not an option.

    >>> check_names(["memory"])
    """
    known = [field.name for field in dataclasses.fields(Options)]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "the options are " + ", ".join(known)
            raise OptionError(f"there is no option {name!r}; {hint}")


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of a run, with every default filled in."""

    stationarity: float
    inequality: float
    equality: float
    radius: float
    step: float
    noise: float
    """Relative rounding error of a value of f."""
    allowance: float = 0.0
    """By how much the user's stationarity tolerance exceeds the default: f may still be improved by this relative amount."""

    @classmethod
    def of(cls, options: Options, *, single: bool) -> Tolerances:
        """Fill in the defaults for double or single precision.

        >>> Tolerances.of(Options(), single=False).stationarity
        1e-06
        """

        def choose(value: float | None, double: float, low: float) -> float:
            return value if value is not None else low if single else double

        usual = choose(None, 1e-6, 1e-3)
        stationarity = choose(options.stationarity_tolerance, 1e-6, 1e-3)
        return cls(
            stationarity=stationarity,
            inequality=choose(options.inequality_tolerance, 1e-6, 1e-5),
            equality=choose(options.equality_tolerance, 1e-6, 1e-5),
            radius=choose(options.sampling_radius, 1e-6, 1e-3),
            step=choose(options.step_tolerance, 1e-12, 1e-6),
            noise=1e-7 if single else 1e-15,
            allowance=max(0.0, stationarity - usual),
        )
