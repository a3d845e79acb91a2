"""Visible kinks of constraints: how each constraint depends on them, and the pieces that meet at x.

A constraint c(x) = s(x) + Σ S κ(u(x)) whose kinks are all convex is, to first order near x, a maximum of many linear functions,
one for each choice of sides. They are not enumerated; the model uses only those that steps reach.
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
from nonsmooth.structure.kink_reading import (
    LEAVES_GRAPH,
    MAX_GRADIENT_ENTRIES,
    MAX_SOURCES,
    find_kinks,
    inner_sources_of,
    nodes_of,
    terms_of,
    worth_reading,
)
from nonsmooth.structure.terms import ALONE, Terms
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Pieces(NamedTuple):
    """One linear piece of each constraint within the model at x."""

    slopes: Matrix
    """The slopes of the terms in each constraint, one row each."""
    values: Vector
    """The values of the pieces at x."""
    values_after_step: Vector
    """The values of the pieces, and of the model, after the step."""


@dataclass(frozen=True)
class ConstraintReading:
    """The visible kinks of the constraints at one point."""

    values: Vector
    jacobian: Matrix
    """As autograd computes it."""
    terms: Terms
    """The kinks, with the slopes of the operations themselves."""
    sensitivities: Matrix
    """The derivative of each constraint (a row) with respect to the result of each term's operation."""
    kinds: tuple[str, ...]
    inner_sources: tuple[frozenset[int], ...]
    nodes: tuple[Node, ...] = field(default=(), repr=False)
    inner: Mask | None = field(default=None, repr=False)
    """Terms that stay on one side because they lie within the argument of another active term."""

    @property
    def finite(self) -> bool:
        """Whether all values are finite."""
        terms = self.terms
        return all(bool(np.isfinite(part).all()) for part in (self.jacobian, self.sensitivities, terms.values, terms.rows))

    def is_nested(self, near: Mask) -> bool:
        """Whether a chosen term lies within the argument of another one, so that no sum of terms describes a constraint."""
        sources = frozenset(self.terms.sources[near].tolist())
        return any(self.inner_sources[source] & sources for source in sources)

    def without_inner(self, near: Mask) -> ConstraintReading:
        """The reading with chosen terms that lie within the arguments of other chosen terms fixed to one side."""
        if not self.is_nested(near):
            return self
        sources = frozenset(self.terms.sources[near].tolist())
        nested = frozenset().union(*(self.inner_sources[source] & sources for source in sources))
        return replace(self, inner=near & np.isin(self.terms.sources, list(nested)))

    def resembles(self, other: ConstraintReading) -> bool:
        """Whether both are readings of the same program, so that terms correspond."""
        return self.kinds == other.kinds and self.terms.shape == other.terms.shape

    @property
    def share_count(self) -> int:
        """The number of shares: one for each term and one for the largest entry of each group."""
        return sum(self.terms.shape)

    @cached_property
    def kinked_constraints(self) -> NDArray[np.intp]:
        """The constraints that have kinks."""
        return np.nonzero(self.sensitivities.any(axis=1))[0]

    @cached_property
    def convex(self) -> Mask:
        """Whether a term (a column) is convex in a constraint (a row)."""
        mask: Mask = self.sensitivities * (self.terms.right - self.terms.left) > 0
        return mask if self.inner is None else mask & ~self.inner

    @cached_property
    def slopes_at_x(self) -> Vector:
        """The slope of each term on the side where x is; the right one if x is on the kink."""
        terms = self.terms
        return np.where(terms.groups != ALONE, 0.0, np.where(terms.values >= 0, terms.right, terms.left))

    def slopes_after(self, direction: Vector) -> Vector:
        """The slope of each term on the side to which a step leads."""
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

    def pieces(self, direction: Vector, concave_slopes: Vector | None = None) -> Pieces:
        """The pieces that the constraints have after a step.

        Concave kinks have the slopes `concave_slopes`, by default those after the step.
        """
        slopes = self.slopes_after(direction)
        return self._pieces(np.where(self.convex, slopes, slopes if concave_slopes is None else concave_slopes), direction)

    def pieces_at_x(self, concave_slopes: Vector) -> Pieces:
        """The pieces that are active at x."""
        return self._pieces(np.where(self.convex, self.terms.autograd_slopes, concave_slopes), np.zeros(self.jacobian.shape[1]))

    def _pieces(self, slopes: Matrix, direction: Vector) -> Pieces:
        terms, along = self.terms, self.terms.rows @ direction
        values = self.values + (self.sensitivities * (slopes - self.slopes_at_x)) @ terms.values
        change = self.jacobian @ direction + (self.sensitivities * (slopes - terms.autograd_slopes)) @ along
        return Pieces(slopes, values, values + change)

    def rows(self, constraints: NDArray[np.intp], slopes: Matrix) -> Matrix:
        """The gradients of some constraints with other slopes of their terms, one row of slopes for each constraint."""
        changed = self.sensitivities[constraints] * (slopes - self.terms.autograd_slopes)
        used = np.nonzero(changed.any(axis=0))[0]
        rows: Matrix = self.jacobian[constraints] + changed[:, used] @ self.terms.rows[used]
        return rows

    def shares(self, slopes: Matrix) -> Matrix:
        """Slopes converted to shares (0 is the left slope, 1 the right one), one row for each row of slopes."""
        terms = self.terms
        bends = terms.right - terms.left
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(bends != 0.0, (slopes - terms.left) / bends, 0.0)
        shares = np.zeros((len(slopes), self.share_count))
        shares[:, terms.places] = parts
        grouped = terms.groups != ALONE
        if grouped.any():
            rests = np.ones((len(slopes), len(terms.largest)))
            np.subtract.at(rests.T, terms.groups[grouped], parts[:, grouped].T)
            shares[:, terms.largest] = rests
        return shares

    def jacobian_with(self, shares: Matrix) -> Matrix:
        """The Jacobian with other slopes at the kinks, a row of shares for each constraint; NaN means autograd's slope."""
        terms, chosen = self.terms, shares[:, self.terms.places]
        slopes = np.where(np.isfinite(chosen), terms.left + chosen * (terms.right - terms.left), terms.autograd_slopes)
        return self.rows(np.arange(len(self.values)), slopes)

    def gap(self, multipliers: Vector, shares: Matrix) -> float:
        """The sum of multipliers times the height of their constraints above linearizations with these slopes."""
        terms, chosen = self.terms, shares[:, self.terms.places]
        slopes = terms.left + chosen * (terms.right - terms.left)
        below = np.where(np.isfinite(chosen), self.sensitivities * (self.slopes_at_x - slopes) * terms.values, 0.0)
        return float(multipliers @ below.sum(axis=1))

    def weighted_gradient(self, multipliers: Vector, shares: Matrix) -> Vector:
        """The combination of all constraint gradients with multipliers and other slopes at the kinks.

        The shares (one row per constraint) are already multiplied by its multiplier, and summed over its pieces.
        """
        terms = self.terms
        slopes = multipliers[:, None] * (terms.left - terms.autograd_slopes) + shares[:, terms.places] * (
            terms.right - terms.left
        )
        changes = (self.sensitivities * slopes).sum(axis=0)
        used = np.nonzero(changes)[0]
        gradient: Vector = multipliers @ self.jacobian + changes[used] @ terms.rows[used]
        return gradient

    def scaled(self, constraints: Vector, variables: Vector | None) -> ConstraintReading:
        """The reading in other units of the constraints and variables."""
        terms, units = self.terms, 1.0 if variables is None else variables
        return replace(
            self,
            values=self.values * constraints,
            jacobian=self.jacobian * constraints[:, None] * units,
            sensitivities=self.sensitivities * constraints[:, None],
            terms=replace(terms, differentiate=lambda: terms.rows * units),
        )

    def extended_to(self, places: NDArray[np.intp], values: Vector, jacobian: Matrix) -> ConstraintReading:
        """The reading for a larger set of constraints, of which these have the indices `places`; the others have no kinks."""
        sensitivities = np.zeros((len(values), len(self.terms)))
        sensitivities[places] = self.sensitivities
        return replace(self, values=values, jacobian=jacobian, sensitivities=sensitivities)


def read_constraints(
    c: Tensor, leaves: Sequence[Tensor], variables: Variables, arguments: Arguments
) -> ConstraintReading | str | None:
    """Read the kinks of constraints from their graph, which is retained.

    Returns None if there are no kinks, or a string that says why they cannot be read.

    >>> variables = Variables(torch.tensor([3.0, 0.0], dtype=torch.float64))
    >>> x, leaves = variables.place(variables.start)
    >>> with Arguments() as arguments:
    ...     c = torch.stack([abs(x).sum() - 1, x[1]])
    >>> reading = read_constraints(c, leaves, variables, arguments)
    >>> reading.sensitivities
    array([[1., 1.],
           [0., 0.]])
    >>> reading.pieces(np.array([0.0, -1.0])).values_after_step
    array([ 3., -1.])
    """
    size = c.numel()
    sources, hidden = find_kinks(nodes_of(c))
    exit_function = None if hidden else arguments.first_exit(c)
    if hidden or exit_function is not None:
        return hidden[0] if hidden else f"{exit_function}, {LEAVES_GRAPH}"
    if not sources:
        return None
    kinds, inner_sources = tuple(kind_of(node) for node in sources), inner_sources_of(sources)
    reason = _reason_not_to_read(sources, kinds, inner_sources, arguments, size, variables.size)
    if reason is not None:
        return reason
    weights = torch.eye(size, dtype=c.dtype, device=c.device).reshape(size, *c.shape)
    parts = batched_sensitivities(c, weights, leaves, sources)
    blocks: list[Block] = []
    columns: list[Tensor] = []
    numbers = count()
    for source, (node, sensitivity) in enumerate(zip(sources, parts[len(leaves) :], strict=True)):
        if sensitivity is None:
            continue
        try:
            with torch.enable_grad():
                own_blocks = list(blocks_of(source, node, torch.ones_like(sensitivity[0]), arguments, numbers))
                columns += _columns(source, node, sensitivity, own_blocks, arguments)
        except (Unreadable, RuntimeError) as error:  # torch raises RuntimeError if an argument was modified in place
            return f"{kind_of(node)} ({str(error).split(':')[0]})"
        blocks += own_blocks
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
        inner_sources,
        tuple(sources),
    )


def _reason_not_to_read(
    sources: Sequence[Node],
    kinds: Sequence[str],
    inner_sources: Sequence[frozenset[int]],
    arguments: Arguments,
    size: int,
    variables: int,
) -> str | None:
    """Why the kinks of constraints are not worth reading, before anything is computed; None if they are."""
    for node, kind, inner in zip(sources, kinds, inner_sources, strict=True):
        if inner and node.name() not in REDUCTIONS and node.name() not in NORMS:
            # A constraint's sensitivity to the inner kink changes with the side of the outer one, so that a model is valid
            # only very close to x.
            return f"{kinds[min(inner)]} within the argument of {kind}"
    if len(sources) > MAX_SOURCES:
        return f"more than {MAX_SOURCES} operations with kinks"
    try:
        kink_count = sum(argument_size(node, arguments) for node in sources)
    except Unreadable as error:
        return f"{kinds[0]} ({error})"
    if not worth_reading(kink_count, variables) or max(kink_count, variables) * size > MAX_GRADIENT_ENTRIES:
        return f"{kink_count} kinks in {size} constraints, too many for {variables} variables"
    return None


def _columns(source: int, node: Node, sensitivity: Tensor, blocks: Sequence[Block], arguments: Arguments) -> list[Tensor]:
    """For each block of a node, the sensitivities of the constraints to the entry of the result that each term belongs to.

    To identify that entry, the slopes are computed a second time with the sensitivities 1, 2, 3, … of the entries.
    """
    flat = sensitivity.reshape(len(sensitivity), -1)
    codes = torch.arange(1.0, flat.shape[1] + 1.0, dtype=torch.float64, device=flat.device).reshape(sensitivity.shape[1:])
    columns = []
    for one, coded in zip(blocks, blocks_of(source, node, codes, arguments, count()), strict=True):
        with_right = one.right != 0
        code = torch.where(with_right, coded.right / one.right, coded.left / torch.where(with_right, 1.0, one.left))
        number = torch.nan_to_num(code, nan=1.0, posinf=1.0, neginf=1.0).round().long().reshape(-1) - 1
        columns.append(flat[:, number])
    return columns
