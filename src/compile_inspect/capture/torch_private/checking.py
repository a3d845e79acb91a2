"""torch's own checks in C++, for asking whether a call is like the one something was built for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def autocast_switch() -> Callable[[], bool]:
    """The function that says whether autocast is on for any type of device."""
    import torch

    switch: Callable[[], bool] = torch._C._is_any_autocast_enabled
    return switch


def modes() -> tuple[Any, ...]:
    """Settings of torch, other than grad mode and autocast, on which results may depend."""
    import torch

    return (
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch._C._get_cudnn_allow_tf32(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._functorch.maybe_current_level(),
        forward_mode()._current_level,
    )


def forward_mode() -> Any:
    """The module whose `_current_level` is negative where no forward-mode differentiation goes on."""
    from torch.autograd import forward_ad

    return forward_ad


def function_depth() -> Callable[[], int]:
    """The function that says how many function modes are on, such as a default device."""
    import torch

    depth: Callable[[], int] = torch._C._len_torch_function_stack
    return depth


def state_check(*, gradients: bool) -> Callable[[], bool]:
    """Whether grad mode is as given, and autocast, default dtype, determinism and number of threads as they are now."""
    import torch
    from torch._C._dynamo import guards

    with torch.set_grad_enabled(gradients):
        check: Callable[[], bool] = guards.GlobalStateGuard().check
    return check


def tensor_checks(tensors: list[Any]) -> tuple[Callable[..., bool], ...]:
    """Checks that as many tensors are like these: class, dtype, device, shape, strides, `requires_grad`, and what is on
    in torch (autocast, function transforms, dispatch modes).

    The further ones are for inference mode, where tensors made outside and inside of it differ from each other.
    """
    import torch

    with torch.inference_mode():
        inside = [torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=item.device) for item in tensors]
        inferring = (_tensor_check(tensors), _tensor_check(inside))
    return (_tensor_check(tensors), *inferring)


def _tensor_check(tensors: list[Any]) -> Callable[..., bool]:
    from torch._C._dynamo import guards

    sizes: Any = [list(item.shape) for item in tensors]
    strides: Any = [list(item.stride()) for item in tensors]
    check: Callable[..., bool] = guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return check
