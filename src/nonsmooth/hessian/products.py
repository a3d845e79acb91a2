"""Inner products of long vectors, each computed once as long as both are in use.

From one quadratic program to the next most gradients and pairs stay the same. Where n is large, reading them again is
what takes the time; the products themselves are a few thousand numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nonsmooth.rows import Rows, inner_products

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Key = tuple[int, tuple[int, ...]]


@dataclass
class _Known:
    """A block of rows, held so that its memory is not given to another, and its products with the pairs by slot."""

    block: NDArray[np.float64]
    steps: Matrix
    changes: Matrix


def _key(block: NDArray[np.float64]) -> Key:
    return block.__array_interface__["data"][0], block.shape


class Products:
    """Products of blocks of rows with each other and with the pairs of a limited memory.

    What is remembered must not depend on when it was computed, or a continued run would differ in rounding from one
    that was never interrupted; see `inner_products`.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._known: dict[Key, _Known] = {}
        self._mutual: dict[tuple[Key, Key], NDArray[np.float64]] = {}
        self._renewed: set[int] = set()

    def renew(self, slot: int) -> None:
        """Another pair has taken a slot."""
        self._renewed.add(slot)

    def clear(self) -> None:
        """Forget everything."""
        self._known, self._mutual, self._renewed = {}, {}, set()

    def of(self, rows: Rows, steps: Matrix, changes: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Products of the pairs' steps and changes with the rows (pairs × rows), and of the rows with each other."""
        keys = [_key(block) for block in rows.blocks]
        before, self._known = self._known, {}
        fresh = set()
        for key, block in zip(keys, rows.blocks, strict=True):
            if key in before:
                self._known[key] = before[key]
            elif key not in self._known:
                count = 1 if block.ndim == 1 else len(block)
                self._known[key] = _Known(block, np.zeros((count, self._slots)), np.zeros((count, self._slots)))
                fresh.add(key)
        old = self._known.keys() - fresh
        self._mutual = {(a, b): found for (a, b), found in self._mutual.items() if a in old and b in old}
        self._with_pairs([self._known[key] for key in old], sorted(self._renewed), steps, changes)
        self._with_pairs([self._known[key] for key in fresh], list(range(len(steps))), steps, changes)
        self._renewed = set()
        self._with_each_other(fresh)
        known = [self._known[key] for key in keys]
        mutual = np.empty((len(rows), len(rows)))
        for one, part in zip(keys, rows.parts, strict=True):
            for other, beside in zip(keys, rows.parts, strict=True):
                mutual[part, beside] = self._mutual[one, other]
        used = len(steps)
        return (
            np.concatenate([block.steps[:, :used] for block in known]).T,
            np.concatenate([block.changes[:, :used] for block in known]).T,
            mutual,
        )

    def _with_pairs(self, known: list[_Known], slots: list[int], steps: Matrix, changes: Matrix) -> None:
        if not (known and slots):
            return
        pairs = [*(steps[slot] for slot in slots), *(changes[slot] for slot in slots)]
        for each, products in zip(known, inner_products([each.block for each in known], pairs), strict=True):
            for slot, with_step, with_change in zip(slots, products, products[len(slots) :], strict=False):
                each.steps[:, slot], each.changes[:, slot] = with_step, with_change

    def _with_each_other(self, fresh: set[Key]) -> None:
        """All products in which a fresh block takes part."""
        vectors = [key for key, each in self._known.items() if each.block.ndim == 1]
        matrices = [key for key, each in self._known.items() if each.block.ndim == 2]
        new = [key for key in vectors if key in fresh]
        self._multiply([*vectors, *matrices], new)
        self._multiply([key for key in matrices if key in fresh], [key for key in vectors if key not in fresh])
        for one in matrices:
            for other in matrices:
                if (one, other) not in self._mutual:
                    product = self._known[one].block @ self._known[other].block.T
                    self._mutual[one, other], self._mutual[other, one] = product, product.T

    def _multiply(self, lefts: list[Key], rights: list[Key]) -> None:
        if not (lefts and rights):
            return
        found = inner_products([self._known[key].block for key in lefts], [self._known[key].block for key in rights])
        for left, products in zip(lefts, found, strict=True):
            for right, product in zip(rights, products, strict=True):
                column = np.reshape(product, (-1, 1))
                self._mutual[left, right], self._mutual[right, left] = column, column.T
