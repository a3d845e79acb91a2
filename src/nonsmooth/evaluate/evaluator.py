"""Evaluation of a problem at flat points."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.errors import ProblemError
from nonsmooth.evaluate.bounds import Bounds, read_bounds
from nonsmooth.evaluate.box import Box
from nonsmooth.evaluate.derivative_wrappers import DerivativesWithBounds, ScaledDerivatives, TimedDerivatives
from nonsmooth.evaluate.differentiation import Autograd, Costs, ExplicitDerivatives
from nonsmooth.evaluate.problem_reading import concatenate_constraints, insert_bounds, read_problem
from nonsmooth.evaluate.scaling import Scales, automatic_scales
from nonsmooth.evaluate.skipped_errors import NoDerivatives, SkippedErrors, SkippingDerivatives
from nonsmooth.evaluate.trial import Derivatives, FunctionFailed, Trial
from nonsmooth.problem import Form, Problem, flatten, scalar
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.structure import Arguments, Reading, unreadable
from nonsmooth.variables import Variables, is_plain, numbers

if TYPE_CHECKING:
    from nonsmooth.compile.tier import Tier

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Evaluator:
    """The problem as a function of flat points. Calling it evaluates values; the trial point provides gradients.

    The order of constraints is: equalities of the user, fixed variables, inequalities of the user, upper bounds, lower bounds.
    """

    def __init__(self, problem: Problem, variables: Variables, clock: Clock | None = None, *, user_errors: Any = None) -> None:
        self.problem, self.variables = problem, variables
        self.user_errors = user_errors or np.geterr()
        """NumPy's handling of floating-point errors within the user's functions."""
        self.costs = Costs()
        self.clock = clock or Clock()
        self._values_phase = self.clock.phase(Phase.VALUES)
        self._derivative_phases = self.clock.phase(Phase.GRADIENTS), self.clock.phase(Phase.JACOBIANS)
        self.bounds = Bounds.of(problem.bounds if problem.soft_bounds else None, variables)
        """Soft bounds, which are treated like other constraints."""
        self._user_box = (
            None if problem.soft_bounds else Box.of(*read_bounds(problem.bounds, variables), representable=variables.rounded)
        )
        self.scales: Scales | None = None
        self.tier: Tier | None = None
        self.skipped_errors: SkippedErrors | None = None
        """The exceptions treated as points outside the domain; None if exceptions end the run."""
        self.structured = False
        """Whether points read the visible kinks of f."""
        self.constraints_structured = True
        """Whether points also read the kinks of constraints."""
        self.watching = False
        """Whether functions are watched for data that graphs do not store: arguments, and values that leave the graph."""
        self._placements = 0
        self.missing_gradients: tuple[str, ...] = ()
        """The functions whose value at x0 has no gradient: they are constant, or detached by mistake."""
        self.forms: tuple[Form, Form] | None = None
        """Forms of the user's inequalities and equalities, known after the first evaluation."""

    def __call__(self, x: Vector) -> Trial:
        """Evaluate at x, given in the solver's units (and rounded to the precision of the variables)."""
        x = self._clipped_to_box(self.in_user_units(x))
        with self._values_phase:
            if self.tier is None or self.structured:
                return self._evaluate(x)
            trial = self.tier(self.variables.rounded(x))
            if trial is None:
                trial = self._evaluate(x)
                self.tier.remember(trial)
            else:
                self.costs.values += 1
                self._placements += 1  # a CUDA graph writes to a module too
            return trial

    def evaluate_eagerly(self, x: Vector) -> Trial:
        """Evaluate at x, in the user's units, with the user's original functions."""
        with self._values_phase:
            return self._evaluate(self._clipped_to_box(x))

    def _clipped_to_box(self, x: Vector) -> Vector:
        return x if self._user_box is None else self._user_box.clipped(x)

    @property
    def box(self) -> Box | None:
        """The box that contains all points, in the solver's units; None if there is none."""
        box = self._user_box
        return box if box is None or self.scales is None else box.in_units(self.scales.variables)

    def in_user_units(self, x: Vector) -> Vector:
        """A point in the solver's units, converted to the user's units."""
        return x if self.scales is None or self.scales.variables is None else x * self.scales.variables

    def in_solver_units(self, x: Vector) -> Vector:
        """A point in the user's units, converted to the solver's units."""
        return x if self.scales is None or self.scales.variables is None else x / self.scales.variables

    def _evaluate(self, x: Vector) -> Trial:
        x = self.variables.rounded(x)
        if torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
            # Entered only if needed: each context costs as much as a small operation.
            with torch.inference_mode(False), torch.enable_grad():
                return self._evaluate_with_grad_enabled(x)
        return self._evaluate_with_grad_enabled(x)

    def _evaluate_with_grad_enabled(self, x: Vector) -> Trial:
        argument, leaves = self.variables.place(x)
        self._placements += 1
        try:
            with np.errstate(**self.user_errors):
                trial = (
                    self._with_user_gradients(x, argument)
                    if self.problem.gradients
                    else self._with_autograd(x, argument, leaves)
                )
        except Exception as error:
            if self.skipped_errors is None:
                raise FunctionFailed(error) from error
            trial = self._trial_outside_domain(x, error)
        self.costs.values += 1
        return trial

    def _trial_outside_domain(self, x: Vector, error: Exception) -> Trial:
        """A point at which the function raised, with infinite values."""
        assert self.forms is not None and self.skipped_errors is not None  # the start was evaluated
        try:
            self.skipped_errors.note(error)
        except Exception:
            raise FunctionFailed(error) from error
        count, equalities = self.forms[0].size + self.forms[1].size, self.forms[1].size
        return self.make_trial(x, np.inf, np.full(count, np.inf), equalities, NoDerivatives(self.variables.size, count))

    @property
    def placements(self) -> int:
        """How often values were written into the variables; a module has only the last of them."""
        return self._placements

    def _with_autograd(self, x: Vector, argument: Any, leaves: list[Tensor]) -> Trial:
        arguments = Arguments()
        with arguments if self.structured and self.watching else nullcontext():
            f, inequalities, equalities = self.problem.values(argument, arguments.declare if self.structured else None)
        earlier_forms = self.forms or (None, None)
        flat_inequalities, inequality_form = _flat(inequalities, earlier_forms[0], "the inequalities")
        flat_equalities, equality_form = _flat(equalities, earlier_forms[1], "the equalities")
        if self.forms is None:
            self.missing_gradients = _find_missing_gradients(f, flat_inequalities, flat_equalities)
        if inequality_form is not earlier_forms[0] or equality_form is not earlier_forms[1]:
            self._remember_forms(inequality_form, equality_form)
        if flat_inequalities is None or flat_equalities is None:
            c = flat_equalities if flat_inequalities is None else flat_inequalities
        else:
            c = torch.cat([flat_equalities.reshape(-1), flat_inequalities.reshape(-1)])
        derivatives: Derivatives = Autograd(f, c, leaves, self.variables, self.costs)
        if self.variables.module is not None:
            derivatives = _ModuleDerivatives(derivatives, self, x)
        trial = self.make_trial(
            x, float(f.item()), _NO_VALUES if c is None else numbers(c).flatten(), equality_form.size, derivatives
        )
        placement = self._placements
        readable = c if self.constraints_structured else None
        return trial if not self.structured else trial.read_by(lambda: self._read(x, placement, f, readable, leaves, arguments))

    def _read(
        self, x: Vector, placement: int, f: Tensor, c: Tensor | None, leaves: list[Tensor], arguments: Arguments
    ) -> Reading:
        with self._derivative_phases[1], torch.inference_mode(False), torch.enable_grad():
            self.costs.jacobians += 1
            try:
                if self.variables.module is not None and placement != self._placements:
                    f, c, leaves, arguments = self._reevaluate(x)
                reading, scales = read_problem(f, c, leaves, self.variables, arguments), self.scales
                equalities = 0 if self.forms is None else self.forms[1].size
                reading = insert_bounds(reading, self.bounds, x, equalities)
            except Exception as error:  # computing the gradient raises it again
                return unreadable(self.variables.size, f"{type(error).__name__} while reading it")
            return reading if scales is None else reading.scaled(scales.objective, scales.variables, scales.constraints)

    def _reevaluate(self, x: Vector) -> tuple[Tensor, Tensor | None, list[Tensor], Arguments]:
        """Evaluate the functions again at an earlier point, after the module has moved to another."""
        argument, leaves = self.variables.place(x)
        self._placements += 1
        arguments = Arguments()
        with np.errstate(**self.user_errors), arguments if self.watching or not self.problem.terms else nullcontext():
            f, inequalities, equalities = self.problem.values(argument, arguments.declare)
        self.costs.values += 1
        return f, concatenate_constraints(equalities, inequalities) if self.constraints_structured else None, leaves, arguments

    def derivatives_at(self, x: Vector) -> Derivatives:
        """The derivatives at an earlier point, which is evaluated again: a module may have moved to another point."""
        argument, leaves = self.variables.place(x)
        self._placements += 1
        with torch.enable_grad(), np.errstate(**self.user_errors):
            f, inequalities, equalities = self.problem.values(argument)
            c = concatenate_constraints(equalities, inequalities)
        self.costs.values += 1
        return Autograd(f, c, leaves, self.variables, self.costs)

    def _with_user_gradients(self, x: Vector, argument: Any) -> Trial:
        with torch.no_grad():
            f, gradient, inequalities, inequality_rows, equalities, equality_rows = self.problem.values_and_gradients(argument)
            flat_inequalities, inequality_form = flatten(inequalities, "the inequalities")
            flat_equalities, equality_form = flatten(equalities, "the equalities")
        self._remember_forms(inequality_form, equality_form)
        blocks = [block for block in (flat_equalities, flat_inequalities) if block is not None]
        values = np.concatenate([numbers(block) for block in blocks]) if blocks else _NO_VALUES
        rows = np.concatenate(
            [
                self._rows(equality_rows, equality_form.size, "the Jacobian of the equalities"),
                self._rows(inequality_rows, inequality_form.size, "the Jacobian of the inequalities"),
            ]
        )
        derivatives = ExplicitDerivatives(self.variables.flatten(gradient, what="the gradient of f"), rows, self.costs)
        return self.make_trial(x, float(scalar(f)), values, equality_form.size, derivatives)

    def _rows(self, rows: Any, count: int, what: str) -> Matrix:
        if count == 0:
            return np.zeros((0, self.variables.size))
        if isinstance(rows, dict):
            rows = torch.cat([torch.as_tensor(rows[name]).reshape(count, -1) for name in self.variables.names], dim=1)
        tensor = torch.as_tensor(rows).detach().to("cpu", torch.float64)
        if tensor.numel() != count * self.variables.size:
            raise ProblemError(
                f"{what} has shape {tuple(tensor.shape)}; it needs {count} rows of {self.variables.size} numbers, one for each "
                "constraint"
            )
        return tensor.reshape(count, self.variables.size).numpy()

    def _remember_forms(self, inequalities: Form, equalities: Form) -> None:
        if self.forms is None:
            self.forms = (inequalities, equalities)
        if self.forms[0] is inequalities and self.forms[1] is equalities:
            return
        for name, before, now in zip(("inequalities", "equalities"), self.forms, (inequalities, equalities), strict=True):
            if before.size != now.size:
                raise ProblemError(
                    f"the function returned {now.size} {name} here and {before.size} at the start; the number must not change"
                )

    def make_trial(self, x: Vector, f: float, values: Vector, equalities: int, derivatives: Derivatives | None) -> Trial:
        """The trial point with these values of the user's functions, after adding bounds and scaling."""
        bounds, c = self.bounds, values
        if bounds.any:
            c = np.concatenate([values[:equalities], bounds.equalities(x), values[equalities:], bounds.inequalities(x)])
            derivatives = derivatives and DerivativesWithBounds(derivatives, bounds, equalities, len(values))
        if self.scales is not None:
            f, c = f * self.scales.objective, c * self.scales.constraints
            derivatives = derivatives and ScaledDerivatives(derivatives, self.scales)
        units = None if self.scales is None else self.scales.constraints
        timed: Derivatives | None = derivatives and TimedDerivatives(derivatives, self._derivative_phases)
        if self.skipped_errors is not None and timed is not None:
            timed = SkippingDerivatives(timed, self.skipped_errors, len(x), len(c))
        return Trial(self.in_solver_units(x), f, c, equalities + len(bounds.fixed), timed, units=units)

    def multipliers_in_user_units(self, multipliers: Vector) -> Vector:
        """Multipliers of the solver's constraints, converted to the user's units."""
        return multipliers if self.scales is None else multipliers * self.scales.constraints / self.scales.objective

    def multipliers_in_solver_units(self, multipliers: Vector) -> Vector:
        """Multipliers of the user's constraints, converted to the solver's units."""
        return multipliers if self.scales is None else multipliers * self.scales.objective / self.scales.constraints

    def bound_multipliers_in_user_units(self, multipliers: Vector | None) -> Vector | None:
        """Multipliers of bounds on the solver's variables, converted to the user's units."""
        return multipliers if multipliers is None or self.scales is None else multipliers / self._bound_unit(self.scales)

    def bound_multipliers_in_solver_units(self, multipliers: Vector | None) -> Vector | None:
        """Multipliers of bounds on the user's variables, converted to the solver's units."""
        return multipliers if multipliers is None or self.scales is None else multipliers * self._bound_unit(self.scales)

    @staticmethod
    def _bound_unit(scales: Scales) -> Vector | float:
        return scales.objective if scales.variables is None else scales.objective * scales.variables

    def unscaled(self, f: float, c: Vector) -> tuple[float, Vector]:
        """f and c in the user's units."""
        return (f, c) if self.scales is None else (f / self.scales.objective, c / self.scales.constraints)

    def choose_scales(self, start: Trial, *, threshold: float = np.inf) -> Trial:
        """Choose units from the start, and return the start in these units.

        With a threshold, only functions with longer gradients are scaled, down to that length.
        """
        scales = _prescaling(start, threshold) if np.isfinite(threshold) else natural_scales(start)
        return start if scales is None or scales.is_identity else self.use_scales(scales, start)

    def use_scales(self, scales: Scales, start: Trial) -> Trial:
        """Switch to other units, and convert a point that was evaluated in the user's units."""
        reading = start.reading  # read before the switch, in the user's units
        self.scales = scales
        if self.tier is not None:
            self.tier.forget()
        gradient, jacobian = ScaledDerivatives(ExplicitDerivatives(start.gradient, start.jacobian, Costs()), scales).full()
        x, f, c = self.in_solver_units(start.x), start.f * scales.objective, start.c * scales.constraints
        scaled = Trial.stored(x, f, c, start.equalities, gradient, jacobian, units=scales.constraints)
        if reading is None:
            return scaled
        return scaled.read_by(lambda: reading.scaled(scales.objective, scales.variables, scales.constraints))


def natural_scales(start: Trial) -> Scales | None:
    """The natural units derived from a start in the user's units; None if the user's units are natural."""
    scales = automatic_scales(start.x, start.gradient, start.jacobian)
    return None if scales.is_identity else scales


def _prescaling(start: Trial, threshold: float) -> Scales:
    def factors(lengths: Vector) -> Vector:
        return np.where(lengths > threshold, threshold / np.maximum(lengths, threshold), 1.0)

    objective = float(factors(np.array([np.linalg.norm(start.gradient)]))[0])
    return Scales(objective, factors(np.linalg.norm(start.jacobian, axis=1)))


_NO_VALUES = np.zeros(0)


def _flat(value: Any, earlier: Form | None, name: str) -> tuple[Tensor | None, Form]:
    """One block of constraints as a tensor, and its form: the earlier form object if nothing has changed.

    A block that is one tensor keeps its shape, since flattening would add an autograd node.
    """
    if earlier is None:
        return flatten(value, name)
    kind = earlier.kind
    if value is None and kind is None:
        return None, earlier
    if kind is Tensor and type(value) is Tensor and value.shape == earlier.shapes[0] and value.is_floating_point():
        return value, earlier
    if kind is list and type(value) in (list, tuple) and len(value) == len(earlier.shapes):
        for part, shape in zip(value, earlier.shapes, strict=True):
            if type(part) is not Tensor or part.shape != shape or not is_plain(part):
                return flatten(value, name)
        if len(value) == 1:
            return value[0], earlier
        return torch.cat([part if part.dim() == 1 else part.reshape(-1) for part in value]), earlier
    return flatten(value, name)


OBJECTIVE, INEQUALITY, EQUALITY = "the objective", "the inequality constraint", "the equality constraint"


def _find_missing_gradients(f: Tensor, inequalities: Tensor | None, equalities: Tensor | None) -> tuple[str, ...]:
    blocks = ((OBJECTIVE, f), (INEQUALITY, inequalities), (EQUALITY, equalities))
    return tuple(name for name, block in blocks if block is not None and block.numel() and not block.requires_grad)


class _ModuleDerivatives:
    """Gradients in a module. A module is at one point at a time, so earlier points are evaluated again when needed."""

    def __init__(self, inner: Derivatives, evaluator: Evaluator, x: Vector) -> None:
        self._inner, self._evaluator, self._x, self._placement = inner, evaluator, x, evaluator.placements

    def _current(self) -> Derivatives:
        if self._placement != self._evaluator.placements:
            try:
                with self._evaluator.clock.phase(Phase.VALUES):
                    self._inner = self._evaluator.derivatives_at(self._x)
            except Exception as error:
                raise FunctionFailed(error) from error
            self._placement = self._evaluator.placements
        return self._inner

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        return self._current().combination(objective, constraints)

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        return self._current().full()
