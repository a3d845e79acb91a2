"""One tensor of a variant against eager's, element by element.

A variant may be as wrong as eager itself. Eager's own error is the largest of its distances from the float64
reference and from runs of its own with disturbed roundings, over the whole tensor: the error of one element may be
small by luck. The variant's distance from the reference may be

    FACTOR * eager's own error + ULPS * (spacing of floating-point numbers at the tensor's largest magnitude).

FACTOR: disturbing moves every operation by a full unit where rounding moves it by half of one at most, so a
computation in another order rarely goes beyond twice the estimate; 4 leaves the same again for kernels that
approximate (exp, tanh) and sum in another order. ULPS: a value that eager gets exactly right may be off by a unit or
two in a fused kernel; 8 is four such operations. Anything an injected fault does is larger by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.agreement.observation import Observation
from compile_inspect.records.agreement import Difference, DifferenceKind, Measured

FACTOR = 4.0
ULPS = 8.0
UNSTABLE = 1000.0
"""An element whose own error is that many times the allowance for spacing lies at a jump: a comparison turned there."""
FEW = 0.05
"""Up to this part of a tensor may lie at jumps; where it is more, the whole tensor is that uncertain."""


@dataclass(frozen=True)
class Bystanders:
    """Eager's result at the same inputs, and the same computation in other arithmetic."""

    point: str
    eager: Observation
    exact: Observation | None
    noisy: Sequence[Observation]
    precision: Any
    """The dtype that numbers of Python are rounded to: the coarsest the function computes in."""
    random: frozenset[str] = frozenset()
    """Names of values that change with the seed."""


@dataclass
class Judgement:
    """What was found at one point."""

    differences: list[Difference] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    incomparable: list[str] = field(default_factory=list)
    """Values that draw random numbers and differ."""


def judge_whole(name: str, mine: Any, eager: Any, others: tuple[Any, list[Any]], by: Bystanders, found: Judgement) -> None:
    """Integers and truth values: equal, unless eager itself is undecided there."""
    import torch

    wrong = mine != eager
    if not bool(wrong.any()):
        return
    seen = torch.stack([eager, *(item.to(eager.dtype) for item in [others[0], *others[1]] if item is not None)])
    whole = seen.to(torch.int64)
    # Between two or three candidates the variant's must lie; where there are more, not all may have been seen.
    distinct = 1 + (whole.sort(0).values.diff(dim=0) != 0).sum(0)
    between = (mine.to(torch.int64) >= whole.amin(0)) & (mine.to(torch.int64) <= whole.amax(0))
    undecided = (distinct > 1) & (between | (distinct > 3))
    certain = wrong & ~undecided
    if not bool(certain.any()):
        found.notes.append(
            f"at {by.point}, {name} differs in {int(wrong.sum())} places, all of them ties that rounding decides in eager too"
        )
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
    found: Judgement,
    exact_kernels: bool,
    dtype: Any,
) -> None:
    """Numbers with a point: finite in the same places, and no further off than eager's own error allows."""
    import torch

    mine, eager = _real(mine), _real(eager)
    exact = None if others[0] is None else _real(others[0])
    noisy = [_real(item) for item in others[1]]
    kind, kinds = _kind(eager), [_kind(item) for item in [exact, *noisy] if item is not None]
    undecided = torch.zeros_like(kind, dtype=torch.bool)
    for other in kinds:
        undecided |= other != kind
    misplaced = (_kind(mine) != kind) & ~undecided
    if bool(misplaced.any()):
        place = tuple(torch.nonzero(misplaced)[0].tolist())
        message = (
            f"{int(misplaced.sum())} places are finite in one and not in the other, or infinite with another sign, "
            f"first at {list(place)}: {mine[place]:.6g} instead of {eager[place]:.6g}"
        )
        found.differences.append(
            Difference(
                by.point,
                name,
                DifferenceKind.NOT_FINITE,
                message,
                index=place,
                eager=f"{eager[place]:.9g}",
                variant=f"{mine[place]:.9g}",
                reference="" if exact is None else f"{exact[place]:.9g}",
            )
        )
        return
    finite = torch.isfinite(eager) & torch.isfinite(mine) & ~undecided
    if not bool(finite.any()):
        return
    anchor = eager if exact is None else exact
    zero = torch.zeros((), dtype=torch.float64, device=eager.device)
    distance = torch.where(finite, (mine - anchor).abs(), zero)
    own = zero.expand_as(eager)
    for other in [exact, *noisy]:
        if other is not None:
            own = torch.maximum(own, torch.where(finite, (eager - other).abs(), zero))
    limits = torch.finfo(dtype)
    magnitude = float(torch.where(finite, eager.abs(), zero).max())
    # Below the smallest normal number kernels may flush to zero.
    spacing = ULPS * limits.eps * magnitude + limits.tiny
    if exact_kernels:
        # The same kernels: eager's own result is the yardstick, and its error no excuse.
        distance, own = torch.where(finite, (mine - eager).abs(), zero), zero.expand_as(eager)
    jumps = own > UNSTABLE * spacing
    if bool(jumps.any()) and float(jumps.double().mean()) <= FEW:
        scale = float(torch.where(jumps, zero, own).max())
        allowed = torch.where(jumps, FACTOR * own, zero) + FACTOR * scale + spacing
    else:
        scale = float(own.max())
        allowed = (zero + FACTOR * scale + spacing).expand_as(eager)
    excess = distance - allowed
    worst = tuple(torch.nonzero(excess == excess.max())[0].tolist())
    found.measured.append(Measured(name, float(distance[worst]), float(own[worst]), float(allowed[worst])))
    wrong = excess > 0
    if bool(wrong.any()):
        against = "float64" if exact is not None and not exact_kernels else "eager"
        message = (
            f"{int(wrong.sum())} of {wrong.numel()} are off, worst at {list(worst)}: {mine[worst]:.9g} where eager has "
            f"{eager[worst]:.9g}; {float(distance[worst]):.3g} from {against}, where {float(allowed[worst]):.3g} is allowed "
            f"and eager's own error is {scale:.3g}"
        )
        found.differences.append(
            Difference(
                by.point,
                name,
                DifferenceKind.VALUE,
                message,
                error=float(distance[worst]),
                eager_error=scale,
                allowed=float(allowed[worst]),
                index=worst,
                eager=f"{eager[worst]:.9g}",
                variant=f"{mine[worst]:.9g}",
                reference="" if exact is None else f"{exact[worst]:.9g}",
            )
        )


def _real(tensor: Any) -> Any:
    """In float64, a complex number as two."""
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
