"""Reading of kinks: which nodes of a graph have some, at which arguments, and how f depends on them."""

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
MOST_TERMS, FEW_TERMS, ALL_TERMS = 20, 1000, 5000
"""With more kinks than so many times the variables, and so many more, or than so many at all, programs take longer than what
they save."""
MOST_NUMBERS = 4_000_000
"""Most numbers in the gradients of their arguments."""
MOST_IN_BALLS = 300
"""Most entries of Euclidean norms that are followed; their programs take longer than those of other kinks."""
MOST_SOURCES = 200
"""Operations with kinks of their own; each takes a backward pass."""
MOST_NODES = 20_000
"""In larger graphs nothing is looked for: to walk through them takes as long as to evaluate the function."""
LEAVING = "which takes values out of the graph"
UNWATCHED = "a function that cannot be watched"
NEAR_ZERO = 1e-10
"""Results of square roots and norms up to which these may have a kink here."""


@dataclass(frozen=True)
class Reading:
    """What can be seen of the kinks of a function at one point."""

    gradient: Vector
    """As autograd gives it."""
    terms: Terms
    kinds: tuple[str, ...]
    """What made each source of terms: "abs", "amax", …"""
    hidden: tuple[str, ...]
    """Operations that may have kinks here that cannot be read; none where the terms are all there is."""
    inside: tuple[frozenset[int], ...]
    """For each source those whose results enter its argument."""
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    """The sources themselves."""
    assumptions: tuple[str, ...] = ()
    """The first operation that may have kinks in parts that are given as smooth; none where these are seen to be."""
    constraints: ConstraintReading | None = None
    """The kinks of the constraints, where they have some and all can be seen."""
    unread: str | None = None
    """Why those of the constraints cannot be read."""

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        terms = self.terms
        parts = (self.gradient, terms.values, terms.left, terms.right, terms.rows)
        return all(bool(np.isfinite(part).all()) for part in parts)

    def is_nested(self, near: NDArray[np.bool_]) -> bool:
        """Whether one of some terms lies within the argument of another, where no sum of terms describes f."""
        sources = frozenset(self.terms.sources[near].tolist())
        return any(self.inside[source] & sources for source in sources)

    def combined(self, shares: Vector) -> Vector:
        """The gradient of f with other slopes at the kinks: how far from `left` to `right`, by places; NaN keeps the slope."""
        terms = self.terms
        chosen = shares[terms.places]
        used = np.nonzero(np.isfinite(chosen))[0]
        if not len(used):
            return self.gradient
        slopes = terms.left[used] + chosen[used] * (terms.right[used] - terms.left[used])
        return self.gradient + (slopes - terms.taken[used]) @ terms.rows[used]

    def scaled(self, objective: float, variables: Vector | None, constraints: Vector) -> Reading:
        """The same in other units of f, of the variables, and of the constraints."""
        terms, units = self.terms, 1.0 if variables is None else variables
        scaled = None if self.constraints is None else self.constraints.scaled(constraints, variables)
        return replace(
            self,
            gradient=self.gradient * objective * units,
            terms=replace(
                terms,
                left=terms.left * objective,
                right=terms.right * objective,
                taken=terms.taken * objective,
                differentiate=lambda: terms.rows * units,
            ),
            constraints=scaled,
        )

    @property
    def places(self) -> int:
        """How many places terms and the largest entries of groups have."""
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
    """Read the kinks of f, the graph of which is kept; `arguments` is what f was evaluated in.

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
    nodes = list(islice(nodes_of(f) if declared is None else declared, MOST_NODES + 1))
    found, hidden = look_through(nodes, balls=_balls_pay(nodes, variables.size))
    assumptions = () if declared is None else _assumptions(f, declared, arguments)
    leaving = arguments.leaving(f) if declared is None and not hidden else None
    if leaving is not None:
        hidden = [f"{leaving}, {LEAVING}"]
    if hidden or not f.requires_grad:
        return unreadable(variables.size, hidden[0] if hidden else None)
    if len(found) > MOST_SOURCES:
        return unreadable(variables.size, f"more than {MOST_SOURCES} operations with kinks")
    parts = sensitivities(f, leaves, found)
    blocks: list[Block] = []
    kinds: list[str] = []
    numbers, balls = count(), count()
    for source, (node, sensitivity) in enumerate(zip(found, parts[len(leaves) :], strict=True)):
        kinds.append(kind_of(node))
        if sensitivity is not None:
            try:
                with torch.enable_grad():
                    blocks += blocks_of(source, node, sensitivity, arguments, numbers, balls)
            except (Unreadable, RuntimeError) as error:  # torch raises this where an argument was written over
                hidden.append(f"{kinds[-1]} ({str(error).split(':')[0]})")
    amount = sum(block.argument.numel() for block in blocks)
    if not hidden and not few_enough(amount, variables.size):
        return unreadable(variables.size, f"{amount} kinks, too many for {variables.size} variables")
    gradient = variables.flat(
        [torch.zeros_like(leaf) if part is None else part for part, leaf in zip(parts, leaves, strict=False)]
    )
    inside = enclosed(found)
    return Reading(
        np.array(gradient), terms_of(blocks, leaves, variables), tuple(kinds), tuple(dict.fromkeys(hidden)), inside,
        tuple(found), assumptions,
    )  # fmt: skip


def few_enough(terms: int, variables: int) -> bool:
    """Whether it pays to know so many kinks.

    >>> few_enough(1000, 5), few_enough(2000, 5), few_enough(2000, 3000)
    (True, False, False)
    """
    return terms <= min(MOST_TERMS * variables + FEW_TERMS, ALL_TERMS) and terms * variables <= MOST_NUMBERS


def _balls_pay(nodes: Iterable[Node], variables: int) -> bool:
    """Whether it pays to follow the Euclidean norms of a program, which leaves room for its other kinks."""
    entries = [amount for node in nodes if (amount := entries_in_balls(node))]
    total = sum(entries)
    return total <= MOST_IN_BALLS and len(entries) <= MOST_SOURCES // 2 and 2 * total * variables <= MOST_NUMBERS


def _assumptions(f: Tensor, declared: Mapping[Node, str], arguments: Arguments) -> tuple[str, ...]:
    """The first operation outside of the declared ones that is not known to be smooth."""
    found, hidden = look_through(node for node in nodes_of(f) if node not in declared)
    leaving = arguments.leaving(f)
    reasons = [*hidden, *map(kind_of, found), *([] if leaving is None else [f"{leaving}, {LEAVING}"])]
    return tuple(reasons[:1]) if reasons or arguments.was_entered else (UNWATCHED,)


def look_through(nodes: Iterable[Node], *, balls: bool = False) -> tuple[list[Node], list[str]]:
    """The nodes with kinks that can be read, and the first operation that hides some.

    Euclidean norms of few entries are among them with `balls`; otherwise they are smooth where they do not vanish.
    """
    found = []
    for number, node in enumerate(nodes):
        name = node.name()
        if number == MOST_NODES:
            return [], [f"more than {MOST_NODES} operations"]
        followed = balls and entries_in_balls(node) > 0
        if name in ELEMENTWISE or name in PAIRS or name in REDUCTIONS or (name in NORMS and order_of(node) != 2.0) or followed:
            found.append(node)
        elif name in NORMS or name in SINGULAR:
            if bool((saved(node, "result").abs() <= NEAR_ZERO).any()):
                return [], [f"{SINGULAR.get(name, 'norm')} of 0"]
        elif not is_smooth(node):
            return [], [HIDING.get(name, name)]
    return found, []


def unreadable(size: int, reason: str | None) -> Reading:
    """The reading of a function of which not all kinks can be seen, or, without a reason, of one that has none."""
    empty, none = np.zeros(0), np.zeros(0, dtype=np.int64)
    terms = Terms(empty, empty, empty, empty, none, none, none, none, none, lambda: np.zeros((0, size)))
    return Reading(np.zeros(size), terms, (), () if reason is None else (reason,), ())


def nodes_of(result: Tensor) -> Iterator[Node]:
    """All nodes of the graph of a result, each after one that depends on it."""
    seen: set[Node] = set()
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [following for following, _ in node.next_functions]


def enclosed(found: Sequence[Node]) -> tuple[frozenset[int], ...]:
    """For each node those of the others that it depends on."""
    own = {node: 1 << place for place, node in enumerate(found)}
    below: dict[Node, int] = {}
    waiting = list(found)
    while waiting:
        node = waiting[-1]
        parts = [part for part, _ in node.next_functions if part is not None]
        missing = [part for part in parts if part not in below]
        if node in below or not missing:
            waiting.pop()
            below[node] = reduce(or_, (below[part] | own.get(part, 0) for part in parts), 0)
        else:
            waiting += missing
    places = range(len(found))
    return tuple(frozenset(place for place in places if below[node] >> place & 1) for node in found)


def _jacobian(argument: Tensor, leaves: Sequence[Tensor], variables: Variables) -> Matrix:
    """The gradients of all numbers of an argument, one row each: by columns, in one batch or one by one."""
    count = argument.numel()
    if not count or not argument.requires_grad:
        return np.zeros((count, variables.size))
    if columns_are_cheaper(count, variables.size):
        with suppress(Exception):  # it need not be possible; if it is something else, the rows will tell
            found = jacobian_by_columns(argument.reshape(-1), leaves)
            if found is not None:
                return found.detach().to("cpu", torch.float64).numpy()
    weights = torch.eye(count, dtype=argument.dtype, device=argument.device).reshape(count, *argument.shape)
    try:
        return variables.rows(batched_backward(argument, weights, leaves), count)
    except Exception:  # an operation without a batching rule; if it is something else, the loop will tell
        try:
            return np.array([variables.flat(backward([argument], [weight], leaves)) for weight in weights])
        except Exception as error:
            raise FunctionFailed(error) from error


def terms_of(blocks: Sequence[Block], leaves: Sequence[Tensor], variables: Variables) -> Terms:
    """The terms of all nodes as numbers."""
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
        joined([block.taken for block in blocks]),
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
