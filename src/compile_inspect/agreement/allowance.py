"""What a variant's error may be: the spread that rounding gives eager's own result, element by element and on average.

Three results are known at every element: eager's, the float64 reference, and those of runs with disturbed roundings
(`rounding`). The root mean square distance of the disturbed runs from eager's result, and a unit of the value itself for
the last rounding and a kernel's approximation, are the expected spread. A variant is right at an element if it lies
within FACTOR spreads of eager's result, of the reference, or of anything between them.

Errors that are too small for that may still lean to one side. Their mean, in spreads, over the tensor and over every
slice along every dimension, is compared with what the same mean is for eager and for the disturbed runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect.agreement.precision import compute_dtype

FACTOR = 4.0
"""How many spreads an error may be. A disturbance moves a value by one unit where rounding moves it by 0.3 on average, so
four spreads of disturbed runs are about ten standard deviations of correct ones."""
CONTRADICTION = 16.0
"""So many spreads between eager and float64 are no rounding: the two do not compute the same, and what lies between them
is right by neither."""
LEANING = 0.1
"""A mean error of so many spreads is let pass whatever the disturbed runs say, and so is one of a unit of what kernels
compute in: approximations of elementary functions may be off by half a unit on average."""


@dataclass(frozen=True)
class Allowance:
    """What to hold a variant's values against; all tensors are float64 and of one shape."""

    eager: Any
    anchor: Any
    """The float64 reference where it is known and finite, eager's result elsewhere."""
    noisy: list[Any]
    spread: Any
    slack: Any
    """A unit in the last place of what kernels compute in, in spreads."""

    @classmethod
    def of(cls, eager: Any, exact: Any, noisy: list[Any], dtype: Any) -> Allowance:
        """From eager's result, the reference (None where there is none) and disturbed runs."""
        import torch

        anchor = eager if exact is None else torch.where(torch.isfinite(exact), exact, eager)
        center = torch.where(torch.isfinite(eager), eager, anchor)
        squares, count = torch.zeros_like(center), torch.zeros_like(center)
        for run in noisy:
            seen = torch.isfinite(run) & torch.isfinite(center)
            squares += torch.where(seen, run - center, 0.0).square()
            count += seen
        noise = (squares / count.clamp(min=1)).sqrt()
        size = torch.where(torch.isfinite(center), torch.maximum(center.abs(), anchor.abs().nan_to_num(0, 0, 0)), 0.0)
        spread = torch.maximum(noise, _typical(noise, size)) + unit(size, dtype)
        return cls(eager, anchor, noisy, spread, size * torch.finfo(compute_dtype(dtype)).eps / spread)

    @classmethod
    def of_the_same_kernels(cls, eager: Any, dtype: Any) -> Allowance:
        """For a variant that runs eager's own kernels: its result is the yardstick, and its error no excuse."""
        import torch

        spread = unit(torch.where(torch.isfinite(eager), eager.abs(), 0.0), dtype)
        return cls(eager, eager, [], spread, torch.zeros_like(spread))

    def distance(self, mine: Any) -> Any:
        """How far each element is from eager, the reference, and what lies between them; 0 where neither is finite."""
        import torch

        known = torch.isfinite(mine) & torch.isfinite(self.anchor)
        eager = torch.where(torch.isfinite(self.eager), self.eager, self.anchor)
        low, high = torch.minimum(eager, self.anchor), torch.maximum(eager, self.anchor)
        between = (torch.maximum(low - mine, mine - high)).clamp(min=0)
        apart = torch.minimum((mine - eager).abs(), (mine - self.anchor).abs())
        found = torch.where((high - low) > CONTRADICTION * self.spread, apart, between)
        return torch.where(known, found, 0.0)

    def own_error(self) -> Any:
        """Eager's distance from the reference, or the spread where that is larger."""
        import torch

        gap = (self.eager - self.anchor).abs()
        return torch.maximum(torch.where(torch.isfinite(gap), gap, 0.0), self.spread)

    def leanings(self, mine: Any) -> Iterator[Leaning]:
        """Means of the error that are larger than rounding explains: of the tensor, then of slices along dimensions."""
        import torch

        if not self.noisy or mine.numel() < 2:
            return
        runs = torch.stack([self._errors(item) for item in (mine, self.eager, *self.noisy)])
        sign = torch.sign(self.anchor).nan_to_num(0, 0, 0)
        places: list[int | None] = [None, *(dim for dim in range(mine.dim()) if 1 < mine.shape[dim] < mine.numel())]
        for dim in places:
            over = [axis + 1 for axis in range(mine.dim()) if axis != dim]
            for scaled, errors in ((False, runs), (True, runs * sign)):
                means = errors.mean(over).reshape(len(runs), -1) if over else errors
                usual = torch.maximum(means[1].abs(), FACTOR * means[2:].square().mean(0).sqrt())
                slack = self.slack.mean([axis - 1 for axis in over]).reshape(-1) if over else self.slack
                allowed = usual + LEANING + slack
                excess = means[0].abs() - allowed
                worst = int(excess.argmax())
                if float(excess[worst]) > 0:
                    yield Leaning(dim, worst, scaled, float(means[0, worst]), float(allowed[worst]))

    def _errors(self, run: Any) -> Any:
        """Signed errors in spreads, none beyond FACTOR: those are seen one by one."""
        import torch

        error = ((run - self.anchor) / self.spread).clamp(-FACTOR, FACTOR)
        return torch.where(torch.isfinite(error), error, 0.0)


@dataclass(frozen=True)
class Leaning:
    """A mean error that is too large: of a whole tensor (`dim` None) or of one slice along a dimension."""

    dim: int | None
    index: int
    scaled: bool
    """Whether the error is away from or toward zero, as from a wrong factor, and not up or down."""
    mean: float
    allowed: float

    def __str__(self) -> str:
        where = "all elements" if self.dim is None else f"slice {self.index} of dimension {self.dim}"
        way = ("larger" if self.mean > 0 else "smaller") if self.scaled else ("above" if self.mean > 0 else "below")
        way += " in magnitude" if self.scaled else " the reference"
        return (
            f"on average {where} are {abs(self.mean):.2g} expected errors {way}, where {self.allowed:.2g} is allowed: "
            "errors of rounding do not lean to one side"
        )


def unit(size: Any, dtype: Any) -> Any:
    """Half a unit in the last place of the dtype for the last rounding, and one of what kernels compute in for the rest.

    Below the smallest normal number of what they compute in, kernels may flush to zero; and the numbers below that of the
    dtype have a spacing of their own.
    """
    import torch

    limits, inside = torch.finfo(dtype), torch.finfo(compute_dtype(dtype))
    return size * (limits.eps / 2 + inside.eps) + inside.tiny + limits.tiny * limits.eps


def _typical(noise: Any, size: Any) -> Any:
    """The noise of a typical element, for those whose own came out small by luck.

    In absolute terms that of the whole tensor, in relative terms that of its median element, whichever is smaller: a
    small entry among large ones is not given the noise of those.
    """
    import torch

    if noise.numel() < 2:
        return torch.zeros_like(noise)
    relative = torch.where(size > 0, noise / size, 0.0)
    return torch.minimum(noise.square().mean().sqrt(), relative.median() * size)
