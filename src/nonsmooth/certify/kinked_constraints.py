"""Kinks of the constraints that hold at a point, as unknowns of the search for multipliers.

A constraint with multiplier λ and kinks that bend it upwards adds λ (g + Σ σ a) to the gradients that are to cancel; its shares
σ are between 0 and 1. In λ and z = λσ this is linear, and 0 ≤ z ≤ λ. Where several entries share one maximum, the sum of their
z is at most λ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.structure import ConstraintReading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

BEYOND = 1e-9
"""By how much of λ the sum of z may exceed it."""


class KinkedConstraints:
    """The constraints that hold at a point and have kinks near it; none where constraints are not read."""

    def __init__(self, reading: ConstraintReading | None, active: Indices, near: NDArray[np.bool_], size: int) -> None:
        self._reading = reading
        self.convex = True
        """Whether all these kinks bend the constraints upwards, and none lies within the argument of another."""
        self.constraints: Indices = np.zeros(0, dtype=np.intp)
        self.rows: Matrix = np.zeros((0, size))
        """How their gradients change across the kinks."""
        self.multipliers: Vector = np.zeros(0)
        """Of the constraints, in the last solution."""
        self._columns: Matrix = np.zeros((0, size))
        if reading is None:
            return
        involved = (reading.sensitivities[active] != 0.0) & near
        self.constraints = active[involved.any(axis=1)]
        involved = involved[involved.any(axis=1)]
        used = involved.any(axis=0)
        terms, sensitivities = reading.terms, reading.sensitivities[self.constraints]
        self.convex = bool(reading.convex[self.constraints][involved].all()) and not reading.is_nested(used)
        slopes = np.where(involved, terms.left, terms.autograd_slopes)
        self._owners, self._terms = np.nonzero(involved)
        """For each z its constraint, by its place here, and its term."""
        bends = sensitivities[self._owners, self._terms] * (terms.right - terms.left)[self._terms]
        self._columns = np.concatenate([reading.rows(self.constraints, slopes), bends[:, None] * terms.rows[self._terms]])
        self.rows = self._columns[len(self.constraints) :].copy()
        groups = terms.groups[self._terms]
        cells: dict[tuple[int, int], list[int]] = {}
        for place, (owner, group) in enumerate(zip(self._owners.tolist(), groups.tolist(), strict=True)):
            cells.setdefault((owner, group if group != ALONE else -2 - place), []).append(place)
        self._cells = [(owner, members) for (owner, _), members in cells.items()]
        """Those z that are together at most λ, with the place of their constraint."""
        self._rests: list[tuple[int, int, list[int]]] = []
        """z that are what others leave of λ: the place of the constraint, their own, and those of the others."""

    def __len__(self) -> int:
        return len(self.constraints)

    @property
    def columns(self) -> Matrix:
        """Gradients, one row for each λ and then for each z that is unknown."""
        return self._columns

    def tie(self, found: Vector) -> bool:
        """Where a solution for λ and z exceeds its limit, let the largest z be what the others leave of λ; whether any does."""
        if not len(self):
            return False
        count, again = len(self), []
        for owner, members in self._cells:
            known = found[[count + member for member in members]]
            if len(members) and float(known.sum()) > (1.0 + BEYOND) * float(found[owner]):
                largest = members[int(np.argmax(known))]
                others = [member for member in members if member != largest]
                self._columns[owner] += self._columns[count + largest]
                for member in others:
                    self._columns[count + member] -= self._columns[count + largest]
                self._columns[count + largest] = 0.0
                self._rests.append((owner, largest, others))
                again.append((owner, others))
            else:
                again.append((owner, members))
        changed = len(self._rests) > 0 and again != self._cells
        self._cells = again
        return changed

    def shares(self, found: Vector) -> Matrix | None:
        """A row of shares for every constraint of the problem, NaN where no kink is near; None where no constraint has some."""
        reading = self._reading
        if reading is None or not len(self):
            return None
        count = len(self)
        self.multipliers = found[:count].copy()
        parts = found[count:].copy()
        for owner, place, others in reversed(self._rests):
            parts[place] = self.multipliers[owner] - parts[others].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.nan_to_num(np.clip(parts / self.multipliers[self._owners], 0.0, 1.0))
        terms = reading.terms
        shares = np.full((len(reading.values), reading.share_count), np.nan)
        rows = self.constraints[self._owners]
        shares[rows, terms.places[self._terms]] = known
        grouped = np.nonzero(terms.groups[self._terms] != ALONE)[0]
        for one in grouped.tolist():
            place = terms.largest[terms.groups[self._terms[one]]]
            before = shares[rows[one], place]
            shares[rows[one], place] = (1.0 if np.isnan(before) else before) - known[one]
        return shares
