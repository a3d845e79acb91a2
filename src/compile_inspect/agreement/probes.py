"""Inputs that random numbers never produce: special values, the limits of a dtype, other memory layouts.

Some of them would do harm in some functions: a size of 10^17, a loop that waits for an infinite number to become small, or
an index out of range on a GPU, which ends the process. So one run first shows how the function uses its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.forms import is_plain
from compile_inspect.agreement.inputs import Fill, cloned, mapped, refilled, scale_of
from compile_inspect.agreement.precision import intercepted
from compile_inspect.target import Inputs
from compile_inspect.variants import Task

INDEXING = ("index", "gather", "scatter", "embedding", "take", "select", "bincount", "one_hot", "repeat_interleave", "nll_loss")
"""Prefixes of the names of operations that take indices, counts or labels as integer tensors."""
MOST_OPERATIONS = 20
"""A run that takes so many times the operations of the example's is assumed not to end by itself."""
SAFE_POWER = 0.4
"""Huge numbers are the largest of the dtype to this power: sums of a million of their squares are still finite in float32."""
PORTION = 8
"""One element in so many is NaN or infinite, always including the first."""


@dataclass(frozen=True)
class Habits:
    """How a function uses its data, as far as special values could do harm."""

    operations: int
    decides: bool
    """Whether Python branches on a tensor."""
    reads_numbers: bool
    """Whether Python converts tensors to numbers, which may be sizes."""
    indexes: bool
    """Whether integer tensors are used as indices."""


def habits_of(task: Task, run: Callable[[], object]) -> Habits:
    """How a function used its data in one run."""
    import torch

    operations = 0
    seen: set[str] = set()

    def note(operation: Any, args: Any, kwargs: Any) -> Any:
        nonlocal operations
        operations += 1
        name = operation._schema.name.partition("::")[2].lstrip("_")
        if name == "local_scalar_dense":
            seen.add("decides" if args[0].dtype == torch.bool else "reads_numbers")
        leaves = torch_private.flatten((args, kwargs))[0]
        whole = any(
            torch_private.is_tensor(leaf) and not leaf.is_floating_point() and leaf.dtype != torch.bool for leaf in leaves
        )
        if whole and name.startswith(INDEXING):
            seen.add("indexes")
        return operation(*args, **kwargs)

    with intercepted(note):
        run()
    return Habits(operations, "decides" in seen, "reads_numbers" in seen, "indexes" in seen)


class Endless(Exception):  # noqa: N818 (it reads as a statement of fact)
    """A run was stopped because it took many times the operations that it takes at the example."""


def ends(habits: Habits, run: Callable[[], object]) -> bool:
    """Whether a run ends; only branches that depend on tensors make it necessary to check."""
    if not (habits.decides or habits.reads_numbers):
        return True
    left = MOST_OPERATIONS * habits.operations + 1000

    def count(operation: Any, args: Any, kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Endless
        return operation(*args, **kwargs)

    try:
        with intercepted(count):
            run()
    except Endless:
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


def special_probes(task: Task, habits: Habits, seed: int) -> Iterator[Probe]:
    """Inputs with special values, with the shapes, dtypes and strides of the example."""
    import torch

    example = (task.args, task.kwargs)
    leaves = _tensors(example)
    generator = torch.Generator().manual_seed(seed)
    if any(leaf.is_floating_point() or leaf.is_complex() for leaf in leaves):
        for name, fill, unbounded in SPECIAL:
            reason = ""
            if unbounded and habits.reads_numbers:
                reason = "the function converts tensors to Python numbers, which may be sizes"
            elif habits.indexes and task.device != "cpu":
                reason = f"the function uses integers as indices, and an index out of range ends the process on {task.device}"
            yield Probe(name, None if reason else refilled(example, fill, generator, _unchanged), reason)
    if any(not (leaf.is_floating_point() or leaf.is_complex() or leaf.dtype == torch.bool) for leaf in leaves):
        reason = ""
        if habits.indexes or habits.reads_numbers:
            reason = "the function uses integers as indices or sizes"
        elif task.device != "cpu":
            reason = f"on {task.device} an integer out of range may end the process"
        inputs = None if reason else refilled(example, _unchanged, generator, _extreme)
        yield Probe("inputs with extreme integers", inputs, reason, must_not_raise=True)


def layout_probes(task: Task) -> Iterator[Probe]:
    """The example with other strides, and with the same tensor passed twice."""
    example = (task.args, task.kwargs)
    turned = mapped(cloned(example), _with_other_strides)
    if any(one.stride() != other.stride() for one, other in zip(_tensors(turned), _tensors(example), strict=True)):
        yield Probe("inputs with other strides", turned)
    tensors = _tensors(example)
    for place, tensor in enumerate(tensors):
        for other in tensors[:place]:
            alike = tensor is not other and tensor.shape == other.shape and tensor.dtype == other.dtype
            if alike and tensor.requires_grad == other.requires_grad and type(tensor) is type(other):
                twice = mapped(example, lambda leaf, one=other, same=tensor: one if leaf is same else leaf)  # type: ignore[misc]
                yield Probe("one tensor given twice", cloned(twice))
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


def _mixed_in(values: Any, numbers: list[float]) -> Any:
    """Numbers inserted at regular positions, including the first."""
    import torch

    flat = values.reshape(-1).clone()
    places = torch.arange(0, flat.numel(), PORTION)
    flat[places] = torch.tensor(numbers, dtype=torch.float64).to(flat.dtype).repeat(len(places))[: len(places)]
    return flat.reshape(values.shape)


def _with_nan(values: Any, generator: Any) -> Any:
    return _mixed_in(values, [float("nan")])


def _with_infinities(values: Any, generator: Any) -> Any:
    return _mixed_in(values, [float("inf"), float("-inf")])


def _zeros(values: Any, generator: Any) -> Any:
    """Zeros, every other one negative."""
    return _mixed_in(values * 0.0, [-0.0]).nan_to_num(0.0) if not values.is_complex() else values * 0


def _equal(values: Any, generator: Any) -> Any:
    import torch

    return torch.full_like(values, scale_of(values))


def _huge(values: Any, generator: Any) -> Any:
    import torch

    limits = torch.finfo(values.dtype)
    return (values.to(torch.complex128 if values.is_complex() else torch.float64) / scale_of(values)) * limits.max**SAFE_POWER


def _subnormal(values: Any, generator: Any) -> Any:
    import torch

    wide = values.to(torch.complex128 if values.is_complex() else torch.float64)
    return wide / scale_of(values) * torch.finfo(values.dtype).tiny / 4


def _ties(values: Any, generator: Any) -> Any:
    """Few different values, such as -1, 0 and 1, with zeros of both signs, and equal neighbors."""
    import torch

    chosen = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=torch.float64).to(values.dtype)
    flat = values.reshape(-1).clone()
    places = torch.randperm(flat.numel(), generator=generator)[: max(1, flat.numel() // 2)]
    flat[places] = chosen[torch.arange(len(places)) % len(chosen)]
    if flat.numel() > 1:
        flat[-1] = flat[0]
    return flat.reshape(values.shape)


def _extreme(values: Any, generator: Any) -> Any:
    """The limits of the dtype at regular positions; not the smallest number itself, whose negative does not exist."""
    import torch

    limits = torch.iinfo(values.dtype)
    flat = values.reshape(-1).clone()
    flat[::PORTION] = limits.max
    flat[PORTION // 2 :: PORTION] = limits.min + 1 if limits.min else 0
    return flat.reshape(values.shape)


SPECIAL: tuple[tuple[str, Fill, bool], ...] = (
    ("inputs with ties and zeros", _ties, False),
    ("inputs with NaN", _with_nan, False),
    ("inputs with infinities", _with_infinities, True),
    ("zeros of both signs", _zeros, False),
    ("inputs that are all equal", _equal, False),
    ("huge inputs", _huge, True),
    ("subnormal inputs", _subnormal, False),
)
"""Name, fill function, and whether sizes or loops may grow without bound."""
