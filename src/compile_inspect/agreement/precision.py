"""Run the same computation in float64, including inputs, parameters and intermediate results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import mapped
from compile_inspect.variants import Step, Task
from compile_inspect.variants.reached import replaced


def floating_precision(task: Task) -> Any:
    """The coarsest floating dtype among the tensors a task reads; float32 where there is none."""
    import torch

    leaves, _ = torch_private.flatten((task.args, dict(task.kwargs)))
    tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] + [item.now() for item in task.held]
    found = [real_dtype(tensor.dtype) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    return max(found, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)


def real_dtype(dtype: Any) -> Any:
    """The real dtype for a complex one; any other stays."""
    return dtype.to_real() if dtype.is_complex else dtype


def compute_dtype(dtype: Any) -> Any:
    """The dtype in which kernels compute: float32 for dtypes of 16 bits and fewer."""
    import torch

    real = real_dtype(dtype)
    return torch.float32 if torch.finfo(real).bits <= 16 else real


def in_float64(task: Task) -> Callable[..., Step]:
    """The task's own function run in float64 throughout: inputs, parameters, and every tensor that it creates."""
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


@contextlib.contextmanager
def intercepted(handle: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
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


def _widened(tensor: Any) -> Any:
    wide = _wide_dtypes().get(tensor.dtype)
    if wide is None:
        return tensor
    return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)


def _widen_operation(operation: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation with every dtype argument and every input tensor in double precision."""
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
