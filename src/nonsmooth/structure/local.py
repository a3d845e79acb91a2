"""The terms of a reading as rows, bounds and cuts of the local model."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.structure.kink_reading import Reading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class LocalTerms:
    """f ≈ max over cuts of (slope·d − error) + Σ limit·|u + ∇u·d| + Σ limit·‖u + ∇u·d‖₂, relative to f at the point.

    Each convex term κ(u) is its middle slope times u, which is part of the cuts, plus `limits` times |u|. Concave terms, and
    terms that are not `chosen`, are linear with the slope on the side of x. If all convex grouped terms belong to a single
    maximum, its entries are cuts. The `shares` of an earlier step warm-start the next program.
    """

    def __init__(self, reading: Reading, chosen: Mask | None = None, shares: Vector | None = None) -> None:
        terms = reading.terms
        self.reading = reading
        convex = terms.right > terms.left
        grouped = convex & (terms.groups != ALONE)
        self._single_maximum = len(np.unique(terms.groups[grouped])) == 1
        """Whether there is exactly one maximum, whose entries are cuts."""
        self.convex = convex
        """Terms that may be chosen."""
        convex = convex if chosen is None else convex & (chosen | terms.in_ball)
        self._entries = np.nonzero(convex & grouped)[0] if self._single_maximum else np.zeros(0, dtype=np.intp)
        """Terms that are cuts."""
        self._used_terms = np.nonzero(convex & ~grouped if self._single_maximum else convex)[0]
        self.values, self.rows = terms.values[self._used_terms], terms.rows[self._used_terms]
        left, right = terms.left[self._used_terms], terms.right[self._used_terms]
        self.limits = 0.5 * (right - left)
        self.balls = terms.balls[self._used_terms]
        """The ball of each row; its multipliers lie in a ball whose radius is their limit."""
        slopes = terms.autograd_slopes.copy()
        slopes[self._used_terms], slopes[self._entries] = 0.5 * (left + right), 0.0
        maxima = (terms.right < terms.left) & terms.at_kink(0.0)
        _, first = np.unique(terms.balls, return_index=True)
        maxima &= ~terms.in_ball | np.isin(np.arange(len(terms)), first)  # one entry of each norm: all directions are alike
        slopes[maxima] = terms.right[maxima]  # at a concave kink f decreases to either side, unlike with autograd's slope
        self._slopes = slopes
        changed = np.nonzero(slopes != terms.autograd_slopes)[0]
        base = reading.gradient + (slopes - terms.autograd_slopes)[changed] @ terms.rows[changed]
        entries = self._entries
        self.slopes: Matrix = np.concatenate([base[None], base + terms.right[entries, None] * terms.rows[entries]])
        """The slopes of the cuts, starting with the largest entry's."""
        self.errors = np.concatenate([[0.0], -terms.right[entries] * terms.values[entries]])
        self.start = np.clip(terms.autograd_slopes[self._used_terms] - 0.5 * (left + right), -self.limits, self.limits)
        self.weights = np.zeros(len(entries))
        """The initial weights of all cuts but the first."""
        if shares is not None:
            term_shares = shares[terms.places]
            earlier = (2.0 * term_shares[self._used_terms] - 1.0) * self.limits
            self.start = np.where(np.isfinite(earlier), earlier, self.start)
            self.weights = np.nan_to_num(term_shares[entries])

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _value_at_x(self) -> float:
        return self._sum(self.values)

    def _sum(self, values: Vector) -> float:
        """Σ limit·|u| + Σ limit·‖u‖₂ for values of u in the rows."""
        whole = np.zeros(len(self.reading.terms))
        whole[self._used_terms] = values
        return float(self.limits @ np.abs(np.where(self.balls == ALONE, values, 0.0))) + self._norms(whole)

    def _norms(self, values: Vector) -> float:
        terms = self.reading.terms
        if not terms.in_ball.any():
            return 0.0
        _, first = np.unique(terms.balls, return_index=True)
        first = first[terms.in_ball[first] & self.convex[first]]
        return float(terms.right[first] @ terms.lengths(values)[first])

    def change(self, direction: Vector) -> float:
        """The change of this sum along a step."""
        return self._sum(self.values + self.rows @ direction) - self._value_at_x

    def gap(self, multipliers: Vector) -> float:
        """How far the terms lie above their linearization with these multipliers."""
        return self._value_at_x - float(multipliers @ self.values)

    def excess(self, direction: Vector) -> Vector:
        """How far each term that is not chosen would lie above its linearization; 0 for the other terms."""
        terms = self.reading.terms
        values = terms.values + terms.rows @ direction
        along = np.where(values > 0, terms.right, terms.left) * values
        excess = along - np.where(terms.values > 0, terms.right, terms.left) * terms.values
        excess -= self._slopes * (values - terms.values)
        excess[~self.convex] = 0.0
        excess[self._used_terms] = 0.0
        if self._single_maximum:
            # An entry counts if it is above all cuts.
            entries = np.nonzero(self.convex & (terms.groups != ALONE))[0]
            cuts = np.concatenate([[0.0], terms.right[self._entries] * values[self._entries]])
            excess[entries] = np.maximum(terms.right[entries] * values[entries] - cuts.max(), 0.0)
            excess[self._entries] = 0.0
        return excess

    def shares(self, weights: Vector, multipliers: Vector) -> Vector:
        """The shares of terms, by places, from the weights of cuts and the multipliers of rows."""
        terms = self.reading.terms
        shares = np.full(len(terms) + len(terms.largest), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares[terms.places[self._used_terms]] = 0.5 + 0.5 * np.where(self.limits > 0, multipliers / self.limits, 0.0)
        if self._single_maximum:
            shares[terms.places[self.convex & (terms.groups != ALONE)]] = 0.0
            shares[terms.places[self._entries]] = weights[1:]
            shares[terms.largest[terms.groups[self.convex & (terms.groups != ALONE)][0]]] = weights[0]
        return shares
