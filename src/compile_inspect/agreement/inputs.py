"""Inputs to compare at: copies of your own, and generated ones of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.tensor_metadata import is_plain, kind_of, parts_of
from compile_inspect.target import Inputs

WIDE_FACTOR = 30.0
"""How much larger than the example one of the generated inputs is, so that conditions such as `x.sum() > 10` flip."""


def clone_tensor(tensor: Any) -> Any:
    """A leaf with the same values, strides, overlaps and `requires_grad`, in its own memory."""
    import torch

    plain = tensor.detach()
    if not is_plain(plain) or plain.numel() == 0:
        copy = plain.clone()
    else:
        plain = plain.resolve_conj().resolve_neg()
        # The whole stretch of memory that it spans, so that expanded and padded tensors keep their layout.
        flat = plain.as_strided((_extent(plain),), (1,), plain.storage_offset()).clone()
        copy = flat.as_strided(plain.shape, plain.stride())
    if is_parameter(tensor):
        return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
    return copy.requires_grad_(tensor.requires_grad)


def is_parameter(tensor: Any) -> bool:
    """Whether a tensor is an `nn.Parameter`."""
    import torch

    return isinstance(tensor, torch.nn.Parameter)


def map_tensors(inputs: Inputs, change: Callable[[Any], Any]) -> Inputs:
    """Apply a function to every tensor among inputs; a tensor that is passed twice stays one tensor."""
    leaves, structure = torch_private.flatten((inputs[0], dict(inputs[1])))
    replacements: dict[int, Any] = {}
    for leaf in leaves:
        if torch_private.is_tensor(leaf) and id(leaf) not in replacements:
            replacements[id(leaf)] = change(leaf)
    args, kwargs = torch_private.unflatten([replacements.get(id(leaf), leaf) for leaf in leaves], structure)
    return args, kwargs


def clone_inputs(inputs: Inputs) -> Inputs:
    """Copies of inputs that a run may change; copies share memory where their originals do."""
    shared = _clone_shared(inputs)
    return map_tensors(inputs, lambda tensor: shared[id(tensor)] if id(tensor) in shared else clone_tensor(tensor))


def _clone_shared(inputs: Inputs) -> dict[int, Any]:
    """Clones of tensors that share a storage, by the identity of the original."""
    import torch

    leaves, _ = torch_private.flatten((inputs[0], dict(inputs[1])))
    groups: dict[Any, dict[int, Any]] = {}
    for leaf in leaves:
        if torch_private.is_tensor(leaf) and is_plain(leaf) and leaf.numel() and not (leaf.is_conj() or leaf.is_neg()):
            groups.setdefault((leaf.untyped_storage().data_ptr(), leaf.dtype), {})[id(leaf)] = leaf
    clones = {}
    for group in groups.values():
        if len(group) > 1:
            plain = [leaf.detach() for leaf in group.values()]
            start = min(item.storage_offset() for item in plain)
            end = max(item.storage_offset() + _extent(item) for item in plain)
            memory = plain[0].as_strided((end - start,), (1,), start).clone()
            for leaf in group.values():
                copy = memory.as_strided(leaf.shape, leaf.stride(), leaf.storage_offset() - start)
                copy.requires_grad_(leaf.requires_grad)
                clones[id(leaf)] = torch.nn.Parameter(copy.detach(), leaf.requires_grad) if is_parameter(leaf) else copy
    return clones


def _extent(tensor: Any) -> int:
    """The number of elements of memory that a tensor spans."""
    return 1 + sum(int(size - 1) * int(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def generate_inputs(example: Inputs, count: int, seed: int) -> Iterator[tuple[str, Inputs]]:
    """Inputs with the same shapes, dtypes, devices, strides and `requires_grad`, each with a description of its values.

    Floating-point values are drawn on the example's own scale, negated, and drawn much larger, in turn; integers are
    shuffled, so that indices stay valid.
    """
    import torch

    generator = torch.Generator()
    kinds = (("random", _draw), ("negated", _negate), ("large random", _draw_wide), ("shuffled", _shuffle))
    for index in range(count):
        generator.manual_seed(seed + index)
        name, fill = kinds[index % len(kinds)]
        yield name, refill_inputs(example, fill, generator)


Fill = Callable[[Any, Any], Any]
"""New values from old ones and a generator."""


def refill_inputs(example: Inputs, fill: Fill, generator: Any, integers: Fill | None = None) -> Inputs:
    """The example with other floating-point values, and with `integers` or shuffled ones where values are integers."""
    inputs = clone_inputs(example)
    refilled_ids: set[int] = set()
    for leaf in torch_private.flatten((inputs[0], dict(inputs[1])))[0]:
        if torch_private.is_tensor(leaf) and id(leaf) not in refilled_ids:
            refilled_ids.add(id(leaf))
            _refill(leaf, fill, integers or _shuffle, generator)
    return inputs


def same_signature(inputs: Inputs, example: Inputs) -> bool:
    """Whether inputs differ from the example only in the contents of tensors."""
    leaves, structure = torch_private.flatten((inputs[0], dict(inputs[1])))
    others, other_structure = torch_private.flatten((example[0], dict(example[1])))
    if structure != other_structure or len(leaves) != len(others) or _sharing(leaves) != _sharing(others):
        return False
    return all(_same_metadata(leaf, other) for leaf, other in zip(leaves, others, strict=True))


def _same_metadata(leaf: Any, other: Any) -> bool:
    if torch_private.is_tensor(leaf) and torch_private.is_tensor(other):
        if not (is_plain(leaf) and is_plain(other)):
            leaf_parts, other_parts = parts_of(leaf), parts_of(other)
            parts_metadata = [
                [(rest, part.shape, part.dtype, part.device) for rest, part in parts] for parts in (leaf_parts, other_parts)
            ]
            return (
                kind_of(leaf) == kind_of(other)
                and leaf.requires_grad == other.requires_grad
                and parts_metadata[0] == parts_metadata[1]
            )
        return (
            all(getattr(leaf, key) == getattr(other, key) for key in ("shape", "dtype", "device", "requires_grad"))
            and leaf.stride() == other.stride()
        )
    return type(leaf) is type(other) and bool(leaf is other or leaf == other)


def _sharing(leaves: list[Any]) -> list[int]:
    """For every leaf, the position of the first one that shares its memory."""
    first: dict[int, int] = {}
    addresses = [
        leaf.untyped_storage().data_ptr()
        if torch_private.is_tensor(leaf) and is_plain(leaf) and leaf.numel()
        else -1 - position
        for position, leaf in enumerate(leaves)
    ]
    return [first.setdefault(address, position) for position, address in enumerate(addresses)]


def shares_memory(inputs: Inputs) -> bool:
    """Whether two different tensors among inputs share memory."""
    leaves = list({id(leaf): leaf for leaf in torch_private.flatten((inputs[0], dict(inputs[1])))[0]}.values())
    return _sharing(leaves) != list(range(len(leaves)))


def _refill(tensor: Any, fill: Fill, integers: Fill, generator: Any) -> None:
    """Fill a tensor with other values; a tensor that is not plain stays as it is."""
    import torch

    if not is_plain(tensor) or tensor.numel() == 0:
        return
    with torch.no_grad():
        values = tensor.detach().cpu()
        if values.dtype == torch.bool:
            new = torch.rand(values.shape, generator=generator) < 0.5
        elif values.is_floating_point() or values.is_complex():
            new = fill(values, generator)
        else:
            new = integers(values, generator)
        if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
            unique_part = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())
            tensor.detach()[unique_part].copy_(new[unique_part])
        else:
            tensor.detach().copy_(new)


def scale_of(values: Any) -> float:
    """The root mean square of the finite values, or 1 where there are none or it is zero."""
    import torch

    finite = values[torch.isfinite(values)]
    scale = float(finite.abs().double().square().mean().sqrt()) if finite.numel() else 0.0
    return scale if scale > 0 and scale < float("inf") else 1.0


def _draw(values: Any, generator: Any) -> Any:
    import torch

    dtype = torch.complex128 if values.is_complex() else torch.float64
    return torch.randn(values.shape, generator=generator, dtype=dtype) * scale_of(values)


def _draw_wide(values: Any, generator: Any) -> Any:
    import torch

    widened = _draw(values, generator) * WIDE_FACTOR
    if values.is_complex():
        return widened
    limit = torch.finfo(values.dtype).max
    return widened.clamp(-limit, limit)


def _negate(values: Any, generator: Any) -> Any:
    return -values


def _shuffle(values: Any, generator: Any) -> Any:
    import torch

    order = torch.randperm(values.numel(), generator=generator)
    return values.reshape(-1)[order].reshape(values.shape)
