"""Kinks of constraints that can be seen: how each constraint depends on them, and the pieces that meet at x.

A constraint c(x) = s(x) + Σ S κ(u(x)) is, near x, the largest of many linear functions where all its kinks bend it upwards: one
for each choice of sides. Which of them matter is found by looking where a step leads, not by listing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.graph import Node

from nonsmooth.evaluate.engine import batched_sensitivities
from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.blocks import Block, argument_size, blocks_of, kind_of
from nonsmooth.structure.catalog import NORMS, REDUCTIONS, Unreadable
from nonsmooth.structure.reading import (
    LEAVING,
    MOST_NUMBERS,
    MOST_SOURCES,
    enclosed,
    few_enough,
    look_through,
    nodes_of,
    terms_of,
)
from nonsmooth.structure.terms import ALONE, Terms
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Pieces(NamedTuple):
    """One linear piece of each constraint: those that meet a point, within the model at x."""

    slopes: Matrix
    """The slopes of the terms in each constraint, one row each."""
    values: Vector
    """The values of the pieces at x."""
    reached: Vector
    """The values of the model, which are those of the pieces, where the step leads."""


@dataclass(frozen=True)
class ConstraintReading:
    """What can be seen of the kinks of the constraints at one point."""

    values: Vector
    jacobian: Matrix
    """As autograd gives it."""
    terms: Terms
    """The kinks with the slopes of the operations themselves."""
    sensitivities: Matrix
    """How each constraint (a row) depends on the result of the operation that a term is of."""
    kinds: tuple[str, ...]
    inside: tuple[frozenset[int], ...]
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    inner: Mask | None = field(default=None, repr=False)
    """Terms that stay on one side, because others lie on their kinks too and enclose them."""

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        terms = self.terms
        return all(bool(np.isfinite(part).all()) for part in (self.jacobian, self.sensitivities, terms.values, terms.rows))

    def is_nested(self, near: Mask) -> bool:
        """Whether one of some terms lies within the argument of another, where no sum of terms describes a constraint."""
        sources = frozenset(self.terms.sources[near].tolist())
        return any(self.inside[source] & sources for source in sources)

    def without_inner(self, near: Mask) -> ConstraintReading:
        """The same with those of some terms on one side that lie within the arguments of others of them."""
        if not self.is_nested(near):
            return self
        sources = frozenset(self.terms.sources[near].tolist())
        enclosed_ones = frozenset().union(*(self.inside[source] & sources for source in sources))
        return replace(self, inner=near & np.isin(self.terms.sources, list(enclosed_ones)))

    def resembles(self, other: ConstraintReading) -> bool:
        """Whether both are readings of the same program, so that terms correspond."""
        return self.kinds == other.kinds and self.terms.shape == other.terms.shape

    @property
    def places(self) -> int:
        """How many places terms and the largest entries of groups have."""
        return sum(self.terms.shape)

    @cached_property
    def kinked(self) -> NDArray[np.intp]:
        """The constraints that have kinks."""
        return np.nonzero(self.sensitivities.any(axis=1))[0]

    @cached_property
    def upwards(self) -> Mask:
        """Which terms bend which constraint upwards."""
        found: Mask = self.sensitivities * (self.terms.right - self.terms.left) > 0
        return found if self.inner is None else found & ~self.inner

    @cached_property
    def sides(self) -> Vector:
        """The slopes on the side on which x is; that to the right where it is on neither."""
        terms = self.terms
        return np.where(terms.groups != ALONE, 0.0, np.where(terms.values >= 0, terms.right, terms.left))

    def sides_after(self, direction: Vector) -> Vector:
        """The slopes on the sides to which a step leads."""
        terms = self.terms
        values = terms.values + terms.rows @ direction
        slopes = np.where(values > 0, terms.right, terms.left)
        grouped = np.nonzero(terms.groups != ALONE)[0]
        if len(grouped):
            slopes[grouped] = 0.0
            order = grouped[np.argsort(-values[grouped], kind="stable")]
            _, first = np.unique(terms.groups[order], return_index=True)
            largest = order[first]
            largest = largest[values[largest] > 0]
            slopes[largest] = terms.right[largest]
        return slopes

    def pieces(self, direction: Vector, resting: Vector | None = None) -> Pieces:
        """The pieces that the constraints have after a step.

        Kinks that bend a constraint downwards have the slopes at which they are `resting`; without any, those after the step.
        """
        slopes = self.sides_after(direction)
        return self._pieces(np.where(self.upwards, slopes, slopes if resting is None else resting), direction)

    def pieces_here(self, resting: Vector) -> Pieces:
        """The pieces at x itself."""
        return self._pieces(np.where(self.upwards, self.terms.taken, resting), np.zeros(self.jacobian.shape[1]))

    def _pieces(self, slopes: Matrix, direction: Vector) -> Pieces:
        terms, along = self.terms, self.terms.rows @ direction
        values = self.values + (self.sensitivities * (slopes - self.sides)) @ terms.values
        change = self.jacobian @ direction + (self.sensitivities * (slopes - terms.taken)) @ along
        return Pieces(slopes, values, values + change)

    def rows(self, constraints: NDArray[np.intp], slopes: Matrix) -> Matrix:
        """The gradients of some constraints with other slopes of the terms, one row of slopes each."""
        changed = self.sensitivities[constraints] * (slopes - self.terms.taken)
        used = np.nonzero(changed.any(axis=0))[0]
        rows: Matrix = self.jacobian[constraints] + changed[:, used] @ self.terms.rows[used]
        return rows

    def shares(self, slopes: Matrix) -> Matrix:
        """How far slopes are from those on the left to those on the right, by places, one row each."""
        terms = self.terms
        bends = terms.right - terms.left
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(bends != 0.0, (slopes - terms.left) / bends, 0.0)
        found = np.zeros((len(slopes), self.places))
        found[:, terms.places] = parts
        grouped = terms.groups != ALONE
        if grouped.any():
            rests = np.ones((len(slopes), len(terms.largest)))
            np.subtract.at(rests.T, terms.groups[grouped], parts[:, grouped].T)
            found[:, terms.largest] = rests
        return found

    def combined(self, shares: Matrix) -> Matrix:
        """The Jacobian with other slopes at the kinks, a row of shares for each constraint; NaN keeps those of autograd."""
        terms, chosen = self.terms, shares[:, self.terms.places]
        slopes = np.where(np.isfinite(chosen), terms.left + chosen * (terms.right - terms.left), terms.taken)
        return self.rows(np.arange(len(self.values)), slopes)

    def gap(self, multipliers: Vector, shares: Matrix) -> float:
        """How far the constraints, times their multipliers, lie above what these slopes make of them."""
        terms, chosen = self.terms, shares[:, self.terms.places]
        slopes = terms.left + chosen * (terms.right - terms.left)
        below = np.where(np.isfinite(chosen), self.sensitivities * (self.sides - slopes) * terms.values, 0.0)
        return float(multipliers @ below.sum(axis=1))

    def weighted(self, multipliers: Vector, shares: Matrix) -> Vector:
        """The sum of the gradients of all constraints with multipliers and with other slopes at the kinks.

        The shares, a row for each constraint, are multiplied by its multiplier: sums of those of several pieces.
        """
        terms = self.terms
        slopes = multipliers[:, None] * (terms.left - terms.taken) + shares[:, terms.places] * (terms.right - terms.left)
        changes = (self.sensitivities * slopes).sum(axis=0)
        used = np.nonzero(changes)[0]
        gradient: Vector = multipliers @ self.jacobian + changes[used] @ terms.rows[used]
        return gradient

    def scaled(self, constraints: Vector, variables: Vector | None) -> ConstraintReading:
        """The same in other units of the constraints and of the variables."""
        terms, units = self.terms, 1.0 if variables is None else variables
        return replace(
            self,
            values=self.values * constraints,
            jacobian=self.jacobian * constraints[:, None] * units,
            sensitivities=self.sensitivities * constraints[:, None],
            terms=replace(terms, differentiate=lambda: terms.rows * units),
        )

    def among(self, places: NDArray[np.intp], values: Vector, jacobian: Matrix) -> ConstraintReading:
        """The same where these constraints stand at some places among others, which have no kinks."""
        sensitivities = np.zeros((len(values), len(self.terms)))
        sensitivities[places] = self.sensitivities
        return replace(self, values=values, jacobian=jacobian, sensitivities=sensitivities)


def read_constraints(
    c: Tensor, leaves: Sequence[Tensor], variables: Variables, arguments: Arguments
) -> ConstraintReading | str | None:
    """Read the kinks of constraints, the graph of which is kept; None where there are none, or why not all can be seen.

    >>> variables = Variables(torch.tensor([3.0, 0.0], dtype=torch.float64))
    >>> x, leaves = variables.place(variables.start)
    >>> with Arguments() as arguments:
    ...     c = torch.stack([abs(x).sum() - 1, x[1]])
    >>> reading = read_constraints(c, leaves, variables, arguments)
    >>> reading.sensitivities
    array([[1., 1.],
           [0., 0.]])
    >>> reading.pieces(np.array([0.0, -1.0])).reached
    array([ 3., -1.])
    """
    size = c.numel()
    found, hidden = look_through(nodes_of(c))
    leaving = None if hidden else arguments.leaving(c)
    if hidden or leaving is not None:
        return hidden[0] if hidden else f"{leaving}, {LEAVING}"
    if not found:
        return None
    kinds, inside = tuple(kind_of(node) for node in found), enclosed(found)
    declined = _declined(found, kinds, inside, arguments, size, variables.size)
    if declined is not None:
        return declined
    weights = torch.eye(size, dtype=c.dtype, device=c.device).reshape(size, *c.shape)
    parts = batched_sensitivities(c, weights, leaves, found)
    blocks: list[Block] = []
    columns: list[Tensor] = []
    numbers = count()
    for source, (node, sensitivity) in enumerate(zip(found, parts[len(leaves) :], strict=True)):
        if sensitivity is None:
            continue
        try:
            with torch.enable_grad():
                mine = list(blocks_of(source, node, torch.ones_like(sensitivity[0]), arguments, numbers))
                columns += _columns(source, node, sensitivity, mine, arguments)
        except (Unreadable, RuntimeError) as error:  # torch raises this where an argument was written over
            return f"{kind_of(node)} ({str(error).split(':')[0]})"
        blocks += mine
    if not any(block.argument.numel() for block in blocks):
        return None
    zero = [torch.zeros((size, *leaf.shape), dtype=leaf.dtype, device=leaf.device) for leaf in leaves]
    rows = [blank if part is None else part for blank, part in zip(zero, parts, strict=False)]
    return ConstraintReading(
        c.detach().to("cpu", torch.float64).reshape(-1).numpy().copy(),
        np.array(variables.rows(rows, size)),
        terms_of(blocks, leaves, variables),
        torch.cat(columns, dim=1).to("cpu", torch.float64).numpy(),
        kinds,
        inside,
        tuple(found),
    )


def _declined(
    found: Sequence[Node],
    kinds: Sequence[str],
    inside: Sequence[frozenset[int]],
    arguments: Arguments,
    size: int,
    variables: int,
) -> str | None:
    """Why it does not pay to read the kinks of constraints; known before anything is computed."""
    for node, kind, inner in zip(found, kinds, inside, strict=True):
        if inner and node.name() not in REDUCTIONS and node.name() not in NORMS:
            # How a constraint depends on the inner one changes with the side of the outer one: models reach not far enough.
            return f"{kinds[min(inner)]} within the argument of {kind}"
    if len(found) > MOST_SOURCES:
        return f"more than {MOST_SOURCES} operations with kinks"
    try:
        amount = sum(argument_size(node, arguments) for node in found)
    except Unreadable as error:
        return f"{kinds[0]} ({error})"
    if not few_enough(amount, variables) or max(amount, variables) * size > MOST_NUMBERS:
        return f"{amount} kinks in {size} constraints, too many for {variables} variables"
    return None


def _columns(source: int, node: Node, sensitivity: Tensor, blocks: Sequence[Block], arguments: Arguments) -> list[Tensor]:
    """For each block of a node, how the constraints depend on the number of its result that each term is of.

    Which that is shows in the slopes for a result of which each number counts as often as its own number says.
    """
    flat = sensitivity.reshape(len(sensitivity), -1)
    codes = torch.arange(1.0, flat.shape[1] + 1.0, dtype=torch.float64, device=flat.device).reshape(sensitivity.shape[1:])
    found = []
    for one, coded in zip(blocks, blocks_of(source, node, codes, arguments, count()), strict=True):
        with_right = one.right != 0
        code = torch.where(with_right, coded.right / one.right, coded.left / torch.where(with_right, 1.0, one.left))
        number = torch.nan_to_num(code, nan=1.0, posinf=1.0, neginf=1.0).round().long().reshape(-1) - 1
        found.append(flat[:, number])
    return found
