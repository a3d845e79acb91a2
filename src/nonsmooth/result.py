"""What a run found, and how it ended."""

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
from nonsmooth.evaluate.skipping import SkippedErrors
from nonsmooth.loop.saving import SavedState
from nonsmooth.loop.state import COLUMNS, State, Updates
from nonsmooth.native import Method
from nonsmooth.qp import Counts
from nonsmooth.report.clock import Phase, Times
from nonsmooth.structure import Structure

Vector = NDArray[np.float64]

MANY_CONSTRAINTS = 500
"""From so many on, one constraint made of them is likely to be faster."""


class Status(Enum):
    """Why a run ended."""

    STATIONARY = "The point is feasible and was proven stationary by the independent check."
    RELATIVE_DECREASE = "The penalty function hardly decreases any more at a feasible point."
    TARGET_REACHED = "A feasible point with the objective asked for was found."
    USER_STOP = "The callback, or an interrupt from the keyboard, ended the run."
    ITERATION_LIMIT = "The iterations allowed were used up."
    EVALUATION_LIMIT = "The evaluations allowed were used up."
    TIME_LIMIT = "The time allowed was used up."
    SEARCH_FAILED_FEASIBLE = "No better point was found from a feasible one, which could not be proven stationary."
    SEARCH_FAILED_INFEASIBLE = "No better point was found from an infeasible one."
    UNBOUNDED = "The objective decreases without end along feasible points."
    INFEASIBLE = "The sum of violations, in the units of Result.scales, is stationary: no nearby point is more feasible."
    FUNCTION_ERROR = "The function raised an exception; the best point before it is returned."
    QP_FAILURE = "A quadratic program could not be solved, and the options ask to stop then."
    SOLVER_ERROR = "The solver itself failed; the best point so far is returned. Please report this."


@dataclass(frozen=True)
class Point:
    """A point, in the form of x0, with what is known of it in the user's own units."""

    x: Any
    f: float
    inequality_violation: float
    equality_violation: float
    feasible: bool
    inequalities: Any = None
    """The inequalities as the function returned them (in the same form)."""
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
        """From the rows a state has recorded."""
        table = np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))
        return cls(**{name: table[:, index].copy() for index, name in enumerate(COLUMNS)})

    def __len__(self) -> int:
        return len(self.f)


@dataclass(frozen=True)
class Result:
    """The answer of a run. Printing it gives a summary.

    `x` is the answer in the form of x0; a module given as x0 is filled with it and handed back. `final` is the last
    iterate, `best` the lowest feasible point that was evaluated (None if there was none), `most_feasible` the one with
    the smallest violation.
    """

    status: Status
    success: bool
    """Whether the answer is proven: stationary by the independent check, or at the target that was asked for."""
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
    """What became of compiling the functions."""
    programs: Counts
    method: Method
    """"native" if the compiled library solved the quadratic programs, "python" if Python code did: the library is missing
    or switched off by `NONSMOOTH_NATIVE=0`, or `qp_solver` names another solver."""
    penalty_parameter: float
    scales: Scales | None
    """The units in which the solver worked; None where they were the user's."""
    time: Times
    """Seconds by phase, of this run alone; printing it gives a table."""
    history: History
    exception: Exception | None
    state: State = field(repr=False)
    recheck: Recheck = field(repr=False)
    skipped_errors: SkippedErrors = field(default_factory=SkippedErrors)
    """With `on_error="skip"`: how many exceptions were taken as points outside the domain, and the last of them."""

    def __getstate__(self) -> dict[str, Any]:
        """What cannot be pickled is replaced by what can: an exception by its text, a module by its parameters by name."""
        state = dict(vars(self))
        skipped = self.skipped_errors
        state["exception"], state["skipped_errors"] = _told(self.exception), replace(skipped, last=_told(skipped.last))
        if isinstance(self.x, Module) and not _travels(self.x):
            state["x"] = self.point.x
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        """Within the process nothing has to be replaced."""
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        vars(copied).update({name: _copied(value, memo) for name, value in vars(self).items()})
        return copied

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
        """What would make such a run faster; empty where nothing is known."""
        count, time = len(self.state.current.c), self.time
        shares = sum(time.share(phase) for phase in (Phase.QP, Phase.JACOBIANS, Phase.DIRECTIONS))
        if self.success or count < MANY_CONSTRAINTS or shares < 0.5:
            return ""
        return (
            f"{count} constraints take most of the time; where they belong together, return one constraint instead: "
            "the norm of equalities, the maximum of inequalities"
        )

    def check(self) -> Certificate:
        """Check the answer again, from x alone: nothing the run has gathered is used."""
        return self.recheck()

    @property
    def structure(self) -> Structure:
        """What can be seen of the kinks of the problem, and how many of them the answer lies on. The function is evaluated
        once more to find out."""
        return self.recheck.structure()

    def plot(self, path: Any = None) -> Any:
        """Draw objective, violation, stationarity and step sizes; needs matplotlib. Writes a file if a path is given."""
        from nonsmooth.report.plotting import plot

        return plot(self, path)

    def _repr_html_(self) -> str:
        """The summary, where a notebook would show the repr."""
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


def _told(error: Exception | None) -> Exception | None:
    """An exception, or one with its text where it cannot be pickled."""
    return error if error is None or _travels(error) else NonsmoothError(f"{type(error).__name__}: {error}")


def _travels(value: object) -> bool:
    """Whether a value comes back whole when it is pickled; some exceptions can be pickled and not be unpickled."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # pickling runs code of the class, which may raise anything
        return False
    return True


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    return value if isinstance(value, BaseException | SkippedErrors) else copy.deepcopy(value, memo)


__all__ = ["Certificate", "History", "Multipliers", "Point", "Result", "SavedState", "State", "Status"]
