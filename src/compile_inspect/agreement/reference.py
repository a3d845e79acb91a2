"""Eager and float64 results at all points, computed once and used for every variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.agreement.inputs import generated, same_signature, special
from compile_inspect.agreement.observation import Observation, State, observe, opaque, same
from compile_inspect.agreement.precision import disturbed, floating_precision, in_float64
from compile_inspect.agreement.values import Bystanders
from compile_inspect.capture import torch_private
from compile_inspect.target import Inputs
from compile_inspect.variants import Task

NOISY_RUNS = 1
MORE_NOISY_RUNS = 12
"""How often eager is run with disturbed roundings: at first, and before anything is called wrong."""
OTHER_SEED = 7919


@dataclass
class Point:
    """Inputs to compare at, and all that eager does there."""

    name: str
    inputs: Inputs
    seed: int
    eager: Observation
    exact: Observation | None
    noisy: list[Observation]
    as_example: bool
    """Whether the inputs differ from the example in the contents of tensors alone."""
    looked_at_closely: bool = False


@dataclass
class Reference:
    """What a task gives in eager mode, in float64, and with disturbed roundings, at every point."""

    task: Task
    points: list[Point]
    precision: Any
    state: State
    """What the function held when it was made: variants are compared in the same state."""
    random: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)

    @property
    def has_float64(self) -> bool:
        """Whether there is a float64 result for at least one point."""
        return any(point.exact is not None for point in self.points)

    def bystanders(self, point: Point) -> Bystanders:
        """What a run at a point is judged by."""
        return Bystanders(point.name, point.eager, point.exact, point.noisy, self.precision, self.random)

    def disturb_more(self, point: Point) -> bool:
        """Run eager a few more times with disturbed roundings; False where that has been done before."""
        if point.looked_at_closely:
            return False
        point.looked_at_closely = True
        point.noisy += _noisy(self.task, point.inputs, point.seed, range(NOISY_RUNS, NOISY_RUNS + MORE_NOISY_RUNS))
        return True


def make_reference(task: Task, *, samples: int = 3, seed: int = 0) -> Reference:
    """Run a task in eager mode and in float64 at the given inputs and at `samples` generated ones."""
    example = (task.args, task.kwargs)
    state = State.now(task)
    points: list[Point] = []
    notes: list[str] = []
    for index, inputs in enumerate(task.inputs()):
        name = f"further inputs {index}" if index else "the example"
        points.append(_point(task, name, inputs, seed, notes))
    first = points[0]
    if first.eager.error is None and _has_tensors(example):
        for name, inputs in _further(example, samples, seed):
            point = _point(task, name, inputs, seed + len(points), notes)
            if _sensible(point, first):
                points.append(point)
            else:
                notes.append(f"{name} were left out: eager gives {point.eager.error or 'NaN or infinity'} there")
    unsteady = _changing_names(task, first, first.seed)
    if unsteady:
        notes.append(f"eager gives another {listed(unsteady)} when run again")
    random = frozenset(_changing_names(task, first, first.seed + OTHER_SEED)) - frozenset(unsteady)
    if random:
        notes.append(f"{listed(sorted(random))}: random; every run starts from the same seed")
    return Reference(task, points, floating_precision(task), state, random, list(dict.fromkeys(notes)))


def _has_tensors(inputs: Inputs) -> bool:
    return any(torch_private.is_tensor(leaf) for leaf in torch_private.flatten((inputs[0], dict(inputs[1])))[0])


def _further(example: Inputs, samples: int, seed: int) -> Iterator[tuple[str, Inputs]]:
    for index, (kind, inputs) in enumerate(generated(example, samples, seed)):
        yield f"inputs {kind} ({index + 1})", inputs
    if samples:
        yield "inputs with special values", special(example, seed)


def _sensible(point: Point, example: Point) -> bool:
    """Whether generated inputs are such as the function is made for: no exception, no NaN where the example has none."""
    if point.eager.error is not None:
        return False
    if _finite(point.eager):
        return True
    return not _finite(example.eager)


def _finite(observation: Observation) -> bool:
    import torch

    tensors = [value for value in observation.everything.values() if torch_private.is_tensor(value)]
    floating = [value for value in tensors if value.is_floating_point() or value.is_complex()]
    return all(bool(torch.isfinite(value if value.layout is torch.strided else value.to_dense()).all()) for value in floating)


def _point(task: Task, name: str, inputs: Inputs, seed: int, notes: list[str]) -> Point:
    def eagerly(*args: Any, **kwargs: Any) -> Any:
        return task.run(task.function, args, kwargs)

    eager = observe(task, eagerly, inputs, seed)
    alike = same_signature(inputs, (task.args, task.kwargs))
    if eager.error is not None:
        return Point(name, inputs, seed, eager, None, [], alike)
    exact: Observation | None = observe(task, in_float64(task), inputs, seed)
    if exact is not None and exact.error is not None:
        notes.append(f"there is no float64 reference at {name}: {exact.error}")
        exact = None
    noisy = _noisy(task, inputs, seed, range(NOISY_RUNS))
    return Point(name, inputs, seed, eager, exact, noisy, alike)


def _noisy(task: Task, inputs: Inputs, seed: int, which: range) -> list[Observation]:
    runs = [observe(task, disturbed(task, seed + 1 + number), inputs, seed) for number in which]
    return [run for run in runs if run.error is None]


def _changing_names(task: Task, point: Point, seed: int) -> list[str]:
    """Values that come out otherwise when eager is run again: from the same seed, such as by threads, or from another."""
    if point.eager.error is not None:
        return []
    again = observe(task, lambda *args, **kwargs: task.run(task.function, args, kwargs), point.inputs, seed)
    if again.error is None and seed == point.seed:
        point.noisy.append(again)
    mine, others = point.eager.everything, again.everything
    return [name for name in mine if not opaque(mine[name]) and not same(mine[name], others.get(name))]


def listed(names: list[str], most: int = 4) -> str:
    """Names in a row, the first few of many.

    >>> listed(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
