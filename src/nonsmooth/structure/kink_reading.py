"""Read kinks from a graph: which nodes have kinks, at which arguments, and how f depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count, islice
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.graph import Node

from nonsmooth.evaluate.columns import columns_are_cheaper, jacobian_by_columns
from nonsmooth.evaluate.engine import backward, batched_backward, sensitivities
from nonsmooth.evaluate.trial import FunctionFailed
from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.blocks import Block, blocks_of, entries_in_balls, kind_of, order_of, saved
from nonsmooth.structure.catalog import ELEMENTWISE, HIDING, NORMS, PAIRS, REDUCTIONS, SINGULAR, Unreadable, is_smooth
from nonsmooth.structure.terms import ALONE, Matrix, Terms
from nonsmooth.variables import Variables

if TYPE_CHECKING:
    from nonsmooth.structure.constraints import ConstraintReading

Vector = NDArray[np.float64]
MAX_TERMS_PER_VARIABLE, EXTRA_TERMS, MAX_TERMS = 20, 1000, 5000
"""With more kinks than MAX_TERMS_PER_VARIABLE · n + EXTRA_TERMS, or than MAX_TERMS, the quadratic programs cost more than the
kinks save."""
MAX_GRADIENT_ENTRIES = 4_000_000
"""The largest number of entries in the gradients of the kinks' arguments."""
MAX_TOTAL_NORM_ENTRIES = 300
"""The largest total number of entries of Euclidean norms; their programs take longer than those of other kinks."""
MAX_SOURCES = 200
"""The largest number of operations with kinks; each takes a backward pass."""
MAX_NODES = 20_000
"""Larger graphs are not read: walking through them takes as long as evaluating the function."""
LEAVES_GRAPH = "which takes values out of the graph"
UNWATCHED = "a function that cannot be inspected"
ZERO_TOLERANCE = 1e-10
"""The result up to which a square root or a norm may have a kink here."""


@dataclass(frozen=True)
class Reading:
    """The visible kinks of a function at one point."""

    gradient: Vector
    """As autograd computes it."""
    terms: Terms
    kinds: tuple[str, ...]
    """The operation of each source of terms: "abs", "amax", …"""
    hidden: tuple[str, ...]
    """Operations that may have kinks here that cannot be read; empty if the terms are complete."""
    inner_sources: tuple[frozenset[int], ...]
    """For each source, the sources whose results enter its argument."""
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    """The sources themselves."""
    assumptions: tuple[str, ...] = ()
    """The first operation that may have kinks in parts declared smooth; empty if they are known to be smooth."""
    constraints: ConstraintReading | None = None
    """The kinks of the constraints, if there are any and all are visible."""
    unread: str | None = None
    """Why the kinks of the constraints cannot be read."""

    @property
    def finite(self) -> bool:
        """Whether all values are finite."""
        terms = self.terms
        parts = (self.gradient, terms.values, terms.left, terms.right, terms.rows)
        return all(bool(np.isfinite(part).all()) for part in parts)

    def is_nested(self, near: NDArray[np.bool_]) -> bool:
        """Whether a chosen term lies within the argument of another one, so that no sum of terms describes f."""
        sources = frozenset(self.terms.sources[near].tolist())
        return any(self.inner_sources[source] & sources for source in sources)

    def gradient_with(self, shares: Vector) -> Vector:
        """The gradient of f with other slopes at the kinks, given as shares by places; NaN means autograd's slope."""
        terms = self.terms
        chosen = shares[terms.places]
        used = np.nonzero(np.isfinite(chosen))[0]
        if not len(used):
            return self.gradient
        slopes = terms.left[used] + chosen[used] * (terms.right[used] - terms.left[used])
        return self.gradient + (slopes - terms.autograd_slopes[used]) @ terms.rows[used]

    def scaled(self, objective: float, variables: Vector | None, constraints: Vector) -> Reading:
        """The reading in other units of f, the variables, and the constraints."""
        terms, units = self.terms, 1.0 if variables is None else variables
        scaled = None if self.constraints is None else self.constraints.scaled(constraints, variables)
        return replace(
            self,
            gradient=self.gradient * objective * units,
            terms=replace(
                terms,
                left=terms.left * objective,
                right=terms.right * objective,
                autograd_slopes=terms.autograd_slopes * objective,
                differentiate=lambda: terms.rows * units,
            ),
            constraints=scaled,
        )

    @property
    def share_count(self) -> int:
        """The number of shares: one for each term and one for the largest entry of each group."""
        return sum(self.terms.shape)

    def resembles(self, other: Reading) -> bool:
        """Whether both are readings of the same program, so that terms correspond."""
        return self.kinds == other.kinds and self.terms.shape == other.terms.shape

    def change(self, step: Vector) -> float:
        """The change of f that the model predicts, which is exact to first order."""
        return float(self.gradient @ step) + self.terms.change(self.terms.rows @ step)

    def slope(self, direction: Vector, *, tolerance: float = 0.0) -> float:
        """The one-sided derivative of f in a direction."""
        return float(self.gradient @ direction) + self.terms.slope(self.terms.rows @ direction, tolerance)


def read(f: Tensor, leaves: Sequence[Tensor], variables: Variables, arguments: Arguments) -> Reading:
    """Read the kinks of f from its graph, which is retained; f was evaluated within `arguments`.

    >>> variables = Variables(torch.tensor([3.0, 0.0], dtype=torch.float64))
    >>> x, leaves = variables.place(variables.start)
    >>> with Arguments() as arguments:
    ...     f = abs(x).sum() + torch.relu(x[0] - x[1])
    >>> reading = read(f, leaves, variables, arguments)
    >>> reading.kinds, reading.terms.values
    (('relu', 'abs'), array([3., 3., 0.]))
    >>> reading.slope(np.array([0.0, -1.0]))
    2.0
    """
    declared = arguments.term_nodes
    nodes = list(islice(nodes_of(f) if declared is None else declared, MAX_NODES + 1))
    sources, hidden = find_kinks(nodes, balls=_balls_pay(nodes, variables.size))
    assumptions = () if declared is None else _assumptions(f, declared, arguments)
    exit_function = arguments.first_exit(f) if declared is None and not hidden else None
    if exit_function is not None:
        hidden = [f"{exit_function}, {LEAVES_GRAPH}"]
    if hidden or not f.requires_grad:
        return unreadable(variables.size, hidden[0] if hidden else None)
    if len(sources) > MAX_SOURCES:
        return unreadable(variables.size, f"more than {MAX_SOURCES} operations with kinks")
    parts = sensitivities(f, leaves, sources)
    blocks: list[Block] = []
    kinds: list[str] = []
    numbers, balls = count(), count()
    for source, (node, sensitivity) in enumerate(zip(sources, parts[len(leaves) :], strict=True)):
        kinds.append(kind_of(node))
        if sensitivity is not None:
            try:
                with torch.enable_grad():
                    blocks += blocks_of(source, node, sensitivity, arguments, numbers, balls)
            except (Unreadable, RuntimeError) as error:  # torch raises RuntimeError if an argument was modified in place
                hidden.append(f"{kinds[-1]} ({str(error).split(':')[0]})")
    amount = sum(block.argument.numel() for block in blocks)
    if not hidden and not worth_reading(amount, variables.size):
        return unreadable(variables.size, f"{amount} kinks, too many for {variables.size} variables")
    gradient = variables.flat(
        [torch.zeros_like(leaf) if part is None else part for part, leaf in zip(parts, leaves, strict=False)]
    )
    inner_sources = inner_sources_of(sources)
    return Reading(
        np.array(gradient), terms_of(blocks, leaves, variables), tuple(kinds), tuple(dict.fromkeys(hidden)), inner_sources,
        tuple(sources), assumptions,
    )  # fmt: skip


def worth_reading(terms: int, variables: int) -> bool:
    """Whether so many kinks are worth reading.

    >>> worth_reading(1000, 5), worth_reading(2000, 5), worth_reading(2000, 3000)
    (True, False, False)
    """
    return (
        terms <= min(MAX_TERMS_PER_VARIABLE * variables + EXTRA_TERMS, MAX_TERMS) and terms * variables <= MAX_GRADIENT_ENTRIES
    )


def _balls_pay(nodes: Iterable[Node], variables: int) -> bool:
    """Whether the kinks of the Euclidean norms of a program are worth reading, with room left for other kinks."""
    entries = [amount for node in nodes if (amount := entries_in_balls(node))]
    total = sum(entries)
    return (
        total <= MAX_TOTAL_NORM_ENTRIES and len(entries) <= MAX_SOURCES // 2 and 2 * total * variables <= MAX_GRADIENT_ENTRIES
    )


def _assumptions(f: Tensor, declared: Mapping[Node, str], arguments: Arguments) -> tuple[str, ...]:
    """The first operation outside the declared terms that is not known to be smooth."""
    sources, hidden = find_kinks(node for node in nodes_of(f) if node not in declared)
    exit_function = arguments.first_exit(f)
    reasons = [*hidden, *map(kind_of, sources), *([] if exit_function is None else [f"{exit_function}, {LEAVES_GRAPH}"])]
    return tuple(reasons[:1]) if reasons or arguments.was_entered else (UNWATCHED,)


def find_kinks(nodes: Iterable[Node], *, balls: bool = False) -> tuple[list[Node], list[str]]:
    """The nodes with readable kinks, and the first operation that hides kinks.

    With `balls`, Euclidean norms of few entries are included; without, they count as smooth where they do not vanish.
    """
    sources = []
    for number, node in enumerate(nodes):
        name = node.name()
        if number == MAX_NODES:
            return [], [f"more than {MAX_NODES} operations"]
        ball = balls and entries_in_balls(node) > 0
        if name in ELEMENTWISE or name in PAIRS or name in REDUCTIONS or (name in NORMS and order_of(node) != 2.0) or ball:
            sources.append(node)
        elif name in NORMS or name in SINGULAR:
            if bool((saved(node, "result").abs() <= ZERO_TOLERANCE).any()):
                return [], [f"{SINGULAR.get(name, 'norm')} of 0"]
        elif not is_smooth(node):
            return [], [HIDING.get(name, name)]
    return sources, []


def unreadable(size: int, reason: str | None) -> Reading:
    """The reading of a function whose kinks cannot all be read, or, without a reason, of a function without kinks."""
    empty, none = np.zeros(0), np.zeros(0, dtype=np.int64)
    terms = Terms(empty, empty, empty, empty, none, none, none, none, none, lambda: np.zeros((0, size)))
    return Reading(np.zeros(size), terms, (), () if reason is None else (reason,), ())


def nodes_of(result: Tensor) -> Iterator[Node]:
    """All nodes of the graph of a result, each after a node that depends on it."""
    visited: set[Node] = set()
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in visited:
            visited.add(node)
            yield node
            waiting += [following for following, _ in node.next_functions]


def inner_sources_of(sources: Sequence[Node]) -> tuple[frozenset[int], ...]:
    """For each node, the indices of the other nodes that it depends on."""
    own = {node: 1 << place for place, node in enumerate(sources)}
    below: dict[Node, int] = {}
    waiting = list(sources)
    while waiting:
        node = waiting[-1]
        parts = [part for part, _ in node.next_functions if part is not None]
        missing = [part for part in parts if part not in below]
        if node in below or not missing:
            waiting.pop()
            below[node] = reduce(or_, (below[part] | own.get(part, 0) for part in parts), 0)
        else:
            waiting += missing
    places = range(len(sources))
    return tuple(frozenset(place for place in places if below[node] >> place & 1) for node in sources)


def _jacobian(argument: Tensor, leaves: Sequence[Tensor], variables: Variables) -> Matrix:
    """The gradients of all entries of an argument, one row each: by columns, in one batch, or one by one."""
    count = argument.numel()
    if not count or not argument.requires_grad:
        return np.zeros((count, variables.size))
    if columns_are_cheaper(count, variables.size):
        with suppress(Exception):  # not always possible; any other error is raised by the computation of rows below
            jacobian = jacobian_by_columns(argument.reshape(-1), leaves)
            if jacobian is not None:
                return jacobian.detach().to("cpu", torch.float64).numpy()
    weights = torch.eye(count, dtype=argument.dtype, device=argument.device).reshape(count, *argument.shape)
    try:
        return variables.rows(batched_backward(argument, weights, leaves), count)
    except Exception:  # an operation without a batching rule; any other error is raised again by the loop
        try:
            return np.array([variables.flat(backward([argument], [weight], leaves)) for weight in weights])
        except Exception as error:
            raise FunctionFailed(error) from error


def terms_of(blocks: Sequence[Block], leaves: Sequence[Tensor], variables: Variables) -> Terms:
    """The terms of all nodes as arrays."""
    sizes = [block.argument.numel() for block in blocks]

    def joined(parts: Sequence[Tensor]) -> Vector:
        flat = [part.detach().to("cpu", torch.float64).reshape(-1).numpy() for part in parts]
        return np.concatenate(flat) if flat else np.zeros(0)

    def differentiate() -> Matrix:
        return np.concatenate(
            [np.zeros((0, variables.size)), *(_jacobian(block.argument, leaves, variables) for block in blocks)]
        )

    groups, places, largest, first = [], [], [], 0
    for block, size in zip(blocks, sizes, strict=True):
        if block.groups is None or block.places is None or block.largest is None:
            groups.append(torch.full((size,), ALONE))
            places.append(torch.arange(first, first + size))
            first += size
        else:
            groups.append(block.groups)
            places.append(first + block.places)
            largest.append(first + block.largest)
            first += size + len(block.largest)
    return Terms(
        joined([block.argument for block in blocks]),
        joined([block.left for block in blocks]),
        joined([block.right for block in blocks]),
        joined([block.autograd_slopes for block in blocks]),
        joined(groups).astype(np.int64),
        joined(places).astype(np.int64),
        joined(largest).astype(np.int64),
        np.repeat(np.array([block.source for block in blocks], dtype=np.int64), sizes),
        joined(
            [
                torch.full((size,), ALONE) if block.balls is None else block.balls
                for block, size in zip(blocks, sizes, strict=True)
            ]
        ).astype(np.int64),
        differentiate,
    )
