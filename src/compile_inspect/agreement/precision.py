"""The same computation in other arithmetic: in float64, and with every rounding disturbed.

Two questions about eager's own result are answered here, because no fixed tolerance can: how far it is from what
float64 gives, and how far it could have been had every rounding gone the other way (Monte Carlo arithmetic). The
second is needed where the first says nothing: for results that are float64 already, and for single numbers, whose
error may be small by luck.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from compile_inspect.agreement.inputs import mapped
from compile_inspect.capture import torch_private
from compile_inspect.variants import Step, Task
from compile_inspect.variants.task import replaced

# Operations whose results are exact: disturbing them would part values that are equal in any arithmetic. They stand
# for their in-place forms too; views, factories and random draws are told by schema and tags.
_EXACT_NAMES = """
    _to_copy _unsafe_index _unsafe_masked_index abs alias as_strided_copy bernoulli cat ceil clamp clamp_max clamp_min
    clone col2im constant_pad_nd contiguous copy detach diag_embed diagonal_scatter embedding empty_like expand_copy
    fill flip floor full full_like gather hardtanh im2col imag index index_fill index_select isfinite isinf isnan lift
    lift_fresh lift_fresh_copy masked_fill masked_scatter masked_select max_pool2d max_pool2d_with_indices maximum
    minimum nan_to_num neg new_empty new_full new_ones new_zeros ones_like pixel_shuffle positive real
    reflection_pad1d reflection_pad2d relu repeat replication_pad1d replication_pad2d resolve_conj resolve_neg roll
    round scalar_tensor scatter select_backward select_scatter set sgn sign slice_backward slice_scatter stack
    threshold threshold_backward tril triu trunc unfold_backward where zero zeros_like
"""
EXACT = frozenset(_EXACT_NAMES.split())
# Operations that put values in order: here even zeros that are equal are parted, for any order of equals will do.
ORDERING = frozenset(("argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "mode", "sort", "topk"))
# Functions that compiled kernels approximate to a unit of their largest value, which is 1, and not of each value.
APPROXIMATED = frozenset(("erf", "erfc", "tanh"))


def floating_precision(task: Task) -> Any:
    """The coarsest floating dtype among the tensors a task reads; float32 where there is none."""
    import torch

    leaves, _ = torch_private.flatten((task.args, dict(task.kwargs)))
    tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] + [item.now() for item in task.held]
    found = [real_dtype(tensor.dtype) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    return max(found, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex number; any other stays."""
    return dtype.to_real() if dtype.is_complex else dtype


def in_float64(task: Task) -> Callable[..., Step]:
    """The task's own function run in float64 throughout: inputs, parameters, and whatever it makes on the way."""
    import torch

    def run(*args: Any, **kwargs: Any) -> Step:
        args, kwargs = mapped((args, kwargs), _widened)  # type: ignore[assignment]
        held = [_widened(item.now()) for item in task.held]
        before = torch.get_default_dtype()
        with replaced(task.held, held):
            torch.set_default_dtype(torch.float64)
            try:
                with intercepted(_widen_operation):
                    return task.run(task.function, args, kwargs)
            finally:
                torch.set_default_dtype(before)

    return run


def disturbed(task: Task, seed: int) -> Callable[..., Step]:
    """The task's own function with the result of every rounding operation moved by a unit in the last place or not."""

    def run(*args: Any, **kwargs: Any) -> Step:
        generators: dict[Any, Any] = {}

        def disturb(tensor: Any, *, parting: bool = False, approximated: bool = False) -> Any:
            return _moved(tensor, generators, seed, parting=parting, approximated=approximated)

        with intercepted(lambda operation, args, kwargs: _disturb_operation(operation, args, kwargs, disturb)):
            return task.run(task.function, args, kwargs)

    return run


@contextlib.contextmanager
def intercepted(handle: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """Every operation, forward and backward, goes through `handle(operation, args, kwargs)`."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Intercepting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return handle(func, args, kwargs or {})

    with Intercepting():  # type: ignore[no-untyped-call]
        yield


def _wide_dtypes() -> dict[Any, Any]:
    import torch

    narrow = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64}
    return {**narrow, torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def _widened(tensor: Any) -> Any:
    wide = _wide_dtypes().get(tensor.dtype)
    if wide is None:
        return tensor
    return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)


def _widen_operation(operation: Any, args: Any, kwargs: Any) -> Any:
    """An operation with every dtype it is told and every tensor it is given in double precision."""
    import torch

    table = _wide_dtypes()
    leaves, structure = torch_private.flatten((args, kwargs))
    written = operation._schema.is_mutable
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.dtype):
            leaves[index] = table.get(leaf, leaf)
        elif isinstance(leaf, torch.Tensor) and leaf.dtype in table and not written:
            leaves[index] = leaf.to(table[leaf.dtype])
    args, kwargs = torch_private.unflatten(leaves, structure)
    return operation(*args, **kwargs)


def _disturb_operation(operation: Any, args: Any, kwargs: Any, disturb: Callable[..., Any]) -> Any:
    import torch

    name = operation._schema.name.partition("::")[2].removesuffix("_")
    drawn = torch.Tag.nondeterministic_seeded in operation.tags
    made = not any(torch_private.is_tensor(leaf) for leaf in torch_private.flatten((args, kwargs))[0])
    exact = name in EXACT or operation.is_view or drawn or made
    if exact and not (name == "_to_copy" and _narrows(args, kwargs)):
        return operation(*args, **kwargs)
    schema = operation._schema.arguments
    written = [
        value for argument, value in zip(schema, args, strict=False) if argument.alias_info and argument.alias_info.is_write
    ]
    written += [kwargs[item.name] for item in schema if item.alias_info and item.alias_info.is_write and item.name in kwargs]
    # A batch norm moves the running statistics it is given, though its schema does not say so.
    if torch.Tag.pointwise not in operation.tags and "batch_norm" not in name:
        # Inside a sum or a product of matrices every term is rounded, in an order that is nobody's business.
        untouched = {id(leaf) for leaf in torch_private.flatten(written)[0]}
        leaves, structure = torch_private.flatten((args, kwargs))
        parting = name in ORDERING
        moved = [leaf if id(leaf) in untouched else disturb(leaf, parting=parting) for leaf in leaves]
        args, kwargs = torch_private.unflatten(moved, structure)
    result = operation(*args, **kwargs)
    if not operation._schema.is_mutable:
        leaves, structure = torch_private.flatten(result)
        moved = [disturb(leaf, approximated=name in APPROXIMATED) for leaf in leaves]
        if name in ("add", "sub", "mul"):
            moved = [torch.where(_exactly(name, args, kwargs, result), result, moved[0])]
        return torch_private.unflatten(moved, structure)
    for tensor in torch_private.flatten(written)[0]:
        other = disturb(tensor)
        if other is not tensor:
            tensor.copy_(other)
    return result


def _narrows(args: Any, kwargs: Any) -> bool:
    dtype = kwargs.get("dtype")
    return bool(dtype is not None and dtype.is_floating_point and dtype.itemsize < args[0].dtype.itemsize)


def _exactly(name: str, args: Any, kwargs: Any, result: Any) -> Any:
    """Where a sum or product needed no rounding, as with zero, one, and small whole numbers."""
    import torch

    if not result.is_floating_point() or kwargs.get("alpha", 1) != 1 or len(args) != 2:
        return torch.zeros_like(result, dtype=torch.bool)
    one, other = args
    if name == "mul":
        # In float64 the product of two float32 is exact; of two float64 only simple factors are known to be.
        if result.dtype != torch.float64:
            return torch.as_tensor(one, device=result.device).double() * other == result
        simple = [torch.as_tensor(item, device=result.device).abs() for item in (one, other)]
        return ((simple[0] <= 1) & (simple[0] == simple[0].round())) | ((simple[1] <= 1) & (simple[1] == simple[1].round()))
    other = -other if name == "sub" else other
    part = result - one  # the rounding error of a sum, by the algorithm of Knuth
    return (one - (result - part)) + (other - part) == 0


def _moved(value: Any, generators: dict[Any, Any], seed: int, *, parting: bool, approximated: bool) -> Any:
    import torch

    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    if value.layout is not torch.strided or type(value) is not torch.Tensor or value.numel() == 0:
        return value
    if value.device not in generators:
        generators[value.device] = torch.Generator(value.device).manual_seed(seed)
    real = real_dtype(value.dtype)
    wide = torch.float32 if torch.finfo(real).bits <= 16 else real
    steps = torch.randint(-1, 2, value.shape, generator=generators[value.device], device=value.device, dtype=torch.int8)
    moved = (value * (1 + steps.to(wide) * torch.finfo(real).eps)).to(value.dtype)
    if parting or approximated:
        moved = moved + steps.to(moved.dtype) * (torch.finfo(real).eps if approximated else torch.finfo(real).tiny)
    return moved
