"""Judge one run of a variant against eager: exceptions, structure, effects, then value by value."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.float64_run import real_dtype
from compile_inspect.agreement.run_outcome import RunOutcome, compares_by_identity, same_value
from compile_inspect.agreement.tensor_metadata import TensorMetadata
from compile_inspect.agreement.values import Baseline, Judgment, judge_floats, judge_integers
from compile_inspect.records.agreement import Difference, DifferenceKind


def judge(
    outcome: RunOutcome, baseline: Baseline, *, exact_kernels: bool = False, checks: Collection[DifferenceKind] = ()
) -> Judgment:
    """Compare what a variant did with what eager did.

    `checks` are the kinds of difference to look for besides values and effects: STRIDES, ALIASING and AUTOGRAD.
    """
    judgment = Judgment()
    if outcome.error is not None or baseline.eager.error is not None:
        _judge_exceptions(outcome, baseline, judgment)
        return judgment
    if outcome.incomparable_reason is not None:
        message = f"the variant's result cannot be compared: {outcome.incomparable_reason}"
        judgment.differences.append(Difference(baseline.point, "result", DifferenceKind.METADATA, message))
        return judgment
    if list(outcome.values) != list(baseline.eager.values):
        missing = [name for name in baseline.eager.values if name not in outcome.values]
        extra = [name for name in outcome.values if name not in baseline.eager.values]
        message = f"the result has a different structure (missing {missing or 'nothing'}, extra {extra or 'nothing'})"
        judgment.differences.append(Difference(baseline.point, "result", DifferenceKind.METADATA, message))
        return judgment
    for name in dict.fromkeys([*baseline.eager.changes, *outcome.changes]):
        if (name in outcome.changes) != (name in baseline.eager.changes) and not _is_uncertain_change(name, baseline):
            message = (
                "eager changes it and the variant does not" if name in baseline.eager.changes else "only the variant changes it"
            )
            judgment.differences.append(
                Difference(baseline.point, f"{name} after the call", DifferenceKind.SIDE_EFFECT, message)
            )
    actual, eager = outcome.all_values, baseline.eager.all_values
    for name, value in eager.items():
        if name in actual:
            before = len(judgment.differences)
            _judge_value(name, actual[name], value, baseline, judgment, exact_kernels)
            if len(judgment.differences) > before and name in baseline.random:
                del judgment.differences[before:]
                judgment.incomparable.append(name)
    for name, metadata in baseline.eager.metadata.items():
        if name in outcome.metadata:
            different = _metadata_differences(name, outcome.metadata[name], metadata, baseline)
            judgment.differences += [item for item in different if item.kind in checks or item.kind is DifferenceKind.METADATA]
    return judgment


def _metadata_differences(name: str, actual: TensorMetadata, eager: TensorMetadata, baseline: Baseline) -> Iterator[Difference]:
    if actual.kind != eager.kind:
        yield Difference(
            baseline.point, name, DifferenceKind.METADATA, f"it is a {actual.kind} where eager returns a {eager.kind}"
        )
    if eager.strides is not None and actual.strides != eager.strides:
        message = f"its strides are {actual.strides} where eager's are {eager.strides}"
        yield Difference(baseline.point, name, DifferenceKind.STRIDES, message)
    if actual.shares != eager.shares:
        message = f"it shares memory with {_names(actual.shares)}, and eager's with {_names(eager.shares)}"
        yield Difference(baseline.point, name, DifferenceKind.ALIASING, message)
    if actual.requires_grad != eager.requires_grad:
        message = "eager's requires a gradient and the variant's does not"
        message = message if eager.requires_grad else "the variant's requires a gradient and eager's does not"
        yield Difference(baseline.point, name, DifferenceKind.AUTOGRAD, message)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _is_uncertain_change(name: str, baseline: Baseline) -> bool:
    """Whether a change also appears or disappears in a perturbed run of eager."""
    return any(
        (name in other.changes) != (name in baseline.eager.changes) for other in baseline.perturbed if other.error is None
    )


COMPILER_EXCEPTIONS = ("BackendCompilerFailed", "InternalTorchDynamoError", "InductorError", "LoweringException", "Unsupported")
"""Exceptions of a compiler that gives up, as opposed to exceptions of the function."""


def _judge_exceptions(outcome: RunOutcome, baseline: Baseline, judgment: Judgment) -> None:
    """Both must raise. A different type of exception is noted; an exception of a compiler that gives up does not count."""
    actual, eager = outcome.error, baseline.eager.error
    if actual is not None and eager is not None:
        actual_type, message = actual.partition(":")[0], eager.partition(": ")[2]
        if actual_type == eager.partition(":")[0] or (message and message in actual):
            return
        sentence = f"eager raises {eager} and the variant {actual}"
        if actual_type in COMPILER_EXCEPTIONS:
            judgment.differences.append(Difference(baseline.point, "result", DifferenceKind.EXCEPTION, sentence))
        else:
            judgment.notes.append(f"at {baseline.point}, {sentence}")
        return
    message = f"eager raises {eager} and the variant does not"
    if eager is None:
        message = f"the variant raises {actual} and eager does not"
    judgment.differences.append(Difference(baseline.point, "result", DifferenceKind.EXCEPTION, message))


def _other_values(name: str, baseline: Baseline, shape: Any) -> tuple[Any, list[Any]]:
    """The reference and the perturbed runs for one value, where they have it in the same shape."""

    def value_of(other: RunOutcome | None) -> Any:
        if other is None or other.error is not None:
            return None
        value = other.all_values.get(name)
        return value if value is not None and torch_private.is_tensor(value) and value.shape == shape else None

    float64 = None if name in baseline.random else value_of(baseline.float64)
    return float64, [value for value in map(value_of, baseline.perturbed) if value is not None]


def _judge_value(name: str, actual: Any, eager: Any, baseline: Baseline, judgment: Judgment, exact_kernels: bool) -> None:
    import torch

    if isinstance(actual, (float, complex)) and isinstance(eager, (float, complex)):
        actual, eager = (torch.tensor(value, dtype=torch.complex128) for value in (actual, eager))
        is_number = True
    else:
        is_number = False
    if not torch_private.is_tensor(actual) or not torch_private.is_tensor(eager):
        if not same_value(actual, eager) and not _is_nondeterministic_object(name, eager, baseline):
            message = f"eager returns {_short(eager)} and the variant {_short(actual)}"
            judgment.differences.append(Difference(baseline.point, name, DifferenceKind.DISCRETE, message))
        return
    for property_name, actual_property, eager_property in (
        ("shape", tuple(actual.shape), tuple(eager.shape)),
        ("dtype", actual.dtype, eager.dtype),
        ("device", actual.device, eager.device),
    ):
        if actual_property != eager_property:
            message = f"{property_name} {actual_property} where eager has {eager_property}"
            judgment.differences.append(Difference(baseline.point, name, DifferenceKind.METADATA, message))
            return
    if eager.numel() == 0:
        return
    if is_number:
        judge_floats(name, actual, eager, _other_numbers(name, baseline), baseline, judgment, exact_kernels, baseline.precision)
        return
    others = _other_values(name, baseline, eager.shape)
    if eager.is_floating_point() or eager.is_complex():
        judge_floats(name, actual, eager, others, baseline, judgment, exact_kernels, real_dtype(eager.dtype))
    else:
        judge_integers(name, actual, eager, others, baseline, judgment)


def _other_numbers(name: str, baseline: Baseline) -> tuple[Any, list[Any]]:
    """Like `_other_values`, for Python numbers."""
    import torch

    def value_of(other: RunOutcome | None) -> Any:
        value = None if other is None or other.error is not None else other.all_values.get(name)
        return torch.tensor(value, dtype=torch.complex128) if isinstance(value, (int, float, complex)) else None

    float64 = None if name in baseline.random else value_of(baseline.float64)
    return float64, [value for value in map(value_of, baseline.perturbed) if value is not None]


def _is_nondeterministic_object(name: str, eager: Any, baseline: Baseline) -> bool:
    others = [
        item.all_values.get(name) for item in [baseline.float64, *baseline.perturbed] if item is not None and item.error is None
    ]
    if any(torch_private.is_tensor(item) for item in others):
        return False
    return any(not same_value(item, eager) for item in others) or compares_by_identity(eager)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
