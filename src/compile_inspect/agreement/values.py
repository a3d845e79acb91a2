"""Compare one tensor of a variant with eager's: floats within a `tolerance`, integers and booleans exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.agreement.run_outcome import RunOutcome
from compile_inspect.agreement.tolerance import MAX_ERROR_SPREADS, Tolerance
from compile_inspect.records.agreement import Difference, DifferenceKind, Measured


@dataclass(frozen=True)
class Baseline:
    """What a run is compared with: eager's outcome at the same inputs, and the same computation in other arithmetic."""

    point: str
    eager: RunOutcome
    float64: RunOutcome | None
    perturbed: Sequence[RunOutcome]
    precision: Any
    """The dtype to which Python numbers are rounded: the coarsest that the function computes in."""
    random: frozenset[str] = frozenset()
    """Names of values that change with the seed."""


@dataclass
class Judgment:
    """The result of judging one point."""

    differences: list[Difference] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    incomparable: list[str] = field(default_factory=list)
    """Values that draw random numbers and differ."""


def judge_integers(
    name: str, actual: Any, eager: Any, others: tuple[Any, list[Any]], baseline: Baseline, judgment: Judgment
) -> None:
    """Integers and booleans must be equal, unless perturbed runs of eager differ there."""
    import torch

    wrong = actual != eager
    if not bool(wrong.any()):
        return
    candidates = torch.stack([eager, *(item.to(eager.dtype) for item in [others[0], *others[1]] if item is not None)])
    integers = candidates.to(torch.int64)
    # With two or three candidates, the variant's value must lie between them; with more, some may not have been seen.
    distinct = 1 + (integers.sort(0).values.diff(dim=0) != 0).sum(0)
    between = (actual.to(torch.int64) >= integers.amin(0)) & (actual.to(torch.int64) <= integers.amax(0))
    ambiguous = (distinct > 1) & (between | (distinct > 3))
    certain = wrong & ~ambiguous
    if not bool(certain.any()):
        count = f"{int(wrong.sum())} of {wrong.numel()}"
        judgment.notes.append(f"at {baseline.point}, {name} differs in {count}, only where rounding decides a tie in eager too")
        return
    index = tuple(torch.nonzero(certain)[0].tolist())
    message = (
        f"{int(certain.sum())} of {wrong.numel()} differ, first at {list(index)}: {actual[index]} instead of {eager[index]}"
    )
    judgment.differences.append(
        Difference(
            baseline.point,
            name,
            DifferenceKind.WHOLE,
            message,
            index=index,
            eager=str(eager[index].item()),
            variant=str(actual[index].item()),
        )
    )


def judge_floats(
    name: str,
    actual: Any,
    eager: Any,
    others: tuple[Any, list[Any]],
    baseline: Baseline,
    judgment: Judgment,
    exact_kernels: bool,
    dtype: Any,
) -> None:
    """Floats must be finite in the same places, and no further off than rounding explains."""
    import torch

    actual, eager = _real(actual), _real(eager)
    float64 = None if others[0] is None else _real(others[0])
    perturbed = [_real(item) for item in others[1]]
    kinds = torch.stack([_kind(item) for item in [eager, float64, *perturbed] if item is not None])
    # Where eager overflows and float64 does not, the variant may do either, and overflow in its own way.
    overflows = ~torch.isfinite(eager) & torch.isfinite(eager if float64 is None else float64)
    mismatched = (_kind(actual) != kinds).all(0) & ~(overflows & ~torch.isfinite(actual))
    if bool(mismatched.any()):
        index = tuple(torch.nonzero(mismatched)[0].tolist())
        message = (
            f"{int(mismatched.sum())} of {mismatched.numel()} finite in only one of the two, or infinite with opposite signs, "
            f"first at {list(index)}: {actual[index]:.6g} instead of {eager[index]:.6g}"
        )
        judgment.differences.append(
            _difference(DifferenceKind.NOT_FINITE, message, name, baseline, index, actual, eager, float64)
        )
        return
    if exact_kernels:
        tolerance, against = Tolerance.for_same_kernels(eager, dtype), "eager"
    else:
        tolerance = Tolerance.from_runs(eager, float64, perturbed, dtype)
        against = "eager" if float64 is None else "float64 and eager"
    distance, eager_error = tolerance.distance(actual), tolerance.own_error()
    allowed = MAX_ERROR_SPREADS * tolerance.spread
    ratio = distance / allowed
    worst = tuple(torch.nonzero(ratio == ratio.max())[0].tolist())
    sizes = {"error": float(distance[worst]), "eager_error": float(eager_error[worst]), "allowed": float(allowed[worst])}
    judgment.measured.append(Measured(name, **sizes))
    wrong = ratio > 1
    if bool(wrong.any()):
        message = (
            f"{int(wrong.sum())} of {wrong.numel()} are off, worst at {list(worst)}: {actual[worst]:.9g} where eager has "
            f"{eager[worst]:.9g}; {sizes['error']:.3g} from {against}, where {sizes['allowed']:.3g} is allowed "
            f"and eager's own error is {sizes['eager_error']:.3g}"
        )
        judgment.differences.append(
            _difference(DifferenceKind.VALUE, message, name, baseline, worst, actual, eager, float64, **sizes)
        )
        return
    bias = next(tolerance.biases(actual), None)
    if bias is not None:
        judgment.differences.append(
            _difference(DifferenceKind.BIAS, str(bias), name, baseline, worst, actual, eager, float64, **sizes)
        )


def _difference(
    kind: DifferenceKind,
    message: str,
    name: str,
    baseline: Baseline,
    index: tuple[int, ...],
    actual: Any,
    eager: Any,
    float64: Any,
    **sizes: float,
) -> Difference:
    return Difference(
        baseline.point,
        name,
        kind,
        message,
        index=index,
        eager=f"{eager[index]:.9g}",
        variant=f"{actual[index]:.9g}",
        reference="" if float64 is None else f"{float64[index]:.9g}",
        **sizes,  # type: ignore[arg-type]
    )


def _real(tensor: Any) -> Any:
    """The tensor in float64, with a complex number as two."""
    import torch

    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj().to(torch.complex128))
    return tensor.to(torch.float64)


def _kind(tensor: Any) -> Any:
    """0 for finite, 1 for NaN, 2 and 3 for the infinities."""
    import torch

    return (
        torch.isnan(tensor).to(torch.int8)
        + 2 * torch.isposinf(tensor).to(torch.int8)
        + 3 * torch.isneginf(tensor).to(torch.int8)
    )
