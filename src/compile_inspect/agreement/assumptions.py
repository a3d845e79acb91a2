"""Find what a variant has frozen: change Python values and tensors that eager reads at every call, and see if it follows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_tensor
from compile_inspect.agreement.judgment import judge
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.agreement.run_outcome import RunOutcome, input_names, observe, same_value
from compile_inspect.target import Inputs
from compile_inspect.variants import Prepared
from compile_inspect.variants.reachable_state import ReachableTensor

MAX_NAMED_TENSORS = 4
"""Maximum number of tensors that are named; one sentence covers the others."""
MAX_GUARDED_CHANGES = 4
"""Maximum number of numbers to change where every change makes Dynamo compile again."""

Change = Callable[[], contextlib.AbstractContextManager[None]]


def find_assumptions(reference: Reference, prepared: Prepared, *, guarded: bool = False) -> tuple[str, ...]:
    """Return what must stay as it is for a variant to go on agreeing with eager.

    Variants that assume nothing (torch.compile guards on all of this) are skipped unless `guarded` is set: every change
    would make them compile again, and leave slower code behind.
    """
    point = reference.points[0]
    if not (prepared.variant.assumes or guarded) or point.eager.error is not None:
        return ()
    checks = _AssumptionChecks(reference, prepared, point, MAX_GUARDED_CHANGES if guarded else None)
    return (*checks.constants(), *checks.input_numbers(), *checks.tensors())


class _AssumptionChecks:
    def __init__(self, reference: Reference, prepared: Prepared, point: Point, changes_left: int | None) -> None:
        self.reference = reference
        self.prepared = prepared
        self.point = point
        self.changes_left = changes_left

    def constants(self) -> Iterator[str]:
        """Numbers in closures, globals and attributes of modules."""
        for constant in self.reference.task.constants:
            value = constant.value
            if not _is_number(value) or self.changes_left == 0:
                continue
            if not self.follows(partial(_assign, constant.owner, constant.key, _different_number(value))):
                yield f"{constant.name} stays {value!r}"

    def input_numbers(self) -> Iterator[str]:
        """Numbers among the inputs."""
        task = self.reference.task
        leaves, structure = torch_private.flatten((task.args, dict(task.kwargs)))
        names = input_names(task, (task.args, task.kwargs))
        for index, leaf in enumerate(leaves):
            if _is_number(leaf):
                change = [*leaves[:index], _different_number(leaf), *leaves[index + 1 :]]
                if not self.follows(contextlib.nullcontext, torch_private.unflatten(change, structure)):
                    yield f"{names[index]} stays {leaf!r}"

    def tensors(self) -> Iterator[str]:
        """Tensors that the function holds, changed in place and replaced by others."""
        tensors = [
            item for item in self.reference.task.held_tensors if item.now().is_floating_point() or item.now().is_complex()
        ]
        for change, sentence in ((_change_in_place, "changed in place"), (_replace, "replaced by another tensor")):
            # Most variants follow, and there may be hundreds of tensors: change all at once first.
            if not tensors or self.follows(partial(_change_all, change, tensors)):
                continue
            named_count = 0
            for item in tensors:
                if named_count == MAX_NAMED_TENSORS:
                    yield f"no other of its tensors is {sentence}"
                    break
                if not self.follows(partial(change, item)):
                    named_count += 1
                    yield f"{item.name} is not {sentence}"

    def follows(self, change: Change, inputs: Inputs | None = None) -> bool:
        """Whether the variant agrees with eager after a change; True where the change makes no difference to eager."""
        task, point = self.reference.task, self.point
        inputs = point.inputs if inputs is None else inputs

        def eagerly(*args: Any, **kwargs: Any) -> Any:
            return task.run(task.function, args, kwargs)

        with change():
            eager = observe(task, eagerly, inputs, point.seed)
            if eager.error is not None or _same_outcome(eager, point.eager):
                return True
            self.changes_left = None if self.changes_left is None else self.changes_left - 1
            outcome = observe(task, self.prepared.run, inputs, point.seed)
        if outcome.error is not None:
            return True  # it notices
        # There is no reference at the changed value: eager's own error is taken from the example.
        baseline = self.reference.baseline(point)
        perturbed = [_carry_over(eager, item, baseline.eager) for item in baseline.perturbed]
        # Values that were random and agreed for the same seed get no exemption here.
        shifted = replace(baseline, eager=eager, float64=None, perturbed=perturbed, random=frozenset())
        if not judge(outcome, shifted).differences:
            return True
        # It differs from eager after the change. Does it still return what it returned before?
        return _is_nearer(outcome, eager, point.eager)


def _same_outcome(one: RunOutcome, other: RunOutcome) -> bool:
    values, others = one.all_values, other.all_values
    return values.keys() == others.keys() and all(same_value(values[name], others[name]) for name in values)


def _carry_over(eager: RunOutcome, perturbed: RunOutcome, before: RunOutcome) -> RunOutcome:
    """A perturbed run at the example, shifted to eager's new result."""

    def carry(now: dict[str, Any], perturbed_values: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for name, value in now.items():
            comparable = torch_private.is_tensor(value) and torch_private.is_tensor(perturbed_values.get(name)) and name in old
            if comparable and value.is_floating_point() and perturbed_values[name].shape == old[name].shape == value.shape:
                result[name] = value + (perturbed_values[name] - old[name])
            else:
                result[name] = value
        return result

    return RunOutcome(
        carry(eager.values, perturbed.values, before.values), carry(eager.changes, perturbed.changes, before.changes)
    )


def _is_nearer(outcome: RunOutcome, now: RunOutcome, before: RunOutcome) -> bool:
    """Whether an outcome is nearer to eager after the change than to eager before it: then it follows, roughly."""
    values, after, earlier = outcome.all_values, now.all_values, before.all_values
    for name, value in values.items():
        if not torch_private.is_tensor(value) or not value.is_floating_point():
            continue
        if name not in after or name not in earlier or not value.shape == after[name].shape == earlier[name].shape:
            return False
        if _distance(value, after[name]) > _distance(value, earlier[name]):
            return False
    return all(same_value(value, after.get(name)) for name, value in values.items() if not torch_private.is_tensor(value))


def _distance(one: Any, other: Any) -> float:
    gap = (one.double() - other.double()).abs().nan_to_num()
    return float(gap.max()) if gap.numel() else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _different_number(value: Any) -> Any:
    """Another value of the same kind, close enough to make sense."""
    return value + 1 if isinstance(value, int) else value * 1.5 + 0.25


@contextlib.contextmanager
def _assign(owner: Any, key: Any, value: Any) -> Iterator[None]:
    before = owner[key]
    try:
        owner[key] = value
        yield
    finally:
        owner[key] = before


@contextlib.contextmanager
def _change_in_place(item: ReachableTensor) -> Iterator[None]:
    import torch

    tensor = item.now()
    before = clone_tensor(tensor).detach()
    try:
        with torch.no_grad():
            tensor.copy_(_shift_values(before))
        yield
    finally:
        with torch.no_grad():
            tensor.copy_(before)


@contextlib.contextmanager
def _replace(item: ReachableTensor) -> Iterator[None]:
    import torch

    with torch.no_grad():
        other = clone_tensor(item.now())
        other.copy_(_shift_values(other.detach()))
    with _assign(item.owner, item.key, other):
        yield


def _shift_values(tensor: Any) -> Any:
    """Other values of the same sign and scale: a variance stays positive, a zero does not stay zero."""
    scale = float(tensor.abs().max()) if tensor.numel() else 0.0
    return tensor * 0.8 + (scale or 1.0) * 0.037


@contextlib.contextmanager
def _change_all(
    change: Callable[[ReachableTensor], contextlib.AbstractContextManager[None]], tensors: list[ReachableTensor]
) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for item in tensors:
            stack.enter_context(change(item))
        yield
