"""Results of a changed program against those of the original: values, gradients, and which results require a gradient.

What differs between two runs of the unchanged program, such as the time of day, cannot be held against a change. It is not
compared, and the comparison says so.
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

# A clock that counts seconds has moved on after this.
_NEXT_SECOND = 1.1
# Results that threads sum up in another order differ by less, clocks and random numbers by more.
_ROUNDING_ULPS = 64
_GRADIENT = "gradient of "
_NONE, _ZERO, _FLOWS = 0, 1, 2

Function = Callable[..., Any]


@dataclass
class Comparison:
    """What was compared, and the first thing that differs."""

    inputs: int = 0
    values: int = 0
    gradients: int = 0
    largest_error: float | None = None
    unsteady: set[str] = field(default_factory=set)
    difference: str = ""
    reason: str = ""
    """Why nothing was compared."""


@dataclass(frozen=True)
class _AsCalled(Task):
    """A task whose function is called as it is, also where no gradients are compared: it may run a backward of its own."""

    def run(self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """Call a function; with gradients, run the backward too."""
        return super().run(function, args, kwargs) if self.gradients else Step(function(*args, **kwargs))


def as_called(task: Task) -> Task:
    """A task that leaves gradients on."""
    return _AsCalled(**{item.name: getattr(task, item.name) for item in fields(Task)})


def _is_ordinary(point: Point, example: Point) -> bool:
    """Whether the program runs at generated inputs, and gives NaN or infinity only if it does so at the example."""
    return point.eager.error is None and (_is_finite(point.eager) or not _is_finite(example.eager))


def _is_finite(observation: RunOutcome) -> bool:
    import torch

    tensors = [value for value in observation.all_values.values() if torch_private.is_tensor(value)]
    plain = [value for value in tensors if value.layout is torch.strided and (value.is_floating_point() or value.is_complex())]
    return all(bool(torch.isfinite(value).all()) for value in plain)


class Original:
    """The unchanged program: what it gives at several inputs, and what of that is another thing in every run."""

    def __init__(self, task: Task, samples: int) -> None:
        self.task, self._samples = as_called(task), samples
        self._unsteady: dict[int, set[str]] = {}

    @cached_property
    def reference(self) -> Reference:
        """Results in eager mode at the inputs given, and at those generated ones that the program is made for.

        A change may treat NaN otherwise, or leave out a check that raises: that is what its description says.
        """
        reference = make_reference(self.task, samples=self._samples)
        example = reference.points[0]
        reference.points = [point for point in reference.points if point.from_user or _is_ordinary(point, example)]
        return reference

    @property
    def points(self) -> Sequence[Point]:
        """The inputs that programs are compared at."""
        return self.reference.points

    def compare(self, task: Task, functions: Sequence[tuple[str, Function]]) -> Comparison:
        """Compare a changed program, called in several ways, each with a name such as `compiled`."""
        task = as_called(task)
        found = Comparison(inputs=len(self.points))
        found.difference = self._flags(task)
        for name, function in functions:
            for index, point in enumerate(self.points):
                if found.difference:
                    return found
                seen = observe(task, _running(task, function), point.inputs, point.seed)
                self._judge(found, index, point, seen, name)
        self._count(found)
        return found

    def _judge(self, found: Comparison, index: int, point: Point, seen: RunOutcome, name: str) -> None:
        judged = self.reference.judge(seen, point)
        found.unsteady |= self._changing(index, point) | set(judged.incomparable)
        differences = [item for item in judged.differences if item.name not in found.unsteady]
        if any(not torch_private.is_tensor(point.eager.all_values.get(item.name)) for item in differences):
            time.sleep(_NEXT_SECOND)
            found.unsteady |= self._changing(index, point, again=True)
            differences = [item for item in differences if item.name not in found.unsteady]
        if differences:
            first = differences[0]
            found.difference = f"{name}, at {point.name}, {first.name}: {first.message}"
            return
        errors = [
            _distance(value, seen.all_values.get(key))
            for key, value in point.eager.all_values.items()
            if key not in found.unsteady
        ]
        known = [error for error in (*errors, found.largest_error) if error is not None]
        found.largest_error = max(known, default=None)

    def _count(self, found: Comparison) -> None:
        """How many values and gradients of a run were compared: none where the original raises."""
        eager = self.points[0].eager
        if eager.error is not None:
            found.reason = f"the original raises {eager.error}"
            return
        compared = [name for name in eager.all_values if name not in found.unsteady]
        found.gradients = sum(name.startswith(_GRADIENT) for name in compared)
        found.values = len(compared) - found.gradients
        if not compared:
            found.reason = "all results differ between two runs of the original" if eager.all_values else "there are no results"

    def _changing(self, index: int, point: Point, *, again: bool = False) -> set[str]:
        """Names of what the original gives otherwise when it is run again on the same inputs from the same seed."""
        if index in self._unsteady and not again:
            return self._unsteady[index]
        task = self.task
        names = self._unsteady.setdefault(index, set())
        other = observe(task, _running(task, task.function), point.inputs, point.seed)
        if other.error is None and point.eager.error is None:
            there = other.all_values
            names |= {name for name, value in point.eager.all_values.items() if differs(value, there.get(name))}
        return names

    def _flags(self, task: Task) -> str:
        """Which result requires a gradient where that of the original does not, or the other way round."""
        before, after = (_requirements(one, self.points[0]) for one in (self.task, task))
        if before is None or after is None:
            return ""  # it raises, which the comparison of values says
        where = f"in eager mode, at {self.points[0].name}"
        for name, required in before.items():
            found = after.get(name)
            if required and found == _NONE:
                return f"{where}, {name} requires no gradient, and in the original it does"
            # A choice between two tensors requires one if either does; through the side not taken it is zero.
            if required == _NONE and found == _FLOWS:
                return f"{where}, {name} has a gradient, and in the original it has none"
        return ""


def differs(one: Any, other: Any) -> bool:
    """Whether two runs gave another thing, by more than the rounding of sums in another order.

    >>> differs(1.0, 1.0 + 2**-52), differs(1794945312.25, 1794945312.5), differs("a", "b")
    (False, True, True)
    """
    if compares_by_identity(one) or same_value(one, other):
        return False
    error = _distance(one, other)
    if error is None or not math.isfinite(error):
        return True
    return error > _ROUNDING_ULPS * _spacing(one)


def _distance(one: Any, other: Any) -> float | None:
    """The largest difference of two numbers or floating-point tensors; None where there is none to be taken."""
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
        # A number that was a float32 before is rounded as one.
        single = float(torch.tensor(value, dtype=torch.float32)) == value
        return abs(value) * torch.finfo(torch.float32 if single else torch.float64).eps
    return float(value.abs().max()) * torch.finfo(value.dtype).eps


def _running(task: Task, function: Function) -> Callable[..., Step]:
    return lambda *args, **kwargs: task.run(function, args, kwargs)


def _requirements(task: Task, point: Point) -> dict[str, Any] | None:
    """For every result whether a gradient flows through it in eager mode; None where the call raises."""

    def run(*args: Any, **kwargs: Any) -> Step:
        import torch

        leaves = torch_private.flatten((args, kwargs))[0]
        wanted = [leaf for leaf in (*leaves, *(item.now() for item in task.held_tensors)) if torch_private.is_tensor(leaf)]
        with torch.enable_grad():
            result = task.function(*args, **kwargs)
            return Step(_for_each(result, lambda leaf: _flow(leaf, [one for one in wanted if one.requires_grad])))

    seen = observe(task, run, point.inputs, point.seed)
    return None if seen.error is not None else seen.values


def _flow(leaf: Any, wanted: list[Any]) -> int:
    """Whether a result requires a gradient, and whether that is more than zero somewhere."""
    import torch

    if not leaf.requires_grad:
        return _NONE
    if leaf.grad_fn is None or not wanted:
        return _FLOWS
    try:
        found = torch.autograd.grad(leaf, wanted, cotangent(leaf), retain_graph=True, allow_unused=True)
    except RuntimeError:  # the function runs a backward of its own, and what is needed is gone
        return _FLOWS
    return _FLOWS if any(one is not None and bool((one != 0).any()) for one in found) else _ZERO


def requiring(result: Any) -> Any:
    """The same structure, with whether it requires a gradient in the place of every tensor."""
    return _for_each(result, lambda leaf: bool(leaf.requires_grad))


def _for_each(result: Any, asked: Callable[[Any], Any]) -> Any:
    leaves, structure = torch_private.flatten(result)
    return torch_private.unflatten([asked(leaf) if torch_private.is_tensor(leaf) else None for leaf in leaves], structure)
