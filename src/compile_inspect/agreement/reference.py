"""Eager and float64 results at all points, computed once and used for every variant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.forms import is_plain
from compile_inspect.agreement.inputs import generated, same_signature, shares_memory
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import Observation, State, observe, opaque, preserved_state, same, seeded
from compile_inspect.agreement.precision import compute_dtype, floating_precision, in_float64, real_dtype
from compile_inspect.agreement.probes import Habits, Probe, ends, habits_of, layout_probes, special_probes
from compile_inspect.agreement.rounding import disturbed, disturbed_inputs
from compile_inspect.agreement.values import Bystanders, Judgment
from compile_inspect.records.agreement import DifferenceKind
from compile_inspect.target import Inputs
from compile_inspect.variants import Step, Task

NOISY_RUNS = 2
MOST_NOISY_RUNS = 16
"""How often eager runs with perturbed roundings: at first, and at most before anything is called wrong."""
PROBE_SECONDS = 20.0
"""Time limit for special inputs."""
RERUN_UNITS = 64
"""Two runs of eager may differ by so many units in the last place of the compute dtype, at the largest element."""
OTHER_SEED = 7919


@dataclass
class Point:
    """Inputs to compare at, and eager's outcomes there."""

    name: str
    inputs: Inputs
    seed: int
    eager: Observation
    exact: Observation | None
    noisy: list[Observation]
    as_example: bool
    """Whether the inputs differ from the example only in the contents of tensors."""
    disturbances: int = 0
    """How often eager ran with perturbed roundings."""
    given: bool = False
    """Whether the user passed these inputs."""
    unsteady: tuple[str, ...] = ()
    """Names of values that differed when eager ran again."""


@dataclass
class Reference:
    """The outcomes of a task in eager mode, in float64, and with perturbed roundings, at every point."""

    task: Task
    points: list[Point]
    precision: Any
    state: State
    """What the function held when the reference was made: variants are compared in the same state."""
    random: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    unsteady: tuple[str, ...] = ()
    """Names of values that differ when eager runs again from the same seed, by more than rounding."""
    not_probed: list[str] = field(default_factory=list)
    """Inputs that were left out, each with the reason."""
    declined: str | None = None
    """Why results of this kind cannot be compared, if they cannot."""

    @property
    def has_float64(self) -> bool:
        """Whether there is a float64 result for at least one point."""
        return any(point.exact is not None for point in self.points)

    def bystanders(self, point: Point) -> Bystanders:
        """What a run at a point is compared with."""
        return Bystanders(point.name, point.eager, point.exact, point.noisy, self.precision, self.random)

    def judge(
        self,
        seen: Observation,
        point: Point,
        *,
        closely: bool = True,
        exact_kernels: bool = False,
        checks: Collection[DifferenceKind] = (),
    ) -> Judgment:
        """Compare a run with eager's; before it is called wrong, more perturbed runs estimate eager's own error.

        That takes a dozen runs, which `closely=False` avoids where a variant is already wrong elsewhere.
        """
        found = judge(seen, self.bystanders(point), exact_kernels=exact_kernels, checks=checks)
        while closely and found.differences and point.eager.error is None and self._disturb_more(point):
            found = judge(seen, self.bystanders(point), exact_kernels=exact_kernels, checks=checks)
        return found

    def _disturb_more(self, point: Point) -> bool:
        """Double the number of perturbed runs of eager; False where there are enough already."""
        if point.disturbances >= MOST_NOISY_RUNS:
            return False
        _disturb(self.task, point, max(point.disturbances, NOISY_RUNS))
        return True


def make_reference(task: Task, *, samples: int = 3, seed: int = 0, layouts: bool = False) -> Reference:
    """Run a task in eager mode and in float64 at your own inputs, at `samples` generated ones, and at special ones.

    With `samples=0` only your own inputs are used. `layouts` adds inputs with other strides, and with the same tensor
    passed twice: every variant that takes them compiles again.
    """
    notes: list[str] = []
    state = State.now(task)
    points = []
    for index, inputs in enumerate(task.inputs()):
        name = f"further inputs {index}" if index else "the example"
        points.append(_point(task, name, inputs, seed, notes, given=True))
    reference = Reference(task, points, floating_precision(task), state, notes=notes, declined=points[0].eager.declined)
    first = points[0]
    if first.eager.error is not None:
        notes.append(f"eager raises {first.eager.error} at the example")
        return reference
    if first.eager.declined is not None:
        return reference
    if any(point.unsteady for point in points):
        return _said_unsteady(reference)
    reference.random = frozenset(_changed_names(first, _run_again(task, first, first.seed + OTHER_SEED)))
    if reference.random:
        notes.append(f"{listed(sorted(reference.random))}: random; every run starts from the same seed")
    if samples and _can_be_refilled(first.inputs):
        _add_generated(reference, samples, seed)
        _add_probes(reference, seed, layouts)
    first.unsteady = _unsteady_names(task, first)  # again, for a result that depends on a clock
    if first.unsteady:
        return _said_unsteady(reference)
    reference.notes = list(dict.fromkeys(notes))
    return reference


def _said_unsteady(reference: Reference) -> Reference:
    names = dict.fromkeys(name for point in reference.points for name in point.unsteady)
    reference.unsteady = tuple(names)
    reference.notes.append(f"eager returns a different {listed(list(names))} when run again")
    return reference


def _add_generated(reference: Reference, samples: int, seed: int) -> None:
    task, points = reference.task, reference.points
    for index, (kind, inputs) in enumerate(generated((task.args, task.kwargs), samples, seed)):
        name = f"inputs {kind} ({index + 1})"
        points.append(_point(task, name, inputs, seed + len(points), reference.notes))


def _add_probes(reference: Reference, seed: int, layouts: bool) -> None:
    """Add special inputs until the time limit."""
    task, points = reference.task, reference.points
    habits = _habits(reference)
    started, late = perf_counter(), []
    for probe in _probes(task, habits, seed, layouts):
        if probe.inputs is None:
            reference.not_probed.append(f"{probe.name}: {probe.reason}")
        elif perf_counter() - started > PROBE_SECONDS:
            late.append(probe.name)
        elif not ends(habits, lambda inputs=probe.inputs: _run_freely(reference, inputs)):  # type: ignore[misc]
            reference.not_probed.append(f"{probe.name}: eager does not finish there")
        else:
            point = _point(task, probe.name, probe.inputs, seed + len(points), reference.notes)
            if probe.must_not_raise and point.eager.error is not None:
                reference.not_probed.append(f"{probe.name}: eager raises {point.eager.error}")
            else:
                points.append(point)
    if late:
        reference.not_probed.append(f"{listed(late)}: the limit of {PROBE_SECONDS:g} s was reached")


def _probes(task: Task, habits: Habits, seed: int, layouts: bool) -> Iterator[Probe]:
    yield from special_probes(task, habits, seed)
    if layouts:
        yield from layout_probes(task)


def _habits(reference: Reference) -> Habits:
    first = reference.points[0]
    try:
        return habits_of(reference.task, lambda: _run_freely(reference, first.inputs))
    except Exception:  # operations cannot be intercepted, for example where the function compiles something itself
        return Habits(1, True, True, True)


def _run_freely(reference: Reference, inputs: Inputs) -> None:
    """Run eager on copies of inputs and restore everything; exceptions propagate."""
    from compile_inspect.agreement.inputs import cloned

    task = reference.task
    args, kwargs = cloned(inputs)
    with preserved_state(task), seeded(reference.points[0].seed):
        task.run(task.function, args, kwargs)


def _can_be_refilled(inputs: Inputs) -> bool:
    leaves = torch_private.flatten((inputs[0], dict(inputs[1])))[0]
    return any(torch_private.is_tensor(leaf) and is_plain(leaf) for leaf in leaves)


def _point(task: Task, name: str, inputs: Inputs, seed: int, notes: list[str], *, given: bool = False) -> Point:
    eager = _eager(task, inputs, seed)
    point = Point(name, inputs, seed, eager, None, [], same_signature(inputs, (task.args, task.kwargs)), given=given)
    if eager.error is not None or eager.declined is not None:
        return point
    if given:
        point.unsteady = _unsteady_names(task, point)
        if point.unsteady:
            return point
    if eager.changes and shares_memory(inputs):
        notes.append(f"there is no float64 reference at {name}: inputs that share memory are changed in place")
    else:
        exact = observe(task, in_float64(task), inputs, seed)
        if exact.error is None and exact.declined is None:
            point.exact = exact
        else:
            notes.append(f"there is no float64 reference at {name}: {exact.error or exact.declined}")
    _disturb(task, point, NOISY_RUNS)
    return point


def _disturb(task: Task, point: Point, count: int) -> None:
    """Add perturbed runs to a point."""
    for number in range(point.disturbances, point.disturbances + count):
        run = observe(task, disturbed(task, point.seed + 1 + number), point.inputs, point.seed)
        if run.error is not None:  # its operations cannot be intercepted
            run = observe(task, disturbed_inputs(task, point.seed + 1 + number), point.inputs, point.seed)
            run = replace(run, changes=point.eager.changes)  # it changed copies of its own
        if run.error is None and run.declined is None:
            point.noisy.append(run)
    point.disturbances += count


def _eager(task: Task, inputs: Inputs, seed: int) -> Observation:
    def run(*args: Any, **kwargs: Any) -> Step:
        return task.run(task.function, args, kwargs)

    return observe(task, run, inputs, seed)


def _run_again(task: Task, point: Point, seed: int) -> Observation:
    return _eager(task, point.inputs, seed)


def _changed_names(point: Point, again: Observation) -> list[str]:
    """Names of values that differ in another run."""
    mine, others = point.eager.everything, again.everything
    return [name for name in mine if not opaque(mine[name]) and not same(mine[name], others.get(name))]


def _unsteady_names(task: Task, point: Point) -> tuple[str, ...]:
    """Names of values that differ when eager runs again from the same seed, by more than a different order of sums."""
    again = _run_again(task, point, point.seed)
    if again.error is not None:
        return (f"result (it raises {again.error})",)
    changed = _changed_names(point, again)
    mine, others = point.eager.everything, again.everything
    if changed and all(name in others and _near(mine[name], others[name]) for name in changed):
        point.noisy.append(again)
        return ()
    return tuple(changed)


def _near(one: Any, other: Any) -> bool:
    """Whether two results of one function may differ by the order in which threads add up."""
    import torch

    if not (torch_private.is_tensor(one) and torch_private.is_tensor(other)) or one.shape != other.shape:
        return False
    if not (one.is_floating_point() or one.is_complex()) or not one.numel():
        return False
    limits = torch.finfo(compute_dtype(one.dtype)).eps * RERUN_UNITS + 2 * torch.finfo(real_dtype(one.dtype)).eps
    largest = float(one.abs().nan_to_num(0, 0, 0).double().max())
    return bool(torch.allclose(one, other, rtol=0, atol=limits * largest, equal_nan=True))


def listed(names: list[str], most: int = 4) -> str:
    """Names as a list in a sentence, the first few of many.

    >>> listed(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
