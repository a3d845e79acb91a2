"""A catalog of autograd nodes: which have kinks and of what kind, which hide kinks, and which are smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node


class Unreadable(Exception):  # noqa: N818 (control flow, not an error for users)
    """A node whose kinks cannot be read."""


@dataclass(frozen=True)
class Kink:
    """One kink of an elementwise function: at its threshold the slope changes from `left` to `right`."""

    threshold: float | Tensor = 0.0
    left: float = 0.0
    right: float = 1.0
    tie: float = 0.0
    """The slope that torch uses at the kink itself."""


ABS = Kink(left=-1.0)
RISING = Kink()
"""max(u, 0); torch uses the slope 0 at the kink."""


def _bound(node: Any, name: str) -> Any:
    return getattr(node, f"_saved_{name}")


def _clamp(node: Any) -> list[Kink]:
    low, high = _bound(node, "min"), _bound(node, "max")
    if low is not None and high is not None and bool((torch.as_tensor(low) > torch.as_tensor(high)).any()):
        raise Unreadable("with a lower bound above the upper one")
    lower = [] if low is None else [Kink(low, tie=1.0)]
    return lower if high is None else [*lower, Kink(high, right=-1.0)]


def _celu(_: Any) -> list[Kink]:
    return []


def _elu(node: Any) -> list[Kink]:
    left = float(node._saved_alpha * node._saved_scale * node._saved_input_scale)
    right = float(node._saved_scale)
    return [] if left == right else [Kink(left=left, right=right, tie=left)]


def _leaky(node: Any) -> list[Kink]:
    slope = float(node._saved_negative_slope)
    return [] if slope == 1.0 else [Kink(left=slope, tie=slope)]


def _softshrink(node: Any) -> list[Kink]:
    return [Kink(float(node._saved_lambd)), Kink(-float(node._saved_lambd), left=1.0, right=0.0)]


def _hardtanh(node: Any) -> list[Kink]:
    return [Kink(float(node._saved_min_val)), Kink(float(node._saved_max_val), right=-1.0, tie=-1.0)]


def _hardsigmoid(_: Any) -> list[Kink]:
    return [Kink(-3.0, right=1 / 6), Kink(3.0, right=-1 / 6, tie=-1 / 6)]


ELEMENTWISE: dict[str, tuple[str, Callable[[Any], list[Kink]]]] = {
    "AbsBackward0": ("abs", lambda _: [ABS]),
    "ReluBackward0": ("relu", lambda _: [RISING]),
    "ClampBackward0": ("clamp", _clamp),
    "ClampBackward1": ("clamp", _clamp),
    "ClampMinBackward0": ("clamp", lambda node: [Kink(_bound(node, "min"), tie=1.0)]),
    "ClampMinBackward1": ("clamp", lambda node: [Kink(_bound(node, "min"), tie=1.0)]),
    "ClampMaxBackward0": ("clamp", lambda node: [Kink(_bound(node, "max"), left=1.0, right=0.0, tie=1.0)]),
    "ClampMaxBackward1": ("clamp", lambda node: [Kink(_bound(node, "max"), left=1.0, right=0.0, tie=1.0)]),
    "HardtanhBackward0": ("hardtanh", _hardtanh),
    "HardsigmoidBackward0": ("hardsigmoid", _hardsigmoid),
    "SoftshrinkBackward0": ("softshrink", _softshrink),
    "LeakyReluBackward0": ("leaky_relu", _leaky),
    "EluBackward0": ("elu", _elu),
    "CeluBackward0": ("celu", _celu),
}
"""Functions of one argument: their name and their kinks."""

PAIRS: dict[str, tuple[str, Kink]] = {
    "MaximumBackward0": ("maximum", Kink(tie=0.5)),
    "FmaxBackward0": ("maximum", Kink(tie=1.0)),
    "MinimumBackward0": ("minimum", Kink(left=1.0, right=0.0, tie=0.5)),
    "FminBackward0": ("minimum", Kink(left=1.0, right=0.0, tie=1.0)),
}
"""Elementwise maxima and minima of two arguments: their name, and the kink in the difference of the two (first minus second).
"""


REDUCTIONS: dict[str, tuple[str, float]] = {
    "AmaxBackward0": ("amax", 1.0),
    "AminBackward0": ("amin", -1.0),
    "MaxBackward1": ("max", 1.0),
    "MinBackward1": ("min", -1.0),
    "MaxBackward0": ("max", 1.0),
    "MinBackward0": ("min", -1.0),
}
"""Maxima (1) and minima (−1) over dimensions: their name and their sign."""

NORMS = ("LinalgVectorNormBackward0", "NormBackward0", "NormBackward1")

HIDING = {
    "SortBackward0": "sort", "TopkBackward0": "topk", "MedianBackward0": "median", "MedianBackward1": "median",
    "NanmedianBackward0": "nanmedian", "KthvalueBackward0": "kthvalue", "ModeBackward0": "mode", "CummaxBackward0": "cummax",
    "CumminBackward0": "cummin", "WhereBackward0": "where", "SignBackward0": "sign", "FloorBackward0": "floor",
    "CeilBackward0": "ceil", "RoundBackward0": "round", "TruncBackward0": "trunc", "FracBackward0": "frac",
    "RemainderBackward0": "remainder", "FmodBackward0": "fmod", "HardshrinkBackward0": "hardshrink",
    "ThresholdBackward0": "threshold", "HardswishBackward0": "hardswish", "PreluKernelBackward0": "prelu",
    "RreluWithNoiseBackward0": "rrelu",
    "MaxPool2DWithIndicesBackward0": "max_pool", "MaxPool3DWithIndicesBackward0": "max_pool",
    "AdaptiveMaxPool2DBackward0": "max_pool", "AdaptiveMaxPool3DBackward0": "max_pool", "AminmaxBackward0": "aminmax",
    "MultiMarginLossBackward0": "multi_margin_loss", "MultilabelMarginLossBackward0": "multilabel_margin_loss",
    "CdistBackward0": "cdist", "PdistBackward0": "pdist", "DistBackward0": "dist", "RenormBackward0": "renorm",
    "LinalgSvdBackward0": "singular values", "LinalgEighBackward0": "eigenvalues", "LinalgEigBackward0": "eigenvalues",
    "CopysignBackward0": "copysign", "NanToNumBackward0": "nan_to_num", "HypotBackward0": "hypot",
    "torch::autograd::NotImplemented": "a function without a derivative",
}  # fmt: skip
"""Nodes with kinks or jumps that cannot be read, because the argument is not stored or the kink has another form."""

SINGULAR = {"SqrtBackward0": "sqrt", "StdBackward0": "std"}
"""Nodes that are smooth except where their result vanishes; they save the result."""

_SMOOTH = """
Acos Acosh Add Addbmm Addcdiv Addcmul Addmm Addmv Addr Alias AsStrided Asin Asinh Atan Atan2 Atanh AvgPool2D AvgPool3D
Baddbmm BinaryCrossEntropy BinaryCrossEntropyWithLogits Bmm Cat CholeskyInverse CholeskySolve Clone ConstantPadNd
Convolution Copy CopySlices Cos Cosh Cumprod Cumsum Diag Diagonal DiagonalScatter Digamma Div Dot Embedding Erf Erfc
Erfinv Exp Exp2 Expand Expm1 FftC2C FftC2R FftR2C Fill Flip Gather Gelu Glu HuberLoss Index IndexAdd IndexPut
IndexSelect Kron Lerp Lgamma LinalgCholeskyEx LinalgCross LinalgDet LinalgInvEx LinalgLstsq LinalgLuFactorEx
LinalgMatrixExp LinalgPinv LinalgQr LinalgSlogdet LinalgSolveEx LinalgSolveTriangular Linear Log Log10 Log1P Log2
LogSigmoid LogSoftmax Logaddexp Logaddexp2 Logcumsumexp Logit Logsumexp MaskedFill MaskedSelect Mean Mish Mm MseLoss Mul
Mv NativeBatchNorm NativeGroupNorm NativeLayerNorm Neg NewZeros NllLoss NllLoss2D Permute PoissonNllLoss Polygamma Prod
Put Reciprocal ReflectionPad1D ReflectionPad2D Repeat ReplicationPad1D ReplicationPad2D Reshape ReshapeAlias Roll Rsub
Scatter ScatterAdd Select SelectScatter Sigmoid Silu Sin Sinc Sinh Slice SliceScatter SmoothL1Loss SoftMarginLoss
Softmax Softplus Split SplitWithSizes Squeeze Stack Sub Sum Swapaxes T Take Tan Tanh To ToCopy Trace Transpose
Triangular Tril Trilu Triu Unbind Unfold UnsafeSplit UnsafeView Unsqueeze UpsampleBilinear2D Var VarMean View Zero
"""
SMOOTH = frozenset(f"{name}Backward" for name in _SMOOTH.split())
"""Nodes without kinks, by their names without the trailing number."""
UNNUMBERED = frozenset({"torch::autograd::AccumulateGrad", "torch::autograd::CopyBackwards"})


def is_smooth(node: Node) -> bool:
    """Whether a node is known to have no kinks."""
    name = node.name()
    if name in UNNUMBERED:
        return True
    stem = name.rstrip("0123456789")
    if stem == name:
        return False  # a user-defined autograd function
    if stem == "DivBackward" and getattr(node, "_saved_rounding_mode", None):
        return False
    if stem == "SmoothL1LossBackward" and not float(getattr(node, "_saved_beta", 1.0)) > 0:
        return False
    return _smooth_power(node) if stem == "PowBackward" else stem in SMOOTH


def _smooth_power(node: Any) -> bool:
    """Whether a power is smooth: its exponent is an integer or at least 2, or its base is positive."""
    exponent = getattr(node, "_saved_exponent", None)
    if isinstance(exponent, int | float):
        return float(exponent).is_integer() or exponent >= 2.0 or bool((node._saved_self > 0).all())
    base = getattr(node, "_saved_self", None)
    return isinstance(base, Tensor) and bool((torch.as_tensor(base) > 0).all())
