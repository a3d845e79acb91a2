"""The result of a run."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, replace
from enum import Enum
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.nn import Module

from nonsmooth.certify.certificate import Certificate
from nonsmooth.certify.recheck import Recheck
from nonsmooth.compile.outcome import Compilation
from nonsmooth.errors import NonsmoothError
from nonsmooth.evaluate.differentiation import Costs
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.evaluate.skipped_errors import SkippedErrors
from nonsmooth.loop.saved_state import SavedState
from nonsmooth.loop.state import COLUMNS, State, Updates
from nonsmooth.native import Method
from nonsmooth.qp import Counts
from nonsmooth.report.clock import Phase, Times
from nonsmooth.structure import Structure

Vector = NDArray[np.float64]

MIN_CONSTRAINTS_FOR_HINT = 500
"""With at least this many constraints, combining them into one is likely to be faster."""
MIN_SHARE_FOR_HINT = 0.5
"""Smallest share of the time of a run that work on constraints must take for a hint."""


class Status(Enum):
    """Why a run ended."""

    STATIONARY = "The point is feasible and was proven stationary by the independent check."
    RELATIVE_DECREASE = "The penalty function barely decreases any more at a feasible point."
    TARGET_REACHED = "A feasible point reached the target value of the objective."
    USER_STOP = "The callback or a keyboard interrupt ended the run."
    ITERATION_LIMIT = "The iteration limit was reached."
    EVALUATION_LIMIT = "The evaluation limit was reached."
    TIME_LIMIT = "The time limit was reached."
    SEARCH_FAILED_FEASIBLE = "No better point was found from a feasible point that could not be proven stationary."
    SEARCH_FAILED_INFEASIBLE = "No better point was found from an infeasible point."
    UNBOUNDED = "The objective decreases without bound along feasible points."
    INFEASIBLE = "The sum of violations, in the units of Result.scales, is stationary: no nearby point is more feasible."
    FUNCTION_ERROR = "The function raised an exception; the result is the best point before it."
    QP_FAILURE = "A quadratic program could not be solved, and stop_at_qp_failure is set."
    SOLVER_ERROR = "The solver itself failed; the result is the best point so far. Please report this."


@dataclass(frozen=True)
class Point:
    """A point in the form of x0, with its values and violations in the user's units."""

    x: Any
    f: float
    inequality_violation: float
    equality_violation: float
    feasible: bool
    inequalities: Any = None
    """The inequalities, in the form in which the function returned them."""
    equalities: Any = None
    flat: Vector = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def violation(self) -> float:
        """The largest violation of a constraint."""
        return max(self.inequality_violation, self.equality_violation)


@dataclass(frozen=True)
class Multipliers:
    """Lagrange multipliers: ∇f + Σ multiplier·∇constraint = 0, each block in the form of its constraints."""

    inequalities: Any
    equalities: Any
    lower: Any = None
    """For the lower bounds, in the form of x0; None without bounds."""
    upper: Any = None


@dataclass(frozen=True)
class History:
    """One entry per iterate, the start included."""

    f: Vector
    violation: Vector
    penalty_parameter: Vector
    stationarity: Vector
    step: Vector
    evaluations: Vector
    seconds: Vector
    fallback: Vector
    null_steps: Vector

    @classmethod
    def of(cls, rows: list[tuple[float, ...]]) -> History:
        """The history from the rows of a state."""
        table = np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))
        return cls(**{name: table[:, index].copy() for index, name in enumerate(COLUMNS)})

    def __len__(self) -> int:
        return len(self.f)


@dataclass(frozen=True)
class Result:
    """The result of a run. Printing it gives a summary.

    `x` is the answer in the form of x0; a module given as x0 gets the answer as its parameters and is returned. `final` is
    the last iterate, `best` the lowest feasible point that was evaluated (None if there was none), and `most_feasible` the
    point with the smallest violation.
    """

    status: Status
    success: bool
    """Whether the answer is proven: stationary by the independent check, or a feasible point at the target value."""
    x: Any
    f: float
    point: Point
    """The answer with its constraints and violations."""
    final: Point
    best: Point | None
    most_feasible: Point
    multipliers: Multipliers
    certificate: Certificate
    iterations: int
    evaluations: int
    costs: Costs
    updates: Updates
    compilation: Compilation
    """The outcome of compiling the functions, and the reason."""
    programs: Counts
    method: Method
    """"native" if the native library solved the quadratic programs, "python" if Python code did: because the library is
    missing, is switched off by `NONSMOOTH_NATIVE=0`, or `qp_solver` names another solver."""
    penalty_parameter: float
    scales: Scales | None
    """The units in which the solver worked; None if it used the user's units."""
    time: Times
    """Seconds by phase, of this run alone; printing it gives a table."""
    history: History
    exception: Exception | None
    state: State = field(repr=False)
    recheck: Recheck = field(repr=False)
    skipped_errors: SkippedErrors = field(default_factory=SkippedErrors)
    """With `on_error="skip"`: the number of exceptions that were treated as points outside the domain, and the last one."""

    def __getstate__(self) -> dict[str, Any]:
        """Replace what cannot be pickled: an exception by its text, a module by a dict of its parameters."""
        state = dict(vars(self))
        skipped = self.skipped_errors
        state["exception"] = _as_picklable(self.exception)
        state["skipped_errors"] = replace(skipped, last=_as_picklable(skipped.last))
        if isinstance(self.x, Module) and not _is_picklable(self.x):
            state["x"] = self.point.x
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        """Copy everything: within the process nothing has to be replaced."""
        duplicate = object.__new__(type(self))
        memo[id(self)] = duplicate
        vars(duplicate).update({name: _copy(value, memo) for name, value in vars(self).items()})
        return duplicate

    @property
    def message(self) -> str:
        """The status as a sentence."""
        return self.status.value

    @property
    def violation(self) -> float:
        """The largest violation of a constraint at the answer."""
        return self.point.violation

    @property
    def hint(self) -> str:
        """How to make such a run faster; empty if there is no advice."""
        count, time = len(self.state.current.c), self.time
        shares = sum(time.share(phase) for phase in (Phase.QP, Phase.JACOBIANS, Phase.DIRECTIONS))
        if self.success or count < MIN_CONSTRAINTS_FOR_HINT or shares < MIN_SHARE_FOR_HINT:
            return ""
        return (
            f"{count} constraints take most of the time; if they belong together, return one constraint instead: "
            "the norm of equalities, the maximum of inequalities"
        )

    def check(self) -> Certificate:
        """Check the answer again from x alone, without any data of the run."""
        return self.recheck()

    @property
    def structure(self) -> Structure:
        """The kinks that can be read from the program, and how many of them the answer lies on. This evaluates the function
        once more."""
        return self.recheck.structure()

    def plot(self, path: Any = None) -> Any:
        """Plot objective, violation, stationarity and step sizes with matplotlib. Writes a file if a path is given."""
        from nonsmooth.report.plotting import plot

        return plot(self, path)

    def _repr_html_(self) -> str:
        """The summary, which a notebook shows instead of the repr."""
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = [
            f"{self.status.name}: {self.message}",
            f"  objective       {self.f:.12g}",
            f"  violation       {self.violation:.2e}" + ("" if self.point.feasible else "  (not feasible)"),
            f"  certificate     {self.certificate}",
            f"  iterations      {self.iterations}, {self.evaluations} evaluations, "
            f"{self.costs.gradients} gradients, {self.costs.jacobians} Jacobians",
            f"  penalty         mu = {self.penalty_parameter:.3g}",
            f"  programs        {self.programs.solved} solved, {self.programs.failed} failed, by the {self.method} method",
            f"  compiled        {self.compilation}",
            f"  time            {self.time.total:.3g} s: "
            + ", ".join(f"{phase.label} {self.time[phase]:.2g}" for phase in self.time.largest()),
        ]
        if self.hint:
            lines.append(f"  hint            {self.hint}")
        skipped = self.skipped_errors
        if skipped.count:
            lines.append(
                f"  skipped         {skipped.count} exceptions, the last {type(skipped.last).__name__}: {skipped.last}"
            )
        if self.exception is not None:
            lines.insert(1, f"  exception       {type(self.exception).__name__}: {self.exception}")
        return "\n".join(lines)


def _as_picklable(error: Exception | None) -> Exception | None:
    """An exception, or a NonsmoothError with its text if it cannot be pickled."""
    return error if error is None or _is_picklable(error) else NonsmoothError(f"{type(error).__name__}: {error}")


def _is_picklable(value: object) -> bool:
    """Whether a value survives a pickle round trip; some exceptions can be pickled but not unpickled."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # pickling runs code of the class, which may raise anything
        return False
    return True


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    return value if isinstance(value, BaseException | SkippedErrors) else copy.deepcopy(value, memo)


__all__ = ["Certificate", "History", "Multipliers", "Point", "Result", "SavedState", "State", "Status"]
