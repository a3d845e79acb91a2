"""The terms of a reading as rows, limits and cuts of the local model."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.structure.reading import Reading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class LocalTerms:
    """f ≈ max over cuts of (slope·d − error) + Σ limit·|u + ∇u·d| + Σ limit·‖u + ∇u·d‖₂, relative to f at the point.

    Each convex term κ(u) is its middle slope times u, which the cuts hold, plus `limits` times |u|. Concave ones, and those
    that are not `chosen`, stay on the side on which they are. Where all convex terms of groups belong to one maximum, its
    entries are cuts. With the `shares` of an earlier step the next program begins at its answer.
    """

    def __init__(self, reading: Reading, chosen: Mask | None = None, shares: Vector | None = None) -> None:
        terms = reading.terms
        self.reading = reading
        convex = terms.right > terms.left
        grouped = convex & (terms.groups != ALONE)
        self._only = len(np.unique(terms.groups[grouped])) == 1
        """Whether there is one maximum, the entries of which are cuts."""
        self.bending = convex
        """Terms that may be chosen."""
        convex = convex if chosen is None else convex & (chosen | terms.round)
        self._entries = np.nonzero(convex & grouped)[0] if self._only else np.zeros(0, dtype=np.intp)
        """Terms that are cuts."""
        self._used = np.nonzero(convex & ~grouped if self._only else convex)[0]
        self.values, self.rows = terms.values[self._used], terms.rows[self._used]
        left, right = terms.left[self._used], terms.right[self._used]
        self.limits = 0.5 * (right - left)
        self.balls = terms.balls[self._used]
        """The balls of rows, the multipliers of which lie in balls of the size of their limits."""
        slopes = terms.taken.copy()
        slopes[self._used], slopes[self._entries] = 0.5 * (left + right), 0.0
        tops = (terms.right < terms.left) & terms.at_kink(0.0)
        _, first = np.unique(terms.balls, return_index=True)
        tops &= ~terms.round | np.isin(np.arange(len(terms)), first)  # one entry of each norm: f falls as steeply along any
        slopes[tops] = terms.right[tops]  # that of autograd there is none: f falls on either side
        self._slopes = slopes
        changed = np.nonzero(slopes != terms.taken)[0]
        base = reading.gradient + (slopes - terms.taken)[changed] @ terms.rows[changed]
        entries = self._entries
        self.slopes: Matrix = np.concatenate([base[None], base + terms.right[entries, None] * terms.rows[entries]])
        """Those of the cuts, that of the largest entry first."""
        self.errors = np.concatenate([[0.0], -terms.right[entries] * terms.values[entries]])
        self.start = np.clip(terms.taken[self._used] - 0.5 * (left + right), -self.limits, self.limits)
        self.weights = np.zeros(len(entries))
        """Of the cuts but the first, to begin with."""
        if shares is not None:
            known = shares[terms.places]
            earlier = (2.0 * known[self._used] - 1.0) * self.limits
            self.start = np.where(np.isfinite(earlier), earlier, self.start)
            self.weights = np.nan_to_num(known[entries])

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _here(self) -> float:
        return self._sum(self.values)

    def _sum(self, values: Vector) -> float:
        """Σ limit·|u| + Σ limit·‖u‖₂ for values of u in the rows."""
        whole = np.zeros(len(self.reading.terms))
        whole[self._used] = values
        return float(self.limits @ np.abs(np.where(self.balls == ALONE, values, 0.0))) + self._norms(whole)

    def _norms(self, values: Vector) -> float:
        terms = self.reading.terms
        if not terms.round.any():
            return 0.0
        _, first = np.unique(terms.balls, return_index=True)
        first = first[terms.round[first] & self.bending[first]]
        return float(terms.right[first] @ terms.lengths(values)[first])

    def change(self, direction: Vector) -> float:
        """How this sum changes along a step."""
        return self._sum(self.values + self.rows @ direction) - self._here

    def gap(self, multipliers: Vector) -> float:
        """How far the terms are above what their multipliers make of them."""
        return self._here - float(multipliers @ self.values)

    def excess(self, direction: Vector) -> Vector:
        """How far each term that is not chosen would be above the side on which it stays; 0 for the others."""
        terms = self.reading.terms
        values = terms.values + terms.rows @ direction
        along = np.where(values > 0, terms.right, terms.left) * values
        found = along - np.where(terms.values > 0, terms.right, terms.left) * terms.values
        found -= self._slopes * (values - terms.values)
        found[~self.bending] = 0.0
        found[self._used] = 0.0
        if self._only:
            # An entry counts where it is above all cuts.
            entries = np.nonzero(self.bending & (terms.groups != ALONE))[0]
            cuts = np.concatenate([[0.0], terms.right[self._entries] * values[self._entries]])
            found[entries] = np.maximum(terms.right[entries] * values[entries] - cuts.max(), 0.0)
            found[self._entries] = 0.0
        return found

    def shares(self, weights: Vector, multipliers: Vector) -> Vector:
        """Where between their slopes terms are, by places, from the weights of cuts and the multipliers of rows."""
        terms = self.reading.terms
        found = np.full(len(terms) + len(terms.largest), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[terms.places[self._used]] = 0.5 + 0.5 * np.where(self.limits > 0, multipliers / self.limits, 0.0)
        if self._only:
            found[terms.places[self.bending & (terms.groups != ALONE)]] = 0.0
            found[terms.places[self._entries]] = weights[1:]
            found[terms.largest[terms.groups[self.bending & (terms.groups != ALONE)][0]]] = weights[0]
        return found
