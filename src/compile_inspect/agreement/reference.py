"""Eager and float64 results at all points, computed once and used for every variant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.float64_run import compute_dtype, float64_run, floating_precision, real_dtype
from compile_inspect.agreement.inputs import generate_inputs, same_signature, shares_memory
from compile_inspect.agreement.judgment import judge
from compile_inspect.agreement.probes import DataUse, Probe, finishes, layout_probes, observe_data_use, special_probes
from compile_inspect.agreement.rounding import perturbed_input_run, perturbed_run
from compile_inspect.agreement.run_outcome import (
    HeldState,
    RunOutcome,
    compares_by_identity,
    observe,
    preserve_state,
    same_value,
    seed_generators,
)
from compile_inspect.agreement.tensor_metadata import is_plain
from compile_inspect.agreement.values import Baseline, Judgment
from compile_inspect.records.agreement import DifferenceKind
from compile_inspect.target import Inputs
from compile_inspect.variants import Step, Task

INITIAL_PERTURBED_RUNS = 2
MAX_PERTURBED_RUNS = 16
"""How often eager runs with perturbed rounding: initially, and at most before a variant is judged wrong."""
MAX_PROBE_SECONDS = 20.0
"""After this time, no further special inputs are added."""
MAX_RERUN_UNITS = 64
"""The largest difference between two runs of eager, in units in the last place of the compute dtype at the largest element."""
SEED_OFFSET = 7919
"""Added to the seed of a second run of eager: values that then differ are random."""


@dataclass
class Point:
    """Inputs to compare at, and eager's outcomes there."""

    name: str
    inputs: Inputs
    seed: int
    eager: RunOutcome
    float64: RunOutcome | None
    perturbed: list[RunOutcome]
    matches_example: bool
    """Whether the inputs differ from the example only in the contents of tensors."""
    perturbation_count: int = 0
    """How often eager ran with perturbed roundings."""
    from_user: bool = False
    """Whether the user passed these inputs."""
    nondeterministic: tuple[str, ...] = ()
    """Names of values that differed when eager ran again."""


@dataclass
class Reference:
    """The outcomes of a task in eager mode, in float64, and with perturbed roundings, at every point."""

    task: Task
    points: list[Point]
    precision: Any
    state: HeldState
    """What the function held when the reference was made: variants are compared in the same state."""
    random: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    nondeterministic: tuple[str, ...] = ()
    """Names of values that differ when eager runs again from the same seed, by more than rounding."""
    not_probed: list[str] = field(default_factory=list)
    """Inputs that were left out, each with the reason."""
    incomparable_reason: str | None = None
    """Why results of this kind cannot be compared, if they cannot."""

    @property
    def has_float64(self) -> bool:
        """Whether there is a float64 result for at least one point."""
        return any(point.float64 is not None for point in self.points)

    def baseline(self, point: Point) -> Baseline:
        """What a run at a point is compared with."""
        return Baseline(point.name, point.eager, point.float64, point.perturbed, self.precision, self.random)

    def judge(
        self,
        outcome: RunOutcome,
        point: Point,
        *,
        refine: bool = True,
        exact_kernels: bool = False,
        checks: Collection[DifferenceKind] = (),
    ) -> Judgment:
        """Compare a run with eager's; before it is judged wrong, more perturbed runs estimate eager's own error.

        That takes a dozen runs, which `refine=False` avoids if a variant is already wrong elsewhere.
        """
        judgment = judge(outcome, self.baseline(point), exact_kernels=exact_kernels, checks=checks)
        while refine and judgment.differences and point.eager.error is None and self._double_perturbed_runs(point):
            judgment = judge(outcome, self.baseline(point), exact_kernels=exact_kernels, checks=checks)
        return judgment

    def _double_perturbed_runs(self, point: Point) -> bool:
        """Double the number of perturbed runs of eager; False where there are enough already."""
        if point.perturbation_count >= MAX_PERTURBED_RUNS:
            return False
        _add_perturbed_runs(self.task, point, max(point.perturbation_count, INITIAL_PERTURBED_RUNS))
        return True


def make_reference(task: Task, *, samples: int = 3, seed: int = 0, layouts: bool = False) -> Reference:
    """Run a task in eager mode and in float64 at your own inputs, at `samples` generated ones, and at special ones.

    With `samples=0` only your own inputs are used. `layouts` adds inputs with other strides, and with the same tensor
    passed twice; every variant must be compiled again for these.
    """
    notes: list[str] = []
    state = HeldState.now(task)
    points = []
    for index, inputs in enumerate(task.inputs()):
        name = f"further inputs {index}" if index else "the example"
        points.append(_point(task, name, inputs, seed, notes, from_user=True))
    reference = Reference(
        task, points, floating_precision(task), state, notes=notes, incomparable_reason=points[0].eager.incomparable_reason
    )
    first = points[0]
    if first.eager.error is not None:
        notes.append(f"eager raises {first.eager.error} at the example")
        return reference
    if first.eager.incomparable_reason is not None:
        return reference
    if any(point.nondeterministic for point in points):
        return _mark_nondeterministic(reference)
    reference.random = frozenset(_differing_names(first, _run_again(task, first, first.seed + SEED_OFFSET)))
    if reference.random:
        notes.append(f"{join_names(sorted(reference.random))}: random; every run starts from the same seed")
    if samples and _can_be_refilled(first.inputs):
        _add_generated(reference, samples, seed)
        _add_probes(reference, seed, layouts)
    first.nondeterministic = _nondeterministic_names(task, first)  # again, for a result that depends on a clock
    if first.nondeterministic:
        return _mark_nondeterministic(reference)
    reference.notes = list(dict.fromkeys(notes))
    return reference


def _mark_nondeterministic(reference: Reference) -> Reference:
    names = dict.fromkeys(name for point in reference.points for name in point.nondeterministic)
    reference.nondeterministic = tuple(names)
    reference.notes.append(f"eager returns a different {join_names(list(names))} when run again")
    return reference


def _add_generated(reference: Reference, samples: int, seed: int) -> None:
    task, points = reference.task, reference.points
    for index, (kind, inputs) in enumerate(generate_inputs((task.args, task.kwargs), samples, seed)):
        name = f"{kind} inputs ({index + 1})"
        points.append(_point(task, name, inputs, seed + len(points), reference.notes))


def _add_probes(reference: Reference, seed: int, layouts: bool) -> None:
    """Add special inputs until the time limit."""
    task, points = reference.task, reference.points
    data_use = _data_use(reference)
    started, skipped_names = perf_counter(), []
    for probe in _probes(task, data_use, seed, layouts):
        if probe.inputs is None:
            reference.not_probed.append(f"{probe.name}: {probe.reason}")
        elif perf_counter() - started > MAX_PROBE_SECONDS:
            skipped_names.append(probe.name)
        elif not finishes(data_use, lambda inputs=probe.inputs: _run_and_restore(reference, inputs)):  # type: ignore[misc]
            reference.not_probed.append(f"{probe.name}: eager does not finish there")
        else:
            point = _point(task, probe.name, probe.inputs, seed + len(points), reference.notes)
            if probe.must_not_raise and point.eager.error is not None:
                reference.not_probed.append(f"{probe.name}: eager raises {point.eager.error}")
            else:
                points.append(point)
    if skipped_names:
        reference.not_probed.append(f"{join_names(skipped_names)}: the limit of {MAX_PROBE_SECONDS:g} s was reached")


def _probes(task: Task, data_use: DataUse, seed: int, layouts: bool) -> Iterator[Probe]:
    yield from special_probes(task, data_use, seed)
    if layouts:
        yield from layout_probes(task)


def _data_use(reference: Reference) -> DataUse:
    first = reference.points[0]
    try:
        return observe_data_use(reference.task, lambda: _run_and_restore(reference, first.inputs))
    except Exception:  # operations cannot be intercepted, for example where the function compiles something itself
        return DataUse(1, True, True, True)


def _run_and_restore(reference: Reference, inputs: Inputs) -> None:
    """Run eager on copies of inputs and restore everything; exceptions propagate."""
    from compile_inspect.agreement.inputs import clone_inputs

    task = reference.task
    args, kwargs = clone_inputs(inputs)
    with preserve_state(task), seed_generators(reference.points[0].seed):
        task.run(task.function, args, kwargs)


def _can_be_refilled(inputs: Inputs) -> bool:
    leaves = torch_private.flatten((inputs[0], dict(inputs[1])))[0]
    return any(torch_private.is_tensor(leaf) and is_plain(leaf) for leaf in leaves)


def _point(task: Task, name: str, inputs: Inputs, seed: int, notes: list[str], *, from_user: bool = False) -> Point:
    eager = _run_eager(task, inputs, seed)
    point = Point(name, inputs, seed, eager, None, [], same_signature(inputs, (task.args, task.kwargs)), from_user=from_user)
    if eager.error is not None or eager.incomparable_reason is not None:
        return point
    if from_user:
        point.nondeterministic = _nondeterministic_names(task, point)
        if point.nondeterministic:
            return point
    if eager.changes and shares_memory(inputs):
        notes.append(f"there is no float64 reference at {name}: inputs that share memory are changed in place")
    else:
        float64 = observe(task, float64_run(task), inputs, seed)
        if float64.error is None and float64.incomparable_reason is None:
            point.float64 = float64
        else:
            notes.append(f"there is no float64 reference at {name}: {float64.error or float64.incomparable_reason}")
    _add_perturbed_runs(task, point, INITIAL_PERTURBED_RUNS)
    return point


def _add_perturbed_runs(task: Task, point: Point, count: int) -> None:
    """Add perturbed runs to a point."""
    for number in range(point.perturbation_count, point.perturbation_count + count):
        run = observe(task, perturbed_run(task, point.seed + 1 + number), point.inputs, point.seed)
        if run.error is not None:  # its operations cannot be intercepted
            run = observe(task, perturbed_input_run(task, point.seed + 1 + number), point.inputs, point.seed)
            run = replace(run, changes=point.eager.changes)  # it changed its own copies
        if run.error is None and run.incomparable_reason is None:
            point.perturbed.append(run)
    point.perturbation_count += count


def _run_eager(task: Task, inputs: Inputs, seed: int) -> RunOutcome:
    def run(*args: Any, **kwargs: Any) -> Step:
        return task.run(task.function, args, kwargs)

    return observe(task, run, inputs, seed)


def _run_again(task: Task, point: Point, seed: int) -> RunOutcome:
    return _run_eager(task, point.inputs, seed)


def _differing_names(point: Point, second_run: RunOutcome) -> list[str]:
    """Names of values that differ in another run."""
    values, others = point.eager.all_values, second_run.all_values
    return [
        name for name in values if not compares_by_identity(values[name]) and not same_value(values[name], others.get(name))
    ]


def _nondeterministic_names(task: Task, point: Point) -> tuple[str, ...]:
    """Names of values that differ when eager runs again from the same seed, by more than the order of summation explains."""
    second_run = _run_again(task, point, point.seed)
    if second_run.error is not None:
        return (f"result (it raises {second_run.error})",)
    names = _differing_names(point, second_run)
    values, others = point.eager.all_values, second_run.all_values
    if names and all(name in others and _within_reordering(values[name], others[name]) for name in names):
        point.perturbed.append(second_run)
        return ()
    return tuple(names)


def _within_reordering(one: Any, other: Any) -> bool:
    """Whether two results of one function may differ by the order in which threads add up."""
    import torch

    if not (torch_private.is_tensor(one) and torch_private.is_tensor(other)) or one.shape != other.shape:
        return False
    if not (one.is_floating_point() or one.is_complex()) or not one.numel():
        return False
    limits = torch.finfo(compute_dtype(one.dtype)).eps * MAX_RERUN_UNITS + 2 * torch.finfo(real_dtype(one.dtype)).eps
    largest = float(one.abs().nan_to_num(0, 0, 0).double().max())
    return bool(torch.allclose(one, other, rtol=0, atol=limits * largest, equal_nan=True))


def join_names(names: list[str], limit: int = 4) -> str:
    """Names as a list in a sentence, the first few of many.

    >>> join_names(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = len(names) - limit
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:limit])} and {more} more"
