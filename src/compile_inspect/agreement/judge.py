"""Judge one run of a variant against eager: exceptions, structure, effects, then value by value."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.forms import Form
from compile_inspect.agreement.observation import Observation, opaque, same
from compile_inspect.agreement.precision import real_dtype
from compile_inspect.agreement.values import Bystanders, Judgment, judge_floats, judge_whole
from compile_inspect.records.agreement import Difference, DifferenceKind


def judge(
    seen: Observation, by: Bystanders, *, exact_kernels: bool = False, checks: Collection[DifferenceKind] = ()
) -> Judgment:
    """Compare what a variant did with what eager did.

    `checks` are the kinds of difference to look for besides values and effects: STRIDES, ALIASING and AUTOGRAD.
    """
    found = Judgment()
    if seen.error is not None or by.eager.error is not None:
        _judge_exceptions(seen, by, found)
        return found
    if seen.declined is not None:
        message = f"the variant's result cannot be compared: {seen.declined}"
        found.differences.append(Difference(by.point, "result", DifferenceKind.FORM, message))
        return found
    if list(seen.values) != list(by.eager.values):
        missing = [name for name in by.eager.values if name not in seen.values]
        extra = [name for name in seen.values if name not in by.eager.values]
        message = f"the result has a different structure (missing {missing or 'nothing'}, extra {extra or 'nothing'})"
        found.differences.append(Difference(by.point, "result", DifferenceKind.FORM, message))
        return found
    for name in dict.fromkeys([*by.eager.changes, *seen.changes]):
        if (name in seen.changes) != (name in by.eager.changes) and not _uncertain_change(name, by):
            who = "eager changes it and the variant does not" if name in by.eager.changes else "only the variant changes it"
            found.differences.append(Difference(by.point, f"{name} after the call", DifferenceKind.EFFECT, who))
    mine, eager = seen.everything, by.eager.everything
    for name, value in eager.items():
        if name in mine:
            before = len(found.differences)
            _judge_value(name, mine[name], value, by, found, exact_kernels)
            if len(found.differences) > before and name in by.random:
                del found.differences[before:]
                found.incomparable.append(name)
    for name, form in by.eager.forms.items():
        if name in seen.forms:
            different = _form_differences(name, seen.forms[name], form, by)
            found.differences += [item for item in different if item.kind in checks or item.kind is DifferenceKind.FORM]
    return found


def _form_differences(name: str, mine: Form, eager: Form, by: Bystanders) -> Iterator[Difference]:
    if mine.kind != eager.kind:
        yield Difference(by.point, name, DifferenceKind.FORM, f"it is a {mine.kind} where eager returns a {eager.kind}")
    if eager.strides is not None and mine.strides != eager.strides:
        message = f"its strides are {mine.strides} where eager's are {eager.strides}"
        yield Difference(by.point, name, DifferenceKind.STRIDES, message)
    if mine.shares != eager.shares:
        message = f"it shares memory with {_names(mine.shares)}, and eager's with {_names(eager.shares)}"
        yield Difference(by.point, name, DifferenceKind.ALIASING, message)
    if mine.requires_grad != eager.requires_grad:
        message = "eager's requires a gradient and the variant's does not"
        message = message if eager.requires_grad else "the variant's requires a gradient and eager's does not"
        yield Difference(by.point, name, DifferenceKind.AUTOGRAD, message)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _uncertain_change(name: str, by: Bystanders) -> bool:
    """Whether a change also appears or disappears in a perturbed run of eager."""
    return any((name in other.changes) != (name in by.eager.changes) for other in by.noisy if other.error is None)


COMPILERS = ("BackendCompilerFailed", "InternalTorchDynamoError", "InductorError", "LoweringException", "Unsupported")
"""Exceptions of a compiler that gives up, as opposed to exceptions of the function."""


def _judge_exceptions(seen: Observation, by: Bystanders, found: Judgment) -> None:
    """Both must raise. A different type is noted; a compiler that gives up does not count as raising what eager raises."""
    mine, eager = seen.error, by.eager.error
    if mine is not None and eager is not None:
        own, message = mine.partition(":")[0], eager.partition(": ")[2]
        if own == eager.partition(":")[0] or (message and message in mine):
            return
        sentence = f"eager raises {eager} and the variant {mine}"
        if own in COMPILERS:
            found.differences.append(Difference(by.point, "result", DifferenceKind.RAISED, sentence))
        else:
            found.notes.append(f"at {by.point}, {sentence}")
        return
    message = f"eager raises {eager} and the variant does not"
    if eager is None:
        message = f"the variant raises {mine} and eager does not"
    found.differences.append(Difference(by.point, "result", DifferenceKind.RAISED, message))


def _others(name: str, by: Bystanders, shape: Any) -> tuple[Any, list[Any]]:
    """The reference and the perturbed runs for one value, where they have it in the same shape."""

    def of(observation: Observation | None) -> Any:
        if observation is None or observation.error is not None:
            return None
        value = observation.everything.get(name)
        return value if value is not None and torch_private.is_tensor(value) and value.shape == shape else None

    exact = None if name in by.random else of(by.exact)
    return exact, [value for value in map(of, by.noisy) if value is not None]


def _judge_value(name: str, mine: Any, eager: Any, by: Bystanders, found: Judgment, exact_kernels: bool) -> None:
    import torch

    if isinstance(mine, (float, complex)) and isinstance(eager, (float, complex)):
        mine, eager = (torch.tensor(value, dtype=torch.complex128) for value in (mine, eager))
        number = True
    else:
        number = False
    if not torch_private.is_tensor(mine) or not torch_private.is_tensor(eager):
        if not same(mine, eager) and not _unsteady_object(name, eager, by):
            message = f"eager returns {_short(eager)} and the variant {_short(mine)}"
            found.differences.append(Difference(by.point, name, DifferenceKind.WHOLE, message))
        return
    for what, here, there in (
        ("shape", tuple(mine.shape), tuple(eager.shape)),
        ("dtype", mine.dtype, eager.dtype),
        ("device", mine.device, eager.device),
    ):
        if here != there:
            message = f"{what} {here} where eager has {there}"
            found.differences.append(Difference(by.point, name, DifferenceKind.FORM, message))
            return
    if eager.numel() == 0:
        return
    if number:
        judge_floats(name, mine, eager, _numbers(name, by), by, found, exact_kernels, by.precision)
        return
    others = _others(name, by, eager.shape)
    if eager.is_floating_point() or eager.is_complex():
        judge_floats(name, mine, eager, others, by, found, exact_kernels, real_dtype(eager.dtype))
    else:
        judge_whole(name, mine, eager, others, by, found)


def _numbers(name: str, by: Bystanders) -> tuple[Any, list[Any]]:
    """Like `_other_values`, for Python numbers."""
    import torch

    def of(observation: Observation | None) -> Any:
        value = None if observation is None or observation.error is not None else observation.everything.get(name)
        return torch.tensor(value, dtype=torch.complex128) if isinstance(value, (int, float, complex)) else None

    exact = None if name in by.random else of(by.exact)
    return exact, [value for value in map(of, by.noisy) if value is not None]


def _unsteady_object(name: str, eager: Any, by: Bystanders) -> bool:
    others = [item.everything.get(name) for item in [by.exact, *by.noisy] if item is not None and item.error is None]
    if any(torch_private.is_tensor(item) for item in others):
        return False
    return any(not same(item, eager) for item in others) or opaque(eager)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
