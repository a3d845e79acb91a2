"""Inputs to compare at: copies of those given, and further ones of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.target import Inputs

WIDE = 30.0
"""How much larger than the example one of the generated inputs is: conditions such as `x.sum() > 10` then turn."""


def clone_tensor(tensor: Any) -> Any:
    """A leaf with the same values, strides, overlaps and wish for a gradient, in memory of its own."""
    import torch

    plain = tensor.detach()
    if plain.layout is not torch.strided or type(plain) is not torch.Tensor or plain.is_quantized or plain.numel() == 0:
        copy = plain.clone()
    else:
        plain = plain.resolve_conj().resolve_neg()
        # The whole stretch of memory it spans, so that expanded and padded tensors stay what they are.
        extent = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
        flat = plain.as_strided((extent,), (1,), plain.storage_offset()).clone()
        copy = flat.as_strided(plain.shape, plain.stride())
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
    return copy.requires_grad_(tensor.requires_grad)


def mapped(inputs: Inputs, change: Callable[[Any], Any]) -> Inputs:
    """Inputs with every tensor changed; one given twice stays one tensor."""
    leaves, structure = torch_private.flatten((inputs[0], dict(inputs[1])))
    done: dict[int, Any] = {}
    for leaf in leaves:
        if torch_private.is_tensor(leaf) and id(leaf) not in done:
            done[id(leaf)] = change(leaf)
    args, kwargs = torch_private.unflatten([done.get(id(leaf), leaf) for leaf in leaves], structure)
    return args, kwargs


def cloned(inputs: Inputs) -> Inputs:
    """Inputs that a run may change without harm."""
    return mapped(inputs, clone_tensor)


def generated(example: Inputs, count: int, seed: int) -> Iterator[tuple[str, Inputs]]:
    """Inputs of the same shapes, dtypes, devices, strides and wishes for gradients, each with what is special about it.

    Numbers with a point are drawn on the example's own scale, negated, and drawn much larger, in turn; integers are
    shuffled, so that indices stay valid.
    """
    import torch

    generator = torch.Generator()
    kinds = (("drawn at random", _drawn), ("negated", _negated), ("drawn large", _wide), ("shuffled", _shuffled))
    for index in range(count):
        generator.manual_seed(seed + index)
        name, fill = kinds[index % len(kinds)]
        yield name, mapped(example, lambda tensor, fill=fill: _refilled(tensor, fill, generator))  # type: ignore[misc]


def special(example: Inputs, seed: int) -> Inputs:
    """The example with zeros of both signs, ones, and equal neighbours in it."""
    import torch

    generator = torch.Generator()
    generator.manual_seed(seed)
    return mapped(example, lambda tensor: _refilled(tensor, _with_special_values, generator))


def same_signature(inputs: Inputs, example: Inputs) -> bool:
    """Whether inputs differ from the example in the contents of tensors alone."""
    leaves, structure = torch_private.flatten((inputs[0], dict(inputs[1])))
    others, other_structure = torch_private.flatten((example[0], dict(example[1])))
    if structure != other_structure or len(leaves) != len(others):
        return False
    return all(_alike(leaf, other) for leaf, other in zip(leaves, others, strict=True))


def _alike(leaf: Any, other: Any) -> bool:
    if torch_private.is_tensor(leaf) and torch_private.is_tensor(other):
        return all(
            getattr(leaf, key) == getattr(other, key) for key in ("shape", "dtype", "device", "layout", "requires_grad")
        ) and _strides(leaf) == _strides(other)
    return type(leaf) is type(other) and bool(leaf is other or leaf == other)


def _strides(tensor: Any) -> tuple[int, ...]:
    import torch

    return tuple(tensor.stride()) if tensor.layout is torch.strided else ()


def _refilled(tensor: Any, fill: Callable[[Any, Any], Any], generator: Any) -> Any:
    """A clone with other contents; where contents overlap or are not dense, as they were."""
    import torch

    copy = clone_tensor(tensor)
    if copy.layout is not torch.strided or copy.is_quantized or copy.numel() == 0 or type(copy.detach()) is not torch.Tensor:
        return copy
    with torch.no_grad():
        values = copy.detach().cpu()
        if values.dtype == torch.bool:
            new = torch.rand(values.shape, generator=generator) < 0.5
        elif values.is_floating_point() or values.is_complex():
            new = fill(values, generator)
        else:
            new = _shuffled(values, generator)
        if any(stride == 0 and size > 1 for size, stride in zip(copy.shape, copy.stride(), strict=True)):
            kept = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in copy.stride())
            copy[kept].copy_(new[kept])
        else:
            copy.detach().copy_(new)
    return copy


def _scale(values: Any) -> float:
    """The root of the mean square of what is finite, 1 where that is nothing or zero."""
    import torch

    finite = values[torch.isfinite(values)]
    scale = float(finite.abs().double().square().mean().sqrt()) if finite.numel() else 0.0
    return scale if scale > 0 and scale < float("inf") else 1.0


def _drawn(values: Any, generator: Any) -> Any:
    import torch

    dtype = torch.complex128 if values.is_complex() else torch.float64
    return torch.randn(values.shape, generator=generator, dtype=dtype) * _scale(values)


def _wide(values: Any, generator: Any) -> Any:
    import torch

    widened = _drawn(values, generator) * WIDE
    if values.is_complex():
        return widened
    limit = torch.finfo(values.dtype).max
    return widened.clamp(-limit, limit)


def _negated(values: Any, generator: Any) -> Any:
    return -values


def _shuffled(values: Any, generator: Any) -> Any:
    import torch

    order = torch.randperm(values.numel(), generator=generator)
    return values.reshape(-1)[order].reshape(values.shape)


def _with_special_values(values: Any, generator: Any) -> Any:
    import torch

    flat = values.reshape(-1).clone()
    chosen = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=torch.float64).to(values.dtype)
    places = torch.randperm(flat.numel(), generator=generator)[: max(1, flat.numel() // 4)]
    flat[places] = chosen[torch.arange(len(places)) % len(chosen)]
    if flat.numel() > 1:
        flat[-1] = flat[0]
    return flat.reshape(values.shape)
