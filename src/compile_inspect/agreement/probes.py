"""Inputs that random numbers never produce: special values, the limits of a dtype, other memory layouts.

Some of them would do harm in some functions: a size of 10^17, a loop that waits for an infinite number to become small, or
an index out of range on a GPU, which ends the process. So one run first shows how the function uses its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.float64_run import intercept_operations
from compile_inspect.agreement.inputs import Fill, clone_inputs, map_tensors, refill_inputs, scale_of
from compile_inspect.agreement.tensor_metadata import is_plain
from compile_inspect.target import Inputs
from compile_inspect.variants import Task

INDEXING_PREFIXES = (
    "index",
    "gather",
    "scatter",
    "embedding",
    "take",
    "select",
    "bincount",
    "one_hot",
    "repeat_interleave",
    "nll_loss",
)
"""Prefixes of the names of operations that take indices, counts or labels as integer tensors."""
MAX_OPERATION_RATIO = 20
"""A run is assumed not to end if it takes more operations than the example's by this factor."""
HUGE_EXPONENT = 0.4
"""Huge numbers are the largest of the dtype to this power: sums of a million of their squares are still finite in float32."""
SPECIAL_VALUE_SPACING = 8
"""Distance between elements that are NaN or infinite; the first element always is."""


@dataclass(frozen=True)
class DataUse:
    """How a function uses its data, as far as special values could do harm."""

    operations: int
    branches_on_tensors: bool
    """Whether Python branches on a tensor."""
    reads_scalars: bool
    """Whether Python converts tensors to numbers, which may be sizes."""
    indexes_with_integers: bool
    """Whether integer tensors are used as indices."""


def observe_data_use(task: Task, run: Callable[[], object]) -> DataUse:
    """How a function used its data in one run."""
    import torch

    operations = 0
    behaviors: set[str] = set()

    def note(operation: Any, args: Any, kwargs: Any) -> Any:
        nonlocal operations
        operations += 1
        name = operation._schema.name.partition("::")[2].lstrip("_")
        if name == "local_scalar_dense":
            behaviors.add("branches" if args[0].dtype == torch.bool else "reads scalars")
        leaves = torch_private.flatten((args, kwargs))[0]
        has_integers = any(
            torch_private.is_tensor(leaf) and not leaf.is_floating_point() and leaf.dtype != torch.bool for leaf in leaves
        )
        if has_integers and name.startswith(INDEXING_PREFIXES):
            behaviors.add("indexes")
        return operation(*args, **kwargs)

    with intercept_operations(note):
        run()
    return DataUse(operations, "branches" in behaviors, "reads scalars" in behaviors, "indexes" in behaviors)


class OperationLimitError(Exception):
    """A run was stopped because it took many times the operations that it takes at the example."""


def finishes(data_use: DataUse, run: Callable[[], object]) -> bool:
    """Whether a run ends; only branches that depend on tensors make it necessary to check."""
    if not (data_use.branches_on_tensors or data_use.reads_scalars):
        return True
    operations_left = MAX_OPERATION_RATIO * data_use.operations + 1000

    def count(operation: Any, args: Any, kwargs: Any) -> Any:
        nonlocal operations_left
        operations_left -= 1
        if operations_left < 0:
            raise OperationLimitError
        return operation(*args, **kwargs)

    try:
        with intercept_operations(count):
            run()
    except OperationLimitError:
        return False
    except Exception:  # an exception ends it too
        return True
    return True


@dataclass(frozen=True)
class Probe:
    """Inputs with special values or layouts, or the reason why there are none."""

    name: str
    inputs: Inputs | None
    reason: str = ""
    must_not_raise: bool = False
    """Whether the probe is skipped if eager raises at it."""


def special_probes(task: Task, data_use: DataUse, seed: int) -> Iterator[Probe]:
    """Inputs with special values, with the shapes, dtypes and strides of the example."""
    import torch

    example = (task.args, task.kwargs)
    leaves = _tensors(example)
    generator = torch.Generator().manual_seed(seed)
    if any(leaf.is_floating_point() or leaf.is_complex() for leaf in leaves):
        for name, fill, unbounded in SPECIAL_FILLS:
            reason = ""
            if unbounded and data_use.reads_scalars:
                reason = "the function converts tensors to Python numbers, which may be sizes"
            elif data_use.indexes_with_integers and task.device != "cpu":
                reason = f"the function uses integers as indices, and an index out of range ends the process on {task.device}"
            yield Probe(name, None if reason else refill_inputs(example, fill, generator, _unchanged), reason)
    if any(not (leaf.is_floating_point() or leaf.is_complex() or leaf.dtype == torch.bool) for leaf in leaves):
        reason = ""
        if data_use.indexes_with_integers or data_use.reads_scalars:
            reason = "the function uses integers as indices or sizes"
        elif task.device != "cpu":
            reason = f"on {task.device} an integer out of range may end the process"
        inputs = None if reason else refill_inputs(example, _unchanged, generator, _extreme)
        yield Probe("inputs with extreme integers", inputs, reason, must_not_raise=True)


def layout_probes(task: Task) -> Iterator[Probe]:
    """The example with other strides, and with the same tensor passed twice."""
    example = (task.args, task.kwargs)
    restrided = map_tensors(clone_inputs(example), _with_other_strides)
    if any(one.stride() != other.stride() for one, other in zip(_tensors(restrided), _tensors(example), strict=True)):
        yield Probe("inputs with other strides", restrided)
    tensors = _tensors(example)
    for index, tensor in enumerate(tensors):
        for other in tensors[:index]:
            same_kind = tensor is not other and tensor.shape == other.shape and tensor.dtype == other.dtype
            if same_kind and tensor.requires_grad == other.requires_grad and type(tensor) is type(other):
                shared_inputs = map_tensors(example, lambda leaf, one=other, same=tensor: one if leaf is same else leaf)  # type: ignore[misc]
                yield Probe("one tensor given twice", clone_inputs(shared_inputs))
                return


def _tensors(inputs: Inputs) -> list[Any]:
    leaves = torch_private.flatten((inputs[0], dict(inputs[1])))[0]
    return [leaf for leaf in leaves if torch_private.is_tensor(leaf) and is_plain(leaf)]


def _with_other_strides(tensor: Any) -> Any:
    """The same numbers with dimensions reversed in memory, or with gaps if there is one dimension."""
    import torch

    if not is_plain(tensor) or tensor.numel() < 2:
        return tensor
    plain = tensor.detach()
    if plain.dim() > 1:
        order = list(range(plain.dim()))[::-1]
        copy = plain.permute(order).contiguous().permute(order)
        if copy.stride() == plain.stride():
            copy = plain.contiguous()
    else:
        copy = torch.stack([plain, plain], -1).select(-1, 0)
    return copy.detach().requires_grad_(tensor.requires_grad)


def _unchanged(values: Any, generator: Any) -> Any:
    return values


def _insert_numbers(values: Any, numbers: list[float]) -> Any:
    """Numbers inserted at regular positions, including the first."""
    import torch

    flat = values.reshape(-1).clone()
    places = torch.arange(0, flat.numel(), SPECIAL_VALUE_SPACING)
    flat[places] = torch.tensor(numbers, dtype=torch.float64).to(flat.dtype).repeat(len(places))[: len(places)]
    return flat.reshape(values.shape)


def _with_nan(values: Any, generator: Any) -> Any:
    return _insert_numbers(values, [float("nan")])


def _with_infinities(values: Any, generator: Any) -> Any:
    return _insert_numbers(values, [float("inf"), float("-inf")])


def _zeros(values: Any, generator: Any) -> Any:
    """Zeros, every other one negative."""
    return _insert_numbers(values * 0.0, [-0.0]).nan_to_num(0.0) if not values.is_complex() else values * 0


def _equal(values: Any, generator: Any) -> Any:
    import torch

    return torch.full_like(values, scale_of(values))


def _huge(values: Any, generator: Any) -> Any:
    import torch

    limits = torch.finfo(values.dtype)
    return (
        values.to(torch.complex128 if values.is_complex() else torch.float64) / scale_of(values)
    ) * limits.max**HUGE_EXPONENT


def _subnormal(values: Any, generator: Any) -> Any:
    import torch

    wide = values.to(torch.complex128 if values.is_complex() else torch.float64)
    return wide / scale_of(values) * torch.finfo(values.dtype).tiny / 4


def _ties(values: Any, generator: Any) -> Any:
    """Few different values, such as -1, 0 and 1, with zeros of both signs, and equal neighbors."""
    import torch

    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=torch.float64).to(values.dtype)
    flat = values.reshape(-1).clone()
    places = torch.randperm(flat.numel(), generator=generator)[: max(1, flat.numel() // 2)]
    flat[places] = numbers[torch.arange(len(places)) % len(numbers)]
    if flat.numel() > 1:
        flat[-1] = flat[0]
    return flat.reshape(values.shape)


def _extreme(values: Any, generator: Any) -> Any:
    """The limits of the dtype at regular positions; not the smallest number itself, whose negative does not exist."""
    import torch

    limits = torch.iinfo(values.dtype)
    flat = values.reshape(-1).clone()
    flat[::SPECIAL_VALUE_SPACING] = limits.max
    flat[SPECIAL_VALUE_SPACING // 2 :: SPECIAL_VALUE_SPACING] = limits.min + 1 if limits.min else 0
    return flat.reshape(values.shape)


SPECIAL_FILLS: tuple[tuple[str, Fill, bool], ...] = (
    ("inputs with ties and zeros", _ties, False),
    ("inputs with NaN", _with_nan, False),
    ("inputs with infinities", _with_infinities, True),
    ("zeros of both signs", _zeros, False),
    ("inputs that are all equal", _equal, False),
    ("huge inputs", _huge, True),
    ("subnormal inputs", _subnormal, False),
)
"""Name, fill function, and whether sizes or loops may grow without bound."""
