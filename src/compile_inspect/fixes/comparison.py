"""Compare a changed program with the original: values, gradients, and which results require a gradient.

Results that differ between two runs of the unchanged program, such as the time of day, do not count against a change. They are
not compared, and the comparison lists them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.reference import Point, Reference, make_reference
from compile_inspect.agreement.run_outcome import RunOutcome, compares_by_identity, observe, same_value
from compile_inspect.variants import Step, Task
from compile_inspect.variants.task import cotangent

# After this time, a clock that counts whole seconds has advanced.
_CLOCK_TICK_SECONDS = 1.1
# Results that threads sum in a different order differ by less; clocks and random numbers differ by more.
_MAX_ROUNDING_ULPS = 64
_GRADIENT_PREFIX = "gradient of "
_NO_GRADIENT, _ZERO_GRADIENT, _NONZERO_GRADIENT = 0, 1, 2

Function = Callable[..., Any]


@dataclass
class ResultComparison:
    """What was compared, and the first difference."""

    inputs: int = 0
    values: int = 0
    gradients: int = 0
    largest_error: float | None = None
    nondeterministic: set[str] = field(default_factory=set)
    difference: str = ""
    reason: str = ""
    """Why nothing could be compared."""


@dataclass(frozen=True)
class _CalledAsIs(Task):
    """A task that calls its function with gradients enabled even if none are compared: it may run its own backward."""

    def run(self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """Call a function and, if gradients are compared, run the backward."""
        return super().run(function, args, kwargs) if self.gradients else Step(function(*args, **kwargs))


def as_called(task: Task) -> Task:
    """The same task with gradients enabled."""
    return _CalledAsIs(**{item.name: getattr(task, item.name) for item in fields(Task)})


def _is_ordinary(point: Point, example: Point) -> bool:
    """Whether the program runs at generated inputs, and returns NaN or infinity only if it does so at the example."""
    return point.eager.error is None and (_is_finite(point.eager) or not _is_finite(example.eager))


def _is_finite(observation: RunOutcome) -> bool:
    import torch

    tensors = [value for value in observation.all_values.values() if torch_private.is_tensor(value)]
    plain = [value for value in tensors if value.layout is torch.strided and (value.is_floating_point() or value.is_complex())]
    return all(bool(torch.isfinite(value).all()) for value in plain)


class Original:
    """The unchanged program: its results at several inputs, and which of them are nondeterministic."""

    def __init__(self, task: Task, samples: int) -> None:
        self.task, self._samples = as_called(task), samples
        self._nondeterministic: dict[int, set[str]] = {}

    @cached_property
    def reference(self) -> Reference:
        """Results in eager mode at the example inputs and at generated inputs that the program accepts.

        A change may treat NaN differently, or omit a check that raises; its description says so.
        """
        reference = make_reference(self.task, samples=self._samples)
        example = reference.points[0]
        reference.points = [point for point in reference.points if point.from_user or _is_ordinary(point, example)]
        return reference

    @property
    def points(self) -> Sequence[Point]:
        """The inputs at which programs are compared."""
        return self.reference.points

    def compare(self, task: Task, functions: Sequence[tuple[str, Function]]) -> ResultComparison:
        """Compare a changed program that is called in several ways, each with a name such as `compiled`."""
        task = as_called(task)
        result = ResultComparison(inputs=len(self.points))
        result.difference = self._gradient_difference(task)
        for name, function in functions:
            for index, point in enumerate(self.points):
                if result.difference:
                    return result
                outcome = observe(task, _runner(task, function), point.inputs, point.seed)
                self._compare_at(result, index, point, outcome, name)
        self._count(result)
        return result

    def _compare_at(self, result: ResultComparison, index: int, point: Point, outcome: RunOutcome, name: str) -> None:
        judgment = self.reference.judge(outcome, point)
        result.nondeterministic |= self._nondeterministic_names(index, point) | set(judgment.incomparable)
        differences = [item for item in judgment.differences if item.name not in result.nondeterministic]
        if any(not torch_private.is_tensor(point.eager.all_values.get(item.name)) for item in differences):
            time.sleep(_CLOCK_TICK_SECONDS)
            result.nondeterministic |= self._nondeterministic_names(index, point, again=True)
            differences = [item for item in differences if item.name not in result.nondeterministic]
        if differences:
            first = differences[0]
            result.difference = f"{name}, at {point.name}, {first.name}: {first.message}"
            return
        errors = [
            _distance(value, outcome.all_values.get(key))
            for key, value in point.eager.all_values.items()
            if key not in result.nondeterministic
        ]
        finite_errors = [error for error in (*errors, result.largest_error) if error is not None]
        result.largest_error = max(finite_errors, default=None)

    def _count(self, result: ResultComparison) -> None:
        """Count the values and gradients of a run that were compared: none if the original raises."""
        eager = self.points[0].eager
        if eager.error is not None:
            result.reason = f"the original raises {eager.error}"
            return
        compared = [name for name in eager.all_values if name not in result.nondeterministic]
        result.gradients = sum(name.startswith(_GRADIENT_PREFIX) for name in compared)
        result.values = len(compared) - result.gradients
        if not compared:
            result.reason = (
                "all results differ between two runs of the original" if eager.all_values else "there are no results"
            )

    def _nondeterministic_names(self, index: int, point: Point, *, again: bool = False) -> set[str]:
        """Names of results that differ when the original runs again on the same inputs from the same seed."""
        if index in self._nondeterministic and not again:
            return self._nondeterministic[index]
        task = self.task
        names = self._nondeterministic.setdefault(index, set())
        other = observe(task, _runner(task, task.function), point.inputs, point.seed)
        if other.error is None and point.eager.error is None:
            there = other.all_values
            names |= {name for name, value in point.eager.all_values.items() if differs(value, there.get(name))}
        return names

    def _gradient_difference(self, task: Task) -> str:
        """The first result that requires a gradient although that of the original does not, or the reverse."""
        before, after = (_gradient_flows(one, self.points[0]) for one in (self.task, task))
        if before is None or after is None:
            return ""  # it raises, which the comparison of values reports
        where = f"in eager mode, at {self.points[0].name}"
        for name, required in before.items():
            flow = after.get(name)
            if required and flow == _NO_GRADIENT:
                return f"{where}, {name} requires no gradient, but in the original it does"
            # A choice between two tensors requires a gradient if either does; the gradient of the other side is zero.
            if required == _NO_GRADIENT and flow == _NONZERO_GRADIENT:
                return f"{where}, {name} has a gradient, but in the original it has none"
        return ""


def differs(one: Any, other: Any) -> bool:
    """Whether two runs differ by more than rounding of sums in a different order.

    >>> differs(1.0, 1.0 + 2**-52), differs(1794945312.25, 1794945312.5), differs("a", "b")
    (False, True, True)
    """
    if compares_by_identity(one) or same_value(one, other):
        return False
    error = _distance(one, other)
    if error is None or not math.isfinite(error):
        return True
    return error > _MAX_ROUNDING_ULPS * _spacing(one)


def _distance(one: Any, other: Any) -> float | None:
    """The largest difference of two numbers or floating-point tensors; None if they cannot be subtracted."""
    import torch

    if isinstance(one, float) and isinstance(other, (float, int)):
        return abs(one - other) if math.isfinite(one) and math.isfinite(other) else None
    if not torch_private.is_tensor(one) or not torch_private.is_tensor(other) or one.shape != other.shape:
        return None
    if not (one.is_floating_point() or one.is_complex()) or one.layout is not torch.strided or not one.numel():
        return None
    wide = torch.complex128 if one.is_complex() else torch.float64
    difference = (one.to(wide) - other.to(one.device, wide)).abs()
    finite = difference[torch.isfinite(difference)]
    return float(finite.max()) if finite.numel() else None


def _spacing(value: Any) -> float:
    """The spacing of floating-point numbers at the largest magnitude of a value."""
    import torch

    if isinstance(value, float):
        # A number that was computed as a float32 is rounded like one.
        single = float(torch.tensor(value, dtype=torch.float32)) == value
        return abs(value) * torch.finfo(torch.float32 if single else torch.float64).eps
    return float(value.abs().max()) * torch.finfo(value.dtype).eps


def _runner(task: Task, function: Function) -> Callable[..., Step]:
    return lambda *args, **kwargs: task.run(function, args, kwargs)


def _gradient_flows(task: Task, point: Point) -> dict[str, Any] | None:
    """For every result, whether a gradient flows through it in eager mode; None if the call raises."""

    def run(*args: Any, **kwargs: Any) -> Step:
        import torch

        leaves = torch_private.flatten((args, kwargs))[0]
        sources = [leaf for leaf in (*leaves, *(item.now() for item in task.held_tensors)) if torch_private.is_tensor(leaf)]
        with torch.enable_grad():
            result = task.function(*args, **kwargs)
            return Step(_map_tensors(result, lambda leaf: _flow(leaf, [one for one in sources if one.requires_grad])))

    outcome = observe(task, run, point.inputs, point.seed)
    return None if outcome.error is not None else outcome.values


def _flow(leaf: Any, sources: list[Any]) -> int:
    """Whether a result requires a gradient, and whether the gradient is nonzero anywhere."""
    import torch

    if not leaf.requires_grad:
        return _NO_GRADIENT
    if leaf.grad_fn is None or not sources:
        return _NONZERO_GRADIENT
    try:
        gradients = torch.autograd.grad(leaf, sources, cotangent(leaf), retain_graph=True, allow_unused=True)
    except RuntimeError:  # the function runs its own backward and has freed the buffers
        return _NONZERO_GRADIENT
    return _NONZERO_GRADIENT if any(one is not None and bool((one != 0).any()) for one in gradients) else _ZERO_GRADIENT


def requires_gradient(result: Any) -> Any:
    """The same structure, with each tensor replaced by whether it requires a gradient."""
    return _map_tensors(result, lambda leaf: bool(leaf.requires_grad))


def _map_tensors(result: Any, function: Callable[[Any], Any]) -> Any:
    leaves, structure = torch_private.flatten(result)
    return torch_private.unflatten([function(leaf) if torch_private.is_tensor(leaf) else None for leaf in leaves], structure)
