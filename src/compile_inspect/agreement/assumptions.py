"""Find what a variant has frozen: change Python values and tensors that eager reads at every call, and see if it follows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_tensor
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import Observation, input_names, observe, same
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.target import Inputs
from compile_inspect.variants import Prepared
from compile_inspect.variants.reached import Holding

MANY = 4
"""At most so many tensors are named; one sentence covers the others."""
GUARDED = 4
"""At most so many numbers are changed where every change makes Dynamo compile again."""

Changed = Callable[[], contextlib.AbstractContextManager[None]]


def find_assumptions(reference: Reference, prepared: Prepared, *, guarded: bool = False) -> tuple[str, ...]:
    """Return what must stay as it is for a variant to go on agreeing with eager.

    Variants that assume nothing (torch.compile guards on all of this) are skipped unless `guarded` is set: every change
    would make them compile again, and leave slower code behind.
    """
    point = reference.points[0]
    if not (prepared.variant.assumes or guarded) or point.eager.error is not None:
        return ()
    checks = _Checks(reference, prepared, point, GUARDED if guarded else None)
    return (*checks.constants(), *checks.numbers_given(), *checks.tensors())


class _Checks:
    def __init__(self, reference: Reference, prepared: Prepared, point: Point, most: int | None) -> None:
        self.reference = reference
        self.prepared = prepared
        self.point = point
        self.most = most

    def constants(self) -> Iterator[str]:
        """Numbers in closures, globals and attributes of modules."""
        for constant in self.reference.task.constants:
            value = constant.value
            if not _is_number(value) or self.most == 0:
                continue
            if not self.follows(partial(_set, constant.owner, constant.key, _other(value))):
                yield f"{constant.name} stays {value!r}"

    def numbers_given(self) -> Iterator[str]:
        """Numbers among the inputs."""
        task = self.reference.task
        leaves, structure = torch_private.flatten((task.args, dict(task.kwargs)))
        names = input_names(task, (task.args, task.kwargs))
        for index, leaf in enumerate(leaves):
            if _is_number(leaf):
                changed = [*leaves[:index], _other(leaf), *leaves[index + 1 :]]
                if not self.follows(contextlib.nullcontext, torch_private.unflatten(changed, structure)):
                    yield f"{names[index]} stays {leaf!r}"

    def tensors(self) -> Iterator[str]:
        """Tensors that the function holds, changed in place and replaced by others."""
        held = [item for item in self.reference.task.held if item.now().is_floating_point() or item.now().is_complex()]
        for change, sentence in ((_changed_in_place, "changed in place"), (_replaced, "replaced by another tensor")):
            # Most variants follow, and there may be hundreds of tensors: change all at once first.
            if not held or self.follows(partial(_all, change, held)):
                continue
            named = 0
            for item in held:
                if named == MANY:
                    yield f"no other of its tensors is {sentence}"
                    break
                if not self.follows(partial(change, item)):
                    named += 1
                    yield f"{item.name} is not {sentence}"

    def follows(self, changed: Changed, inputs: Inputs | None = None) -> bool:
        """Whether the variant agrees with eager after a change; True where the change makes no difference to eager."""
        task, point = self.reference.task, self.point
        inputs = point.inputs if inputs is None else inputs

        def eagerly(*args: Any, **kwargs: Any) -> Any:
            return task.run(task.function, args, kwargs)

        with changed():
            eager = observe(task, eagerly, inputs, point.seed)
            if eager.error is not None or _equal(eager, point.eager):
                return True
            self.most = None if self.most is None else self.most - 1
            seen = observe(task, self.prepared.run, inputs, point.seed)
        if seen.error is not None:
            return True  # it notices
        # There is no reference at the changed value: eager's own error is taken from the example.
        by = self.reference.bystanders(point)
        noisy = [_shifted(eager, item, by.eager) for item in by.noisy]
        # Values that were random and agreed for the same seed get no exemption here.
        shifted = replace(by, eager=eager, exact=None, noisy=noisy, random=frozenset())
        if not judge(seen, shifted).differences:
            return True
        # It differs from eager after the change. Does it still return what it returned before?
        return _nearer(seen, eager, point.eager)


def _equal(one: Observation, other: Observation) -> bool:
    mine, others = one.everything, other.everything
    return mine.keys() == others.keys() and all(same(mine[name], others[name]) for name in mine)


def _shifted(eager: Observation, noisy: Observation, before: Observation) -> Observation:
    """A perturbed run at the example, shifted to eager's new result."""

    def carry(now: dict[str, Any], moved: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for name, value in now.items():
            known = torch_private.is_tensor(value) and torch_private.is_tensor(moved.get(name)) and name in old
            if known and value.is_floating_point() and moved[name].shape == old[name].shape == value.shape:
                result[name] = value + (moved[name] - old[name])
            else:
                result[name] = value
        return result

    return Observation(carry(eager.values, noisy.values, before.values), carry(eager.changes, noisy.changes, before.changes))


def _nearer(seen: Observation, now: Observation, before: Observation) -> bool:
    """Whether an outcome is nearer to eager after the change than to eager before it: then it follows, roughly."""
    mine, after, earlier = seen.everything, now.everything, before.everything
    for name, value in mine.items():
        if not torch_private.is_tensor(value) or not value.is_floating_point():
            continue
        if name not in after or name not in earlier or not value.shape == after[name].shape == earlier[name].shape:
            return False
        if _distance(value, after[name]) > _distance(value, earlier[name]):
            return False
    return all(same(value, after.get(name)) for name, value in mine.items() if not torch_private.is_tensor(value))


def _distance(one: Any, other: Any) -> float:
    gap = (one.double() - other.double()).abs().nan_to_num()
    return float(gap.max()) if gap.numel() else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _other(value: Any) -> Any:
    """Another value of the same kind, close enough to make sense."""
    return value + 1 if isinstance(value, int) else value * 1.5 + 0.25


@contextlib.contextmanager
def _set(owner: Any, key: Any, value: Any) -> Iterator[None]:
    before = owner[key]
    try:
        owner[key] = value
        yield
    finally:
        owner[key] = before


@contextlib.contextmanager
def _changed_in_place(item: Holding) -> Iterator[None]:
    import torch

    tensor = item.now()
    before = clone_tensor(tensor).detach()
    try:
        with torch.no_grad():
            tensor.copy_(_moved(before))
        yield
    finally:
        with torch.no_grad():
            tensor.copy_(before)


@contextlib.contextmanager
def _replaced(item: Holding) -> Iterator[None]:
    import torch

    with torch.no_grad():
        other = clone_tensor(item.now())
        other.copy_(_moved(other.detach()))
    with _set(item.owner, item.key, other):
        yield


def _moved(tensor: Any) -> Any:
    """Other values of the same sign and scale: a variance stays positive, a zero does not stay zero."""
    scale = float(tensor.abs().max()) if tensor.numel() else 0.0
    return tensor * 0.8 + (scale or 1.0) * 0.037


@contextlib.contextmanager
def _all(change: Callable[[Holding], contextlib.AbstractContextManager[None]], held: list[Holding]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for item in held:
            stack.enter_context(change(item))
        yield
