"""The terms of a reading as rows, limits and cuts of the local model."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.structure.reading import Reading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class LocalTerms:
    """f ≈ max over cuts of (slope·d − error) + Σ limit·|u + ∇u·d|, relative to f at the point.

    Each convex term κ(u) is its middle slope times u, which the cuts hold, plus `limits` times |u|. Concave ones stay on the
    side on which they are. Where all terms belong to one maximum, its entries are cuts.
    """

    def __init__(self, reading: Reading) -> None:
        terms = reading.terms
        self._reading = reading
        convex = terms.right > terms.left
        grouped = convex & (terms.groups != ALONE)
        only = len(np.unique(terms.groups[grouped])) == 1
        self._entries = np.nonzero(grouped)[0] if only else np.zeros(0, dtype=np.intp)
        """Terms that are cuts."""
        self._used = np.nonzero(convex & ~grouped if only else convex)[0]
        self.values, self.rows = terms.values[self._used], terms.rows[self._used]
        left, right = terms.left[self._used], terms.right[self._used]
        self.limits = 0.5 * (right - left)
        slopes = terms.taken.copy()
        slopes[self._used], slopes[self._entries] = 0.5 * (left + right), 0.0
        tops = (terms.right < terms.left) & (terms.values == 0.0)
        slopes[tops] = terms.right[tops]  # that of autograd there is none: f falls on either side
        changed = np.nonzero(slopes != terms.taken)[0]
        base = reading.gradient + (slopes - terms.taken)[changed] @ terms.rows[changed]
        entries = self._entries
        self.slopes: Matrix = np.concatenate([base[None], base + terms.right[entries, None] * terms.rows[entries]])
        """Those of the cuts, that of the largest entry first."""
        self.errors = np.concatenate([[0.0], -terms.right[entries] * terms.values[entries]])
        self.start = np.clip(terms.taken[self._used] - 0.5 * (left + right), -self.limits, self.limits)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        return bool(np.isfinite(self.slopes).all() and np.isfinite(self.rows).all() and np.isfinite(self.limits).all())

    @cached_property
    def _here(self) -> float:
        return float(self.limits @ np.abs(self.values))

    def change(self, direction: Vector) -> float:
        """How Σ limit·|u| changes along a step."""
        return float(self.limits @ np.abs(self.values + self.rows @ direction)) - self._here

    def gap(self, multipliers: Vector) -> float:
        """How far the terms are above what their multipliers make of them."""
        return self._here - float(multipliers @ self.values)

    def shares(self, weights: Vector, multipliers: Vector) -> Vector:
        """Where between their slopes terms are, by places, from the weights of cuts and the multipliers of rows."""
        terms = self._reading.terms
        found = np.full(len(terms) + len(terms.largest), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[terms.places[self._used]] = 0.5 + 0.5 * np.where(self.limits > 0, multipliers / self.limits, 0.0)
        if len(self._entries):
            found[terms.places[self._entries]] = weights[1:]
            found[terms.largest] = weights[0]
        return found

    def active(self, weights: Vector, multipliers: Vector) -> NDArray[np.intp]:
        """Terms whose kinks a step goes to: their multipliers are between their limits, or several cuts share the weight."""
        inside = np.abs(multipliers) < (1.0 - 1e-9) * self.limits
        carried = self._entries[weights[1:] > 1e-9] if len(self._entries) and weights[0] > 1e-9 else np.zeros(0, dtype=np.intp)
        return np.concatenate([self._used[inside], carried])
