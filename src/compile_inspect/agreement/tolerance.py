"""How large a variant's error may be: the spread that rounding gives eager's own result, per element and on average.

Three results are known at every element: eager's, the float64 reference, and those of runs with perturbed roundings
(`rounding`). The expected spread is the root mean square distance of the perturbed runs from eager's result, plus a unit
of the value itself for the last rounding and for a kernel's approximation. A variant is right at an element if it is
within MAX_ERROR_SPREADS spreads of eager's result, of the reference, or of anything between them.

Errors below that limit may still be biased. Their mean, in spreads, over the tensor and over every slice along every
dimension, is compared with the same mean for eager and for the perturbed runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect.agreement.float64_run import compute_dtype

MAX_ERROR_SPREADS = 4.0
"""The largest error of an element, in spreads. A perturbation moves a value by one unit where rounding moves it by 0.3 on
average, so four spreads of perturbed runs are about ten standard deviations of correct ones."""
CONTRADICTION_SPREADS = 16.0
"""A larger distance between eager and float64, in spreads, is not rounding: the two compute different things, and a value
between them agrees with neither."""
ACCEPTED_BIAS_SPREADS = 0.1
"""A mean error up to this many spreads is always accepted, and so is one of a unit of the compute dtype: approximations of
elementary functions may be off by half a unit on average."""


@dataclass(frozen=True)
class Tolerance:
    """What a variant's values are compared with; all tensors are float64 and have the same shape."""

    eager: Any
    anchor: Any
    """The float64 reference where it is known and finite, eager's result elsewhere."""
    perturbed: list[Any]
    spread: Any
    slack: Any
    """A unit in the last place of the compute dtype, in spreads."""

    @classmethod
    def from_runs(cls, eager: Any, float64: Any, perturbed: list[Any], dtype: Any) -> Tolerance:
        """Build it from eager's result, the reference (None where there is none) and perturbed runs."""
        import torch

        anchor = eager if float64 is None else torch.where(torch.isfinite(float64), float64, eager)
        center = torch.where(torch.isfinite(eager), eager, anchor)
        squares, count = torch.zeros_like(center), torch.zeros_like(center)
        for run in perturbed:
            finite = torch.isfinite(run) & torch.isfinite(center)
            squares += torch.where(finite, run - center, 0.0).square()
            count += finite
        noise = (squares / count.clamp(min=1)).sqrt()
        size = torch.where(torch.isfinite(center), torch.maximum(center.abs(), anchor.abs().nan_to_num(0, 0, 0)), 0.0)
        spread = torch.maximum(noise, _typical_noise(noise, size)) + rounding_unit(size, dtype)
        return cls(eager, anchor, perturbed, spread, size * torch.finfo(compute_dtype(dtype)).eps / spread)

    @classmethod
    def for_same_kernels(cls, eager: Any, dtype: Any) -> Tolerance:
        """Build it for a variant that runs eager's own kernels: only eager's result counts, whatever its own error."""
        import torch

        spread = rounding_unit(torch.where(torch.isfinite(eager), eager.abs(), 0.0), dtype)
        return cls(eager, eager, [], spread, torch.zeros_like(spread))

    def distance(self, actual: Any) -> Any:
        """The distance of each element from eager, the reference, and the range between them; 0 where neither is finite."""
        import torch

        is_finite = torch.isfinite(actual) & torch.isfinite(self.anchor)
        eager = torch.where(torch.isfinite(self.eager), self.eager, self.anchor)
        low, high = torch.minimum(eager, self.anchor), torch.maximum(eager, self.anchor)
        between = (torch.maximum(low - actual, actual - high)).clamp(min=0)
        nearest = torch.minimum((actual - eager).abs(), (actual - self.anchor).abs())
        distance = torch.where((high - low) > CONTRADICTION_SPREADS * self.spread, nearest, between)
        return torch.where(is_finite, distance, 0.0)

    def own_error(self) -> Any:
        """Eager's distance from the reference, or the spread if that is larger."""
        import torch

        gap = (self.eager - self.anchor).abs()
        return torch.maximum(torch.where(torch.isfinite(gap), gap, 0.0), self.spread)

    def biases(self, actual: Any) -> Iterator[Bias]:
        """Mean errors that rounding does not explain: of the tensor, then of slices along each dimension."""
        import torch

        if not self.perturbed or actual.numel() < 2:
            return
        runs = torch.stack([self._errors(item) for item in (actual, self.eager, *self.perturbed)])
        sign = torch.sign(self.anchor).nan_to_num(0, 0, 0)
        dims: list[int | None] = [None, *(dim for dim in range(actual.dim()) if 1 < actual.shape[dim] < actual.numel())]
        for dim in dims:
            axes = [axis + 1 for axis in range(actual.dim()) if axis != dim]
            for scaled, errors in ((False, runs), (True, runs * sign)):
                means = errors.mean(axes).reshape(len(runs), -1) if axes else errors
                usual = torch.maximum(means[1].abs(), MAX_ERROR_SPREADS * means[2:].square().mean(0).sqrt())
                slack = self.slack.mean([axis - 1 for axis in axes]).reshape(-1) if axes else self.slack
                allowed = usual + ACCEPTED_BIAS_SPREADS + slack
                excess = means[0].abs() - allowed
                worst = int(excess.argmax())
                if float(excess[worst]) > 0:
                    yield Bias(dim, worst, scaled, float(means[0, worst]), float(allowed[worst]))

    def _errors(self, run: Any) -> Any:
        """Signed errors in spreads, clipped at MAX_ERROR_SPREADS: larger ones are found element by element."""
        import torch

        error = ((run - self.anchor) / self.spread).clamp(-MAX_ERROR_SPREADS, MAX_ERROR_SPREADS)
        return torch.where(torch.isfinite(error), error, 0.0)


@dataclass(frozen=True)
class Bias:
    """A mean error that is too large, of a whole tensor (`dim` is None) or of one slice along a dimension."""

    dim: int | None
    index: int
    scaled: bool
    """Whether the error is away from or toward zero, as from a wrong factor, rather than up or down."""
    mean: float
    allowed: float

    def __str__(self) -> str:
        where = "all elements" if self.dim is None else f"slice {self.index} of dimension {self.dim}"
        way = ("larger" if self.mean > 0 else "smaller") if self.scaled else ("above" if self.mean > 0 else "below")
        way += " in magnitude" if self.scaled else " the reference"
        return (
            f"on average {where} are {abs(self.mean):.2g} expected errors {way}, where {self.allowed:.2g} is allowed: "
            "rounding errors have no bias"
        )


def rounding_unit(size: Any, dtype: Any) -> Any:
    """Half a unit in the last place of the dtype for the last rounding, plus one of the compute dtype for everything else.

    Kernels may flush numbers below the smallest normal number of the compute dtype to zero, and subnormal numbers of the
    dtype have a spacing of their own.
    """
    import torch

    limits, inside = torch.finfo(dtype), torch.finfo(compute_dtype(dtype))
    return size * (limits.eps / 2 + inside.eps) + inside.tiny + limits.tiny * limits.eps


def _typical_noise(noise: Any, size: Any) -> Any:
    """The noise of a typical element, for elements whose own noise is small by chance.

    This is the smaller of the whole tensor's absolute noise and its median element's relative noise, so that a small entry
    among large ones does not get their noise.
    """
    import torch

    if noise.numel() < 2:
        return torch.zeros_like(noise)
    relative = torch.where(size > 0, noise / size, 0.0)
    return torch.minimum(noise.square().mean().sqrt(), relative.median() * size)
