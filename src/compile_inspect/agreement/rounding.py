"""Run the same computation with every rounding perturbed, to see how far rounding can move eager's result.

This is Monte Carlo arithmetic: the result of every operation that rounds is moved by a unit in the last place, up, down or
not at all. The direction is a hash of the value's own bits and the seed, not of its position. Rounding is deterministic
too: the same value gets the same error wherever it is computed, copies of a value stay copies, and a maximum stays equal
to the element it was taken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.float64_run import compute_dtype, intercept_operations, real_dtype
from compile_inspect.agreement.inputs import map_tensors
from compile_inspect.torch_private.decompositions import decomposition_of
from compile_inspect.variants import Step, Task
from compile_inspect.variants.reachable_state import replace_tensors

# Operations whose results are exact: they copy, select, or change a sign. The names cover their in-place forms too;
# views, factories and random draws are recognized by schema and tags.
_EXACT_NAMES = """
    _to_copy _unsafe_index _unsafe_masked_index abs alias as_strided_copy bernoulli cat ceil clamp clamp_max clamp_min
    clone col2im constant_pad_nd contiguous copy detach diag_embed diagonal_scatter embedding empty_like expand_copy
    fill flip floor full full_like gather hardtanh im2col imag index index_fill index_put index_select isfinite isinf
    isnan lift lift_fresh lift_fresh_copy masked_fill masked_scatter masked_select max_pool2d max_pool2d_with_indices
    maximum minimum nan_to_num neg new_empty new_full new_ones new_zeros ones_like pixel_shuffle positive real
    reflection_pad1d reflection_pad2d relu repeat replication_pad1d replication_pad2d resolve_conj resolve_neg roll
    round scalar_tensor scatter select_backward select_scatter set sgn sign slice_backward slice_scatter stack
    threshold threshold_backward tril triu trunc unfold_backward where zero zeros_like
"""
EXACT_OPERATIONS = frozenset(_EXACT_NAMES.split())
_SELECTION_NAMES = "amax amin aminmax argmax argmin argsort cummax cummin kthvalue max median min mode nanmedian sort topk"
SELECTIONS = frozenset(_SELECTION_NAMES.split())
"""Operations that select among their input values: the values are exact, and which of several equal ones is chosen is free."""
_CONTRACTION_NAMES = "addmm addmv baddbmm bmm convolution cumsum dot mean mm mv nansum sum vdot"
CONTRACTIONS = frozenset(_CONTRACTION_NAMES.split())
"""Sums of terms or of products of two: in 16 bits the terms are exact, because they are added up in float32."""

HASH_MULTIPLIER, HASH_SPREAD = 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D
"""Odd 63-bit constants that mix the bits of a value into a hash."""


def perturbed_run(task: Task, seed: int) -> Callable[..., Step]:
    """The task's own function, with the result of every rounding operation perturbed by at most a unit in the last place."""

    def run(*args: Any, **kwargs: Any) -> Step:
        with intercept_operations(_Perturbation(seed).run):
            return task.run(task.function, args, kwargs)

    return run


def perturbed_input_run(task: Task, seed: int) -> Callable[..., Step]:
    """The task's own function with its inputs and held tensors perturbed, for one whose operations cannot be intercepted."""

    def move(tensor: Any) -> Any:
        plain = tensor.detach()
        return _perturb(plain, seed, 1.0).requires_grad_(tensor.requires_grad) if _can_perturb(plain) else tensor

    def run(*args: Any, **kwargs: Any) -> Step:
        args, kwargs = map_tensors((args, kwargs), move)  # type: ignore[assignment]
        with replace_tensors(task.held_tensors, [move(item.now()) for item in task.held_tensors]):
            return task.run(task.function, args, kwargs)

    return run


@dataclass(frozen=True)
class _Perturbation:
    seed: int

    def run(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation, perturbed."""
        import torch

        name = operation._schema.name.partition("::")[2].removesuffix("_")
        is_random = torch.Tag.nondeterministic_seeded in operation.tags
        is_factory = not any(torch_private.is_tensor(leaf) for leaf in torch_private.flatten((args, kwargs))[0])
        exact = name in EXACT_OPERATIONS or operation.is_view or is_random or is_factory
        if exact and not (name == "_to_copy" and _narrows(args, kwargs)):
            return operation(*args, **kwargs)
        if name in SELECTIONS and not operation._schema.is_mutable:
            return self._run_selection(operation, args, kwargs)
        if not operation._schema.is_mutable and "batch_norm" not in name:
            decomposed = self._run_decomposed(operation, args, kwargs)
            if decomposed is not None:
                return decomposed[0]
        return self._run_rounded(operation, name, args, kwargs)

    def _run_selection(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """The values as they are, and the indices that result when equal values are made different."""
        leaves, structure = torch_private.flatten((args, kwargs))
        separated = torch_private.unflatten([_separate_ties(leaf, self.seed) for leaf in leaves], structure)
        values, form = torch_private.flatten(operation(*args, **kwargs))
        positions, _ = torch_private.flatten(operation(*separated[0], **separated[1]))
        mixed = [
            position if torch_private.is_tensor(value) and not value.is_floating_point() else value
            for value, position in zip(values, positions, strict=True)
        ]
        return torch_private.unflatten(mixed, form)

    def _run_decomposed(self, operation: Any, args: Any, kwargs: Any) -> tuple[Any] | None:
        """Run the simpler operations that a composite one consists of, each perturbed; None if it is not composite.

        A decomposition may be what is wrong with a compiled program: one that does not compute what the operation
        computes for these values says nothing about the operation's roundings.
        """
        import torch

        simpler = decomposition_of(operation)
        if simpler is None:
            return None
        try:
            plain = simpler(*args, **kwargs)
            if plain is NotImplemented:
                return None
            pairs = zip(*(torch_private.flatten(item)[0] for item in (operation(*args, **kwargs), plain)), strict=True)
            input_magnitude = _magnitude(args, kwargs) if torch.Tag.pointwise in operation.tags else None
            if not all(_equivalent(one, other, input_magnitude) for one, other in pairs):
                return None
            with intercept_operations(self.run):
                result = simpler(*args, **kwargs)
        except Exception:  # a decomposition need not support all that the operation supports
            return None
        return None if result is NotImplemented else (result,)

    def _run_rounded(self, operation: Any, name: str, args: Any, kwargs: Any) -> Any:
        import torch

        schema = operation._schema.arguments
        arguments = {**dict(zip((item.name for item in schema), args, strict=False)), **kwargs}
        mutable_names = [item.name for item in schema if item.alias_info and item.alias_info.is_write]
        mutated = [arguments[name] for name in mutable_names if name in arguments]
        units = 1.0
        # A batch norm updates its running statistics, though its schema does not declare that.
        if torch.Tag.pointwise not in operation.tags and "batch_norm" not in name:
            untouched = {id(leaf) for leaf in torch_private.flatten(mutated)[0]}
            leaves, structure = torch_private.flatten((args, kwargs))
            units = _units_of_a_sum(operation, name, args, kwargs)
            perturbed = [leaf if id(leaf) in untouched else self._perturb_term(leaf, name, units) for leaf in leaves]
            args, kwargs = torch_private.unflatten(perturbed, structure)
        result = operation(*args, **kwargs)
        if not operation._schema.is_mutable:
            leaves, structure = torch_private.flatten(result)
            perturbed = [_perturb(leaf, self.seed, units) for leaf in leaves]
            if name in ("add", "sub", "mul"):
                perturbed = [torch.where(_is_exact(name, args, kwargs, result), result, perturbed[0])]
            return torch_private.unflatten(perturbed, structure)
        for tensor in torch_private.flatten(mutated)[0]:
            other = _perturb(tensor, self.seed, units)
            if other is not tensor:
                tensor.copy_(other)
        return result

    def _perturb_term(self, leaf: Any, name: str, units: float) -> Any:
        """A term of a sum or similar: every term is rounded inside, in an order that is not specified."""
        factors = factor_eps(name, leaf) if _can_perturb(leaf) else 0.0
        if factors > 0:
            return _perturb(leaf, self.seed, factors / torch_eps(leaf.dtype))
        if name in CONTRACTIONS and _can_perturb(leaf) and compute_dtype(leaf.dtype) != real_dtype(leaf.dtype):
            return leaf
        return _perturb(leaf, self.seed, units)


TF32_EPS = 2.0**-10
"""The spacing to which tensor cores round the factors of float32 products, where that is allowed."""
_PRODUCT_NAMES = "addmm addmv baddbmm bmm convolution convolution_backward linear matmul mm mv"
PRODUCTS = frozenset(_PRODUCT_NAMES.split())


def factor_eps(name: str, tensor: Any) -> float:
    """The spacing to which a product rounds its factors before it multiplies; 0 where it does not round them."""
    import torch

    is_product = name in PRODUCTS or "attention" in name
    if not is_product or tensor.dtype not in (torch.float32, torch.complex64) or not tensor.is_cuda:
        return 0.0
    if torch.cuda.get_device_capability(tensor.device) < (8, 0):
        return 0.0
    return TF32_EPS if _allows_tf32("convolution" in name) else 0.0


def _allows_tf32(convolution: bool) -> bool:
    import torch

    try:
        return bool(torch.backends.cudnn.allow_tf32 if convolution else torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # set by the newer precision API, which this property does not support
        return True


def torch_eps(dtype: Any) -> float:
    """The spacing of numbers next to 1 in a dtype, or in the real dtype of a complex one."""
    import torch

    return float(torch.finfo(real_dtype(dtype)).eps)


MAX_DECOMPOSITION_UNITS = 256.0
"""How many units in the last place a decomposition may differ from its operation and still count as the same computation."""


MAX_CANCELLATION_UNITS = 4.0
"""How many units in the last place of its input an operation may be off because of cancellation inside, as in 1 + erf(x)."""


def _magnitude(args: Any, kwargs: Any) -> Any:
    """The largest magnitude of a pointwise operation's inputs, element by element."""
    import torch

    leaves = [leaf for leaf in torch_private.flatten((args, kwargs))[0] if _can_perturb(leaf)]
    sizes = [torch.nan_to_num(leaf.detach().abs().double(), 0.0, 0.0, 0.0) for leaf in leaves]
    largest = sizes[0] if sizes else torch.zeros(())
    for size in sizes[1:]:
        largest = torch.maximum(largest, size)
    return largest


def _equivalent(one: Any, other: Any, input_magnitude: Any | None) -> bool:
    """Whether two results are equal up to rounding, including NaN and infinity.

    `given` is the magnitude of a pointwise operation's inputs; other results are measured by their largest value.
    """
    import torch

    if not (torch_private.is_tensor(one) and torch_private.is_tensor(other) and one.is_floating_point()):
        return True
    if one.shape != other.shape or not bool((torch.isfinite(one) == torch.isfinite(other)).all()):
        return False
    finite = torch.isfinite(one)
    values, theirs = (torch.where(finite, item.detach().double(), 0.0) for item in (one, other))
    limits = torch.finfo(one.dtype)
    size = values.abs() if input_magnitude is not None or not values.numel() else values.abs().max()
    allowed = MAX_DECOMPOSITION_UNITS * (limits.eps * size + limits.tiny)
    if input_magnitude is not None:
        allowed = allowed + MAX_CANCELLATION_UNITS * limits.eps * input_magnitude
    return bool(((values - theirs).abs() <= allowed).all())


def _units_of_a_sum(operation: Any, name: str, args: Any, kwargs: Any) -> float:
    """How many units in the last place a sum may be off: a quarter of the root of the number of terms, at least one.

    The error of n additions grows as a random walk. Adding in order leaves about sqrt(n)/6 units, relative to the sum if
    all terms have the same sign, and to the root of the sum of their squares if not (Higham and Mary, 2019).
    """
    tensors = [leaf for leaf in torch_private.flatten((args, kwargs))[0] if torch_private.is_tensor(leaf)]
    sizes = [tensor.shape for tensor in tensors if tensor.dim() and type(tensor.shape[0]) is int]
    if not sizes:
        return 1.0
    arguments = dict(zip((item.name for item in operation._schema.arguments), args, strict=False)) | kwargs
    if name in ("addmm", "baddbmm", "addmv") and len(sizes) > 1:
        terms = sizes[1][-1]
    elif name == "convolution":
        terms = math.prod(sizes[1][1:])
    elif "dim" in arguments or name in ("sum", "mean", "nansum"):
        dims = arguments.get("dim")
        dims = range(len(sizes[0])) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        terms = math.prod(sizes[0][dim] for dim in dims)
    else:
        terms = max(max(size) for size in sizes)
    return max(1.0, math.sqrt(terms) / 4)


def _narrows(args: Any, kwargs: Any) -> bool:
    dtype = kwargs.get("dtype")
    return bool(dtype is not None and dtype.is_floating_point and dtype.itemsize < args[0].dtype.itemsize)


def _is_exact(name: str, args: Any, kwargs: Any, result: Any) -> Any:
    """Where a sum or product needed no rounding, as with zero, one, and small integers."""
    import torch

    if not result.is_floating_point() or kwargs.get("alpha", 1) != 1 or len(args) != 2:
        return torch.zeros_like(result, dtype=torch.bool)
    one, other = args
    if name == "mul":
        # In float64 the product of two float32 is exact; for two float64, only simple factors are known to be.
        if result.dtype != torch.float64:
            return torch.as_tensor(one, device=result.device).double() * other == result
        simple = [torch.as_tensor(item, device=result.device).abs() for item in (one, other)]
        return ((simple[0] <= 1) & (simple[0] == simple[0].round())) | ((simple[1] <= 1) & (simple[1] == simple[1].round()))
    other = -other if name == "sub" else other
    part = result - one  # the rounding error of a sum, by Knuth's algorithm
    return (one - (result - part)) + (other - part) == 0


def _can_perturb(value: Any) -> bool:
    import torch

    plain = isinstance(value, torch.Tensor) and type(value) is torch.Tensor and value.layout is torch.strided
    return plain and (value.is_floating_point() or value.is_complex()) and value.numel() > 0


def _perturb(value: Any, seed: int, units: float) -> Any:
    """A tensor moved by a number of units in the last place, each element in the direction that its bits determine."""
    import torch

    if not _can_perturb(value):
        return value
    if value.is_complex():
        plain = value.resolve_conj()
        return torch.view_as_complex(_perturb(torch.view_as_real(plain).contiguous(), seed, units).contiguous())
    wide = compute_dtype(value.dtype)
    steps = _directions(value, seed).to(wide)
    # In 16 bits only the final rounding is to 16 bits: everything before it happened in float32.
    limits = torch.finfo(value.dtype)
    eps = max(limits.eps, units * torch.finfo(wide).eps)
    perturbed = value.to(wide) * (1 + steps * eps)
    small = (value.abs() < limits.tiny) & (value != 0)
    perturbed = torch.where(small, perturbed + steps * limits.tiny * limits.eps, perturbed)  # the spacing of subnormal numbers
    return perturbed.to(value.dtype)


def _separate_ties(value: Any, seed: int) -> Any:
    """A tensor whose equal elements are made different according to their positions: equal elements have no order."""
    import torch

    if not _can_perturb(value) or value.is_complex():
        return value
    wide = compute_dtype(value.dtype)
    positions = torch.arange(value.numel(), device=value.device, dtype=torch.float64).reshape(value.shape)
    steps = _directions(positions, seed).to(wide)
    limits = torch.finfo(value.dtype)
    perturbed = _perturb(value, seed, 1.0).to(wide) * (1 + steps * limits.eps) + steps * limits.tiny
    return perturbed.to(value.dtype)


def _directions(value: Any, seed: int) -> Any:
    """-1, 0 or 1 for every element, a hash of its bits and the seed."""
    import torch

    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.dtype.itemsize]
    bits = value.detach().contiguous().view(integers).to(torch.int64)
    mixed = (bits + (seed + 1) * HASH_MULTIPLIER % 2**62) * HASH_SPREAD
    mixed = (mixed ^ (mixed >> 29)) * HASH_MULTIPLIER
    return (mixed ^ (mixed >> 32)) % 3 - 1
