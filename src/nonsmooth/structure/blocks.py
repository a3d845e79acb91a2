"""The kinks of one node of a graph: their arguments (differentiable) and the slopes on either side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.catalog import ABS, ELEMENTWISE, NORMS, PAIRS, REDUCTIONS, Kink, Unreadable

UNSEEN = "argument not recorded"
MAX_NORM_ENTRIES = 20
"""Kinks of Euclidean norms of more entries are not used: these norms rarely vanish, and each entry adds an unknown slope."""


@dataclass(frozen=True)
class Block:
    """The terms of one node."""

    source: int
    argument: Tensor
    """u, with its graph."""
    left: Tensor
    right: Tensor
    autograd_slopes: Tensor
    """Slopes of f, in the shape of u."""
    groups: Tensor | None = None
    places: Tensor | None = None
    """The positions of entries of groups among all entries of the node; the largest of each group is not a term."""
    largest: Tensor | None = None
    balls: Tensor | None = None
    """The ball of each entry."""


def saved(node: Any, name: str) -> Tensor:
    """A tensor that a node saved for its backward."""
    value: Tensor = getattr(node, f"_saved_{name}")
    return value


def order_of(node: Any) -> float:
    """The order of a norm."""
    return float(getattr(node, "_saved_ord", None) or getattr(node, "_saved_p", None) or 0.0)


def entries_in_balls(node: Node) -> int:
    """The number of entries of the Euclidean norms that a node computes; 0 if their kinks cannot be used."""
    if node.name() not in NORMS or order_of(node) != 2.0:
        return 0
    try:
        argument, result = saved(node, "self"), saved(node, "result")
    except RuntimeError:  # one of them was modified in place
        return 0
    fits = 0 < argument.numel() <= MAX_NORM_ENTRIES * result.numel() and argument.is_floating_point()
    return argument.numel() if fits else 0


def kind_of(node: Node) -> str:
    """The name of the operation that created a node with kinks."""
    name = node.name()
    for table in (ELEMENTWISE, PAIRS, REDUCTIONS):
        if name in table:
            return str(table[name][0])
    return "norm"


def blocks_of(
    source: int,
    node: Any,
    sensitivity: Tensor,
    arguments: Arguments,
    numbers: Iterator[int],
    balls: Iterator[int] | None = None,
) -> Iterator[Block]:
    """The terms of a node; `numbers` and `balls` supply the numbers of new groups and balls."""
    name = node.name()
    if name in ELEMENTWISE:
        argument = _argument(node, arguments)
        for kink in ELEMENTWISE[name][1](node):
            yield _elementwise(source, argument - kink.threshold, sensitivity, kink)
    elif name in PAIRS:
        kink = PAIRS[name][1]
        yield _elementwise(source, saved(node, "self") - saved(node, "other"), sensitivity, kink)
    elif name in REDUCTIONS:
        sign = REDUCTIONS[name][1]
        argument = _argument(node, arguments)
        dimensions = _dimensions(node, argument)
        share = None
        if hasattr(node, "_saved_indices"):
            place = saved(node, "indices")
            place = place if node._saved_keepdim else place.unsqueeze(dimensions[0])
            share = torch.zeros_like(argument).scatter(dimensions[0], place, 1.0)
        yield _largest(source, argument, sensitivity, sign, dimensions, node, share, numbers)
    else:
        yield _norm(source, node, sensitivity, numbers, balls)


def argument_size(node: Any, arguments: Arguments) -> int:
    """The number of entries of a node's argument."""
    if node.name() in PAIRS:
        shapes = saved(node, "self").shape, saved(node, "other").shape
        return math.prod(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    return _argument(node, arguments).numel()


def _argument(node: Any, arguments: Arguments) -> Tensor:
    """The argument of a node."""
    if hasattr(node, "_saved_self"):
        return saved(node, "self")
    argument = arguments.of(node)
    if argument is None:
        raise Unreadable(UNSEEN)
    return argument


def _dimensions(node: Any, argument: Tensor) -> list[int]:
    """The dimensions that a reduction reduces."""
    value = getattr(node, "_saved_dim", None)
    dimensions = [value] if isinstance(value, int) else list(value or ())
    if not dimensions:
        return list(range(argument.dim()))
    # Negative dimensions are saved as unsigned integers.
    return [(one - 2**64 if one >= 2**63 else one) % max(argument.dim(), 1) for one in dimensions]


def _expanded(result: Tensor, node: Any, argument: Tensor, dimensions: Sequence[int]) -> Tensor:
    """A result of a reduction in the shape of its argument."""
    if not getattr(node, "_saved_keepdim", False):
        for dimension in sorted(dimensions):
            result = result.unsqueeze(dimension) if argument.dim() else result
    return result.expand(argument.shape)


def _elementwise(source: int, argument: Tensor, sensitivity: Tensor, kink: Kink) -> Block:
    values = argument.detach()
    slopes = torch.where(values > 0, kink.right, torch.where(values < 0, kink.left, kink.tie)).to(sensitivity.dtype)
    return Block(source, argument, kink.left * sensitivity, kink.right * sensitivity, slopes * sensitivity)


def _largest(
    source: int, argument: Tensor, sensitivity: Tensor, sign: float, dimensions: Sequence[int], node: Any,
    share: Tensor | None, numbers: Iterator[int],
) -> Block:  # fmt: skip
    """A maximum (with sign −1 a minimum) over dimensions: each entry minus the first largest one, which is not a term."""
    others = [dimension for dimension in range(argument.dim()) if dimension not in dimensions]
    order = [*others, *dimensions]
    shape = [argument.shape[dimension] for dimension in others]
    signed = sign * argument.permute(order).reshape([*shape, -1])
    slopes = _expanded(sensitivity, node, argument, dimensions).permute(order).reshape(signed.shape)
    best = signed.detach().argmax(-1, keepdim=True)
    differences = signed - signed.gather(-1, best)
    if share is None:
        ties = (differences.detach() == 0).to(slopes.dtype)
        share = ties / ties.sum(-1, keepdim=True)
    else:
        share = share.permute(order).reshape(signed.shape)
    group_numbers = [next(numbers) for _ in range(math.prod(shape))]
    groups = torch.tensor(group_numbers, device=signed.device).reshape([*shape, 1]).expand(signed.shape)
    rest = torch.ones_like(differences, dtype=torch.bool).scatter(-1, best, value=False)
    places = torch.arange(signed.numel(), device=signed.device).reshape(signed.shape)
    right = sign * slopes  # min(p) = −max(−p): f changes by the sign times its slope when the signed differences rise
    return Block(
        source, differences[rest], torch.zeros_like(right)[rest], right[rest], (share * right)[rest], groups[rest],
        places[rest], places.gather(-1, best).reshape(-1),
    )  # fmt: skip


def _ball(source: int, node: Any, sensitivity: Tensor, numbers: Iterator[int]) -> Block:
    """A Euclidean norm over dimensions."""
    argument, result = saved(node, "self"), saved(node, "result")
    dimensions = _dimensions(node, argument)
    ball_numbers = [next(numbers) for _ in range(result.numel())]
    balls = _expanded(torch.tensor(ball_numbers, device=argument.device).reshape(result.shape), node, argument, dimensions)
    right, lengths = (_expanded(part, node, argument, dimensions) for part in (sensitivity, result))
    values = argument.detach()
    slopes = torch.where(lengths > 0, right * (values / torch.where(lengths > 0, lengths, 1.0)), 0.0)
    return Block(source, argument, -right, right, slopes, balls=balls.reshape(-1))


def _norm(source: int, node: Any, sensitivity: Tensor, numbers: Iterator[int], balls: Iterator[int] | None) -> Block:
    order, argument = order_of(node), saved(node, "self")
    dimensions = _dimensions(node, argument)
    if order == 1.0:
        return _elementwise(source, argument, _expanded(sensitivity, node, argument, dimensions), ABS)
    if order == 2.0 and balls is not None:
        return _ball(source, node, sensitivity, balls)
    if order != float("inf"):
        raise Unreadable(f"of order {order:g}")
    if bool((saved(node, "result") == 0).any()):
        raise Unreadable("of 0")
    magnitudes = argument * argument.detach().sign()
    return _largest(source, magnitudes, sensitivity, 1.0, dimensions, node, None, numbers)
