"""Compare one tensor of a variant with eager's: floats within a `tolerance`, integers and booleans exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.agreement.allowance import FACTOR, Allowance
from compile_inspect.agreement.observation import Observation
from compile_inspect.records.agreement import Difference, DifferenceKind, Measured


@dataclass(frozen=True)
class Bystanders:
    """What a run is compared with: eager's outcome at the same inputs, and the same computation in other arithmetic."""

    point: str
    eager: Observation
    exact: Observation | None
    noisy: Sequence[Observation]
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


def judge_whole(name: str, mine: Any, eager: Any, others: tuple[Any, list[Any]], by: Bystanders, found: Judgment) -> None:
    """Integers and booleans must be equal, unless perturbed runs of eager differ there."""
    import torch

    wrong = mine != eager
    if not bool(wrong.any()):
        return
    seen = torch.stack([eager, *(item.to(eager.dtype) for item in [others[0], *others[1]] if item is not None)])
    whole = seen.to(torch.int64)
    # With two or three candidates, the variant's value must lie between them; with more, some may not have been seen.
    distinct = 1 + (whole.sort(0).values.diff(dim=0) != 0).sum(0)
    between = (mine.to(torch.int64) >= whole.amin(0)) & (mine.to(torch.int64) <= whole.amax(0))
    undecided = (distinct > 1) & (between | (distinct > 3))
    certain = wrong & ~undecided
    if not bool(certain.any()):
        places = f"{int(wrong.sum())} of {wrong.numel()}"
        found.notes.append(f"at {by.point}, {name} differs in {places}, only where rounding decides a tie in eager too")
        return
    place = tuple(torch.nonzero(certain)[0].tolist())
    message = f"{int(certain.sum())} of {wrong.numel()} differ, first at {list(place)}: {mine[place]} instead of {eager[place]}"
    found.differences.append(
        Difference(
            by.point,
            name,
            DifferenceKind.WHOLE,
            message,
            index=place,
            eager=str(eager[place].item()),
            variant=str(mine[place].item()),
        )
    )


def judge_floats(
    name: str,
    mine: Any,
    eager: Any,
    others: tuple[Any, list[Any]],
    by: Bystanders,
    found: Judgment,
    exact_kernels: bool,
    dtype: Any,
) -> None:
    """Floats must be finite in the same places, and no further off than rounding explains."""
    import torch

    mine, eager = _real(mine), _real(eager)
    exact = None if others[0] is None else _real(others[0])
    noisy = [_real(item) for item in others[1]]
    kinds = torch.stack([_kind(item) for item in [eager, exact, *noisy] if item is not None])
    # Where eager overflows and float64 does not, the variant may do either, and overflow in its own way.
    overflows = ~torch.isfinite(eager) & torch.isfinite(eager if exact is None else exact)
    misplaced = (_kind(mine) != kinds).all(0) & ~(overflows & ~torch.isfinite(mine))
    if bool(misplaced.any()):
        place = tuple(torch.nonzero(misplaced)[0].tolist())
        message = (
            f"{int(misplaced.sum())} of {misplaced.numel()} finite in only one of the two, or infinite with opposite signs, "
            f"first at {list(place)}: {mine[place]:.6g} instead of {eager[place]:.6g}"
        )
        found.differences.append(_difference(DifferenceKind.NOT_FINITE, message, name, by, place, mine, eager, exact))
        return
    if exact_kernels:
        allowance, against = Allowance.of_the_same_kernels(eager, dtype), "eager"
    else:
        allowance = Allowance.of(eager, exact, noisy, dtype)
        against = "eager" if exact is None else "float64 and eager"
    distance, own = allowance.distance(mine), allowance.own_error()
    allowed = FACTOR * allowance.spread
    ratio = distance / allowed
    worst = tuple(torch.nonzero(ratio == ratio.max())[0].tolist())
    sizes = {"error": float(distance[worst]), "eager_error": float(own[worst]), "allowed": float(allowed[worst])}
    found.measured.append(Measured(name, **sizes))
    wrong = ratio > 1
    if bool(wrong.any()):
        message = (
            f"{int(wrong.sum())} of {wrong.numel()} are off, worst at {list(worst)}: {mine[worst]:.9g} where eager has "
            f"{eager[worst]:.9g}; {sizes['error']:.3g} from {against}, where {sizes['allowed']:.3g} is allowed "
            f"and eager's own error is {sizes['eager_error']:.3g}"
        )
        found.differences.append(_difference(DifferenceKind.VALUE, message, name, by, worst, mine, eager, exact, **sizes))
        return
    leaning = next(allowance.leanings(mine), None)
    if leaning is not None:
        found.differences.append(_difference(DifferenceKind.BIAS, str(leaning), name, by, worst, mine, eager, exact, **sizes))


def _difference(
    kind: DifferenceKind,
    message: str,
    name: str,
    by: Bystanders,
    place: tuple[int, ...],
    mine: Any,
    eager: Any,
    exact: Any,
    **sizes: float,
) -> Difference:
    return Difference(
        by.point,
        name,
        kind,
        message,
        index=place,
        eager=f"{eager[place]:.9g}",
        variant=f"{mine[place]:.9g}",
        reference="" if exact is None else f"{exact[place]:.9g}",
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
