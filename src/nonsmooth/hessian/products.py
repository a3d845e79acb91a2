"""Cached inner products of long vectors, each computed once while both vectors are in use.

From one quadratic program to the next most gradients and pairs stay the same. For large n, reading them again dominates the
time; the products themselves are a few thousand numbers.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import Rows, inner_products

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Key = tuple[int, tuple[int, ...]]
Blocks = dict[Key, NDArray[np.float64]]


@dataclass
class _PairProducts:
    """The products of a block of rows with the pairs, by slot. The reference to the rows is weak."""

    owner: weakref.ref[object]
    steps: Matrix
    changes: Matrix


def _key(block: NDArray[np.float64]) -> Key:
    return block.__array_interface__["data"][0], block.shape


def _owner(block: NDArray[np.float64]) -> weakref.ref[object]:
    """The array that owns the memory of a block."""
    return weakref.ref(block if block.base is None else block.base)


class Products:
    """Products of blocks of rows with each other and with the pairs of a limited memory.

    A cached product must not depend on when it was computed, or a resumed run would differ in rounding from an uninterrupted
    one; see `inner_products`.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._stored_products: dict[Key, _PairProducts] = {}
        self._mutual: dict[tuple[Key, Key], NDArray[np.float64]] = {}
        self._changed_slots: set[int] = set()

    def mark_changed(self, slot: int) -> None:
        """Record that a slot contains a new pair."""
        self._changed_slots.add(slot)

    def clear(self) -> None:
        """Remove all products."""
        self._stored_products, self._mutual, self._changed_slots = {}, {}, set()

    def of(self, rows: Rows, steps: Matrix, changes: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Products of the pairs' steps and changes with the rows (pairs × rows), and of the rows with each other."""
        keys = [_key(block) for block in rows.blocks]
        blocks = dict(zip(keys, rows.blocks, strict=True))
        before, self._stored_products = self._stored_products, {}
        for key in blocks:
            # An address may have been reused: the data are the same only while the owner is alive.
            if key in before and before[key].owner() is not None:
                self._stored_products[key] = before[key]
        old = {key: blocks[key] for key in self._stored_products}
        fresh = {key: block for key, block in blocks.items() if key not in old}
        for key, block in fresh.items():
            count = 1 if block.ndim == 1 else len(block)
            self._stored_products[key] = _PairProducts(
                _owner(block), np.zeros((count, self._slots)), np.zeros((count, self._slots))
            )
        self._mutual = {(a, b): product for (a, b), product in self._mutual.items() if a in old and b in old}
        self._with_pairs(old, sorted(self._changed_slots), steps, changes)
        self._with_pairs(fresh, list(range(len(steps))), steps, changes)
        self._changed_slots = set()
        self._with_each_other(old, fresh)
        mutual = np.empty((len(rows), len(rows)))
        for one, part in zip(keys, rows.parts, strict=True):
            for other, beside in zip(keys, rows.parts, strict=True):
                mutual[part, beside] = self._mutual[one, other]
        stored = [self._stored_products[key] for key in keys]
        used = len(steps)
        return (
            np.concatenate([each.steps[:, :used] for each in stored]).T,
            np.concatenate([each.changes[:, :used] for each in stored]).T,
            mutual,
        )

    def _with_pairs(self, blocks: Blocks, slots: list[int], steps: Matrix, changes: Matrix) -> None:
        if not (blocks and slots):
            return
        pairs = [*(steps[slot] for slot in slots), *(changes[slot] for slot in slots)]
        for key, products in zip(blocks, inner_products(list(blocks.values()), pairs), strict=True):
            stored = self._stored_products[key]
            for slot, with_step, with_change in zip(slots, products, products[len(slots) :], strict=False):
                stored.steps[:, slot], stored.changes[:, slot] = with_step, with_change

    def _with_each_other(self, old: Blocks, fresh: Blocks) -> None:
        """All products that involve a fresh block."""
        vectors = {key: block for key, block in fresh.items() if block.ndim == 1}
        matrices = {key: block for key, block in fresh.items() if block.ndim == 2}
        self._multiply({**old, **fresh}, vectors)
        self._multiply(matrices, {key: block for key, block in old.items() if block.ndim == 1})
        for one, left in matrices.items():
            for other, right in {**old, **fresh}.items():
                if right.ndim == 2:
                    product = left @ right.T
                    self._mutual[one, other], self._mutual[other, one] = product, product.T

    def _multiply(self, lefts: Blocks, rights: Blocks) -> None:
        if not (lefts and rights):
            return
        for left, products in zip(lefts, inner_products(list(lefts.values()), list(rights.values())), strict=True):
            for right, product in zip(rights, products, strict=True):
                column = np.reshape(product, (-1, 1))
                self._mutual[left, right], self._mutual[right, left] = column, column.T
