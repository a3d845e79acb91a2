"""Everything about a tensor except its numbers: kind, strides, memory and autograd state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private


@dataclass(frozen=True)
class TensorMetadata:
    """The properties of a tensor that do not depend on its numbers."""

    kind: str
    """Its class and layout."""
    strides: tuple[int, ...] | None
    """Strides of dimensions with more than one element; None where elements overlap or there are no strides."""
    requires_grad: bool
    shares: frozenset[str]
    """Names of inputs, held tensors and other results that share its memory."""


def metadata_of(results: list[tuple[str, Any]], other_tensors: Iterable[tuple[str, Any]]) -> dict[str, TensorMetadata]:
    """The metadata of every tensor among named results; `other_tensors` are inputs and held tensors by name."""
    owners: dict[int, set[str]] = {}
    tensors = [(name, value) for name, value in results if torch_private.is_tensor(value)]
    for name, value in (*other_tensors, *tensors):
        address = _address(value)
        if address:
            owners.setdefault(address, set()).add(name)
    return {
        name: TensorMetadata(
            kind_of(value), _strides(value), value.requires_grad, frozenset(owners.get(_address(value), set()) - {name})
        )
        for name, value in tensors
    }


def kind_of(tensor: Any) -> str:
    """Class and layout as text: `Tensor`, `sparse_coo Tensor`, `jagged NestedTensor`."""
    import torch

    name = "Tensor" if isinstance(tensor, torch.nn.Parameter) else type(tensor).__name__
    layout = str(tensor.layout).removeprefix("torch.")
    return name if layout == "strided" else f"{layout} {name}"


def is_plain(tensor: Any) -> bool:
    """Whether a tensor is an ordinary strided one, neither quantized nor nested nor of a subclass."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return False
    return not (tensor.is_quantized or tensor.is_nested)


def parts_of(tensor: Any) -> list[tuple[str, Any]]:
    """The plain tensors that a tensor consists of, each with the suffix of its name; a plain tensor consists of itself."""
    import torch

    tensor = tensor.detach()
    if is_plain(tensor):
        return [("", tensor)]
    if tensor.is_quantized:
        return [("", tensor.dequantize())]
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        return [(".indices()", tensor.indices()), (".values()", tensor.values())]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        names = ("crow_indices", "col_indices", "values")
        return [(f".{name}()", getattr(tensor, name)()) for name in names]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        names = ("ccol_indices", "row_indices", "values")
        return [(f".{name}()", getattr(tensor, name)()) for name in names]
    if tensor.is_nested and tensor.layout is torch.jagged:
        return [(".values()", tensor.values()), (".offsets()", tensor.offsets())]
    if tensor.is_nested:
        return [(f"[{index}]", item) for index, item in enumerate(tensor.unbind())]
    if hasattr(tensor, "__tensor_flatten__"):
        inner = [(name, getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0]]
        return [(f".{name}{rest}", part) for name, value in inner for rest, part in parts_of(value)]
    if tensor.layout is not torch.strided:
        return [("", tensor.to_dense())]
    with torch._C.DisableTorchFunctionSubclass():
        return [("", tensor.as_subclass(torch.Tensor))]


def _address(value: Any) -> int:
    """The address of a plain tensor's storage; 0 where it has none."""
    if not torch_private.is_tensor(value) or not is_plain(value) or not value.numel():
        return 0
    return int(value.untyped_storage().data_ptr())


def _strides(tensor: Any) -> tuple[int, ...] | None:
    if not is_plain(tensor) or not tensor.numel():
        return None
    pairs = [(stride, size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]
    extent = 1 + sum((size - 1) * stride for stride, size in pairs)
    # An expanded or padded tensor has no strides of its own: a copy of it may close the gaps.
    return tuple(stride for stride, _ in pairs) if extent == tensor.numel() else None
