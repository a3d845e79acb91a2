"""Kinks of the active constraints at a point, as unknowns in the search for multipliers.

A constraint with multiplier λ and convex kinks adds λ (g + Σ σ a) to the gradients that must cancel; its shares σ are between 0
and 1. This is linear in λ and z = λσ, with 0 ≤ z ≤ λ. If several entries share one maximum, the sum of their z is at most λ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.structure import ConstraintReading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

RELATIVE_EXCESS = 1e-9
"""The sum of z may exceed λ by this fraction of λ."""


class KinkedConstraints:
    """The active constraints at a point that have kinks near it; empty if constraints are not read."""

    def __init__(self, reading: ConstraintReading | None, active: Indices, near: NDArray[np.bool_], size: int) -> None:
        self._reading = reading
        self.convex = True
        """Whether all these kinks are convex and none is within the argument of another."""
        self.constraints: Indices = np.zeros(0, dtype=np.intp)
        self.rows: Matrix = np.zeros((0, size))
        """The changes of their gradients across the kinks."""
        self.multipliers: Vector = np.zeros(0)
        """The multipliers of the constraints in the last solution."""
        self._columns: Matrix = np.zeros((0, size))
        if reading is None:
            return
        involved = (reading.sensitivities[active] != 0.0) & near
        self.constraints = active[involved.any(axis=1)]
        involved = involved[involved.any(axis=1)]
        involved_terms = involved.any(axis=0)
        terms, sensitivities = reading.terms, reading.sensitivities[self.constraints]
        self.convex = bool(reading.convex[self.constraints][involved].all()) and not reading.is_nested(involved_terms)
        slopes = np.where(involved, terms.left, terms.autograd_slopes)
        self._owners, self._terms = np.nonzero(involved)
        """For each z the index of its constraint in `constraints`, and its term."""
        bends = sensitivities[self._owners, self._terms] * (terms.right - terms.left)[self._terms]
        self._columns = np.concatenate([reading.rows(self.constraints, slopes), bends[:, None] * terms.rows[self._terms]])
        self.rows = self._columns[len(self.constraints) :].copy()
        groups = terms.groups[self._terms]
        cells: dict[tuple[int, int], list[int]] = {}
        for index, (owner, group) in enumerate(zip(self._owners.tolist(), groups.tolist(), strict=True)):
            cells.setdefault((owner, group if group != ALONE else -2 - index), []).append(index)
        self._cells = [(owner, members) for (owner, _), members in cells.items()]
        """Groups of z whose sum is at most λ, with the index of their constraint."""
        self._rests: list[tuple[int, int, list[int]]] = []
        """Each z that equals λ minus others: the index of the constraint, of this z, and of the others."""

    def __len__(self) -> int:
        return len(self.constraints)

    @property
    def columns(self) -> Matrix:
        """Gradients, one row for each λ and then one for each unknown z."""
        return self._columns

    def tie(self, solution: Vector) -> bool:
        """In groups where a solution for λ and z exceeds λ, replace the largest z by λ minus the others; whether any did."""
        if not len(self):
            return False
        count, cells = len(self), []
        for owner, members in self._cells:
            values = solution[[count + member for member in members]]
            if len(members) and float(values.sum()) > (1.0 + RELATIVE_EXCESS) * float(solution[owner]):
                largest = members[int(np.argmax(values))]
                others = [member for member in members if member != largest]
                self._columns[owner] += self._columns[count + largest]
                for member in others:
                    self._columns[count + member] -= self._columns[count + largest]
                self._columns[count + largest] = 0.0
                self._rests.append((owner, largest, others))
                cells.append((owner, others))
            else:
                cells.append((owner, members))
        changed = len(self._rests) > 0 and cells != self._cells
        self._cells = cells
        return changed

    def shares(self, solution: Vector) -> Matrix | None:
        """A row of shares for every constraint of the problem, NaN where no kink is near; None if no kink of any is near."""
        reading = self._reading
        if reading is None or not len(self):
            return None
        count = len(self)
        self.multipliers = solution[:count].copy()
        parts = solution[count:].copy()
        for owner, index, others in reversed(self._rests):
            parts[index] = self.multipliers[owner] - parts[others].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.nan_to_num(np.clip(parts / self.multipliers[self._owners], 0.0, 1.0))
        terms = reading.terms
        shares = np.full((len(reading.values), reading.share_count), np.nan)
        rows = self.constraints[self._owners]
        shares[rows, terms.places[self._terms]] = values
        group_members = np.nonzero(terms.groups[self._terms] != ALONE)[0]
        for member in group_members.tolist():
            place = terms.largest[terms.groups[self._terms[member]]]
            before = shares[rows[member], place]
            shares[rows[member], place] = (1.0 if np.isnan(before) else before) - values[member]
        return shares
