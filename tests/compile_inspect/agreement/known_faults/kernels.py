"""Faults of Inductor's lowerings and of the kernels it writes."""

from __future__ import annotations

from math import inf, nan

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=197895,
    inputs=lambda: (tensor([1.0, 0.5, 6.0]), tensor([0.1, 0.1, 0.2])),
    stage=BlameStage.INDUCTOR,
    operations=("floor_div", "div"),
    lines=("bins = values // width",),
    eager="[18, 8, 58]",
    compiled="[20, 10, 60]",
)
def floor_division_of_floats(values: Tensor, width: Tensor) -> Tensor:
    """1.0 // 0.1 is 9 in Python and in eager mode, and 10 when compiled."""
    bins = values // width
    return bins * 2


@known_fault(
    issue=188048,
    inputs=lambda: (tensor([inf, -inf, 3.0]),),
    stage=BlameStage.INDUCTOR,
    operations=("div",),
    lines=("whole = torch.div",),
    eager="[nan, nan, 5]",
    compiled="[inf, -inf, 5]",
)
def floor_division_of_infinity(x: Tensor) -> Tensor:
    """Floor division of infinity gives infinity; in eager mode it gives NaN."""
    raised = x + 2
    whole = torch.div(raised, 1.0, rounding_mode="floor")
    return whole.clone()


@known_fault(
    issue=None,
    inputs=lambda: (tensor([0.0, 1.0, -1.0]), tensor([inf, inf, 2.0])),
    stage=BlameStage.INDUCTOR,
    operations=("remainder",),
    lines=("rest = torch.remainder",),
    eager="[1, 2, 2]",
    compiled="[nan, nan, 2]",
)
def remainder_by_infinity(x: Tensor, period: Tensor) -> Tensor:
    """The remainder of zero by infinity is NaN."""
    rest = torch.remainder(x, period)
    return rest + 1


@known_fault(
    issue=186875,
    inputs=lambda: (tensor([1.703125, -1.703125], dtype=torch.bfloat16),),
    stage=BlameStage.INDUCTOR,
    operations=("remainder",),
    lines=("phase = torch.remainder",),
    eager="[1, 1]",
    compiled="[2.70312, 1]",
)
def remainder_by_a_python_number(x: Tensor) -> Tensor:
    """A Python divisor is not rounded to bfloat16, and the remainder jumps by a period."""
    flipped = -x
    phase = torch.remainder(flipped, 1.7)
    return phase + 1


@known_fault(
    issue=189799,
    inputs=lambda: (tensor([-0.0, -0.5, 2.0]),),
    stage=BlameStage.INDUCTOR,
    operations=("elu",),
    lines=("bent = F.elu",),
    eager="[-inf, -2.54149, 0.5]",
    compiled="[inf, -2.54149, 0.5]",
)
def elu_of_negative_zero(x: Tensor) -> Tensor:
    """elu of -0.0 is 0.0, so its reciprocal is an infinity with the other sign."""
    bent = F.elu(x)
    return torch.reciprocal(bent)


@known_fault(
    issue=None,
    inputs=lambda: (tensor([nan, -3.0, 3.0, 0.25]),),
    stage=BlameStage.INDUCTOR,
    operations=("softshrink", "mul"),
    lines=("shrunk = F.softshrink",),
    eager="[nan, -6.5, 4.5, -1]",
    compiled="[-1, -6.5, 4.5, -1]",
)
def softshrink_of_nan(x: Tensor) -> Tensor:
    """softshrink turns NaN into 0."""
    doubled = x * 2
    shrunk = F.softshrink(doubled)
    return shrunk - 1


@known_fault(
    issue=191499,
    inputs=lambda: (-tensor([5, 1, 100, 3, 7, 8, 9, 13, 100, 120, 127, 2, 6, 4, 11, 12, 90, 80]).to(torch.int8),),
    stage=BlameStage.INDUCTOR,
    operations=("amax",),
    lines=("largest = x.amax()",),
    eager="-1",
    compiled="1",
)
def largest_of_small_integers(x: Tensor) -> Tensor:
    """The maximum of negative int8 numbers is not negative: unused lanes of the vector take part."""
    largest = x.amax()
    return largest.to(torch.int64)


@known_fault(
    issue=197108,
    inputs=lambda: (torch.zeros(0),),
    stage=BlameStage.INDUCTOR,
    operations=("var_mean",),
    lines=("_, mean = torch.var_mean",),
    eager="nan",
    compiled="0",
)
def mean_of_nothing(x: Tensor) -> Tensor:
    """The mean that var_mean returns for an empty tensor is 0."""
    raised = x + 1
    _, mean = torch.var_mean(raised)
    return mean * 2


@known_fault(
    issue=175966,
    inputs=lambda: (torch.ones(1, dtype=torch.int64),),
    stage=BlameStage.INDUCTOR,
    operations=("mul", "iota", "arange"),
    lines=("stamps = ticks * 1000000000", "ticks = torch.arange"),
    eager="[3000000001, 4000000001, 5000000001, 6000000001, 7000000001, 8000000001, 9000000001, 10000000001]",
    compiled="[3000000001, 4000000001, 5000000001, 1705032705, 2705032705, 3705032705, 4705032705, 1410065409]",
)
def large_multiples_of_a_range(x: Tensor) -> Tensor:
    """A range times a large number overflows in 32 bits, except in the last elements."""
    ticks = torch.arange(0, 11, dtype=torch.int64)
    stamps = ticks * 1000000000
    return stamps[3:] + x


@known_fault(
    issue=185337,
    inputs=lambda: (torch.arange(1.0, 5.0) / 7,),
    stage=BlameStage.INDUCTOR,
    operations=("convert_element_type", "_to_copy", "to"),
    lines=("rounded = x.to(torch.float16)", "widened = rounded.to(torch.float32)"),
    eager="[142.822, 285.645, 428.467, 571.289]",
    compiled="[142.857, 285.714, 428.571, 571.429]",
    missed="the float64 reference does not round either, so the compiled result is closer to it than eager's result is.",
)
def rounding_to_half_precision(x: Tensor) -> Tensor:
    """A conversion to float16 and back does not round."""
    rounded = x.to(torch.float16)
    widened = rounded.to(torch.float32)
    return widened * 1000


@known_fault(
    issue=None,
    inputs=lambda: (tensor([-0.0, -inf, 4.0], requires_grad=True),),
    stage=BlameStage.INDUCTOR,
    operations=("pow",),
    lines=("root = x**0.5",),
    eager="[-inf, nan, 0.25]",
    compiled="[inf, 0, 0.25]",
    shown="gradient of x",
    gradients=True,
)
def gradient_of_a_root_at_negative_zero(x: Tensor) -> Tensor:
    """The gradient of a square root at -0.0 has the other sign, and at minus infinity it is 0."""
    root = x**0.5
    return root.sum()


@known_fault(
    issue=None,
    inputs=lambda: (tensor([inf, 2.0]), tensor([1.0, 3.0])),
    stage=BlameStage.INDUCTOR,
    operations=("mul", "addcdiv"),
    lines=("moved = torch.addcdiv",),
    eager="[nan, 5]",
    compiled="[inf, 5]",
)
def quotient_with_weight_zero(x: Tensor, y: Tensor) -> Tensor:
    """An infinite quotient with weight 0 is dropped, where eager gives NaN."""
    moved = torch.addcdiv(x, x, y, value=0)
    return moved + y


@known_fault(
    issue=198364,
    inputs=lambda: (torch.arange(6.0).reshape(3, 2).mT, torch.ones(2, 3)),
    stage=BlameStage.INDUCTOR,
    operations=("copysign",),
    lines=("signed = torch.copysign",),
    eager="(1, 2)",
    compiled="(3, 1)",
    shown="strides",
)
def strides_of_copysign(x: Tensor, y: Tensor) -> Tensor:
    """copysign of a transposed tensor returns a contiguous one."""
    signed = torch.copysign(x, y)
    return signed
