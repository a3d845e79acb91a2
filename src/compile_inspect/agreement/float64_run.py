"""Run the same computation in float64, including inputs, parameters and intermediate results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import map_tensors
from compile_inspect.variants import Step, Task
from compile_inspect.variants.reachable_state import replace_tensors


def floating_precision(task: Task) -> Any:
    """The coarsest floating dtype among the tensors a task reads; float32 where there is none."""
    import torch

    leaves, _ = torch_private.flatten((task.args, dict(task.kwargs)))
    tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] + [item.now() for item in task.held_tensors]
    dtypes = [real_dtype(tensor.dtype) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    return max(dtypes, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)


def real_dtype(dtype: Any) -> Any:
    """The real dtype for a complex one; any other stays."""
    return dtype.to_real() if dtype.is_complex else dtype


def compute_dtype(dtype: Any) -> Any:
    """The dtype in which kernels compute: float32 for dtypes of 16 bits and fewer."""
    import torch

    real = real_dtype(dtype)
    return torch.float32 if torch.finfo(real).bits <= 16 else real


def float64_run(task: Task) -> Callable[..., Step]:
    """The task's own function run in float64 throughout: inputs, parameters, and every tensor that it creates."""
    import torch

    def run(*args: Any, **kwargs: Any) -> Step:
        args, kwargs = map_tensors((args, kwargs), _widen)  # type: ignore[assignment]
        widened = [_widen(item.now()) for item in task.held_tensors]
        before = torch.get_default_dtype()
        with replace_tensors(task.held_tensors, widened):
            torch.set_default_dtype(torch.float64)
            try:
                with intercept_operations(_widen_operation):
                    return task.run(task.function, args, kwargs)
            finally:
                torch.set_default_dtype(before)

    return run


@contextlib.contextmanager
def intercept_operations(handle: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """Route every operation, forward and backward, through `handle(operation, args, kwargs)`."""
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


def _widen(tensor: Any) -> Any:
    wide = _wide_dtypes().get(tensor.dtype)
    if wide is None:
        return tensor
    return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)


def _widen_operation(operation: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation with every dtype argument and every input tensor in double precision."""
    import torch

    table = _wide_dtypes()
    leaves, structure = torch_private.flatten((args, kwargs))
    is_mutable = operation._schema.is_mutable
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.dtype):
            leaves[index] = table.get(leaf, leaf)
        elif isinstance(leaf, torch.Tensor) and leaf.dtype in table and not is_mutable:
            leaves[index] = leaf.to(table[leaf.dtype])
    args, kwargs = torch_private.unflatten(leaves, structure)
    return operation(*args, **kwargs)
