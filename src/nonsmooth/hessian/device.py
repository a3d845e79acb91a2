"""The L-BFGS pairs on a GPU, next to the variables.

A product with all pairs reads each of them once. For a hundred pairs of a hundred thousand numbers this takes a hundredth of a
second in host memory, and a thousandth of that on a GPU. Only vectors and small matrices are transferred.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.pairs import HostPairs

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Columns = NDArray[np.float64]


class DevicePairs:
    """Like `HostPairs`, on a torch device. Rows whose products are needed are copied to the device once.

    >>> pairs = DevicePairs(2, 3, torch.device("cpu"))
    >>> pairs.put(0, np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    >>> pairs.project(np.array([1.0, 2.0, 3.0]))
    (array([7.]), array([6.]))
    """

    def __init__(self, count: int, size: int, device: torch.device) -> None:
        self._count, self._size, self._device = count, size, device
        self._both: Tensor | None = None
        """Steps and changes: 2 × slots × n."""
        self._used_slots = 0
        self._staged: Tensor | None = None
        self._copies: dict[tuple[int, tuple[int, ...]], tuple[weakref.ref[object], Tensor]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are stored in host memory, because another process may not have the device."""
        return HostPairs.of, (self._count, self._size, *self.arrays())

    def put(self, slot: int, s: Vector, y: Vector) -> None:
        """Fill a slot: the next free one, or one that is in use."""
        if self._both is None:
            self._both = torch.empty((2, self._count, self._size), dtype=torch.float64, device=self._device)
        self._both[0, slot] = self._there(s)
        self._both[1, slot] = self._there(y)
        self._used_slots = max(self._used_slots, slot + 1)

    def project(self, columns: Columns) -> tuple[Columns, Columns]:
        """Products of all steps and of all changes with a vector or columns, by slots."""
        if self._both is None:
            return np.zeros((0, *columns.shape[1:])), np.zeros((0, *columns.shape[1:]))
        products = (self._both[:, : self._used_slots] @ self._there(columns)).cpu().numpy()
        return products[0], products[1]

    def add(self, result: Columns, weights: Columns) -> Columns:
        """result + Σ weights·s + Σ weights·y, in place."""
        if self._both is None:
            return result
        used = self._used_slots
        steps, changes = self._there(weights[:used]), self._there(weights[used:])
        result += self._here(self._both[0, :used].T @ steps + self._both[1, :used].T @ changes)
        return result

    def products(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Products of steps and changes with the rows (pairs × rows), and of the rows with each other."""
        before, self._copies = self._copies, {}
        parts = []
        for block in rows.blocks:
            key = (block.__array_interface__["data"][0], block.shape)
            known = before.get(key)
            # An address may have been reused: the data are the same only while the owner is alive.
            if known is None or known[0]() is None:
                known = (weakref.ref(block if block.base is None else block.base), self._there(block))
            self._copies[key] = known
            parts.append(known[1].reshape(-1, self._size))
        matrix = torch.cat(parts)
        used = self._used_slots
        everything = matrix if self._both is None else torch.cat([self._both[0, :used], self._both[1, :used], matrix])
        products = (everything @ matrix.T).cpu().numpy()
        return products[:used], products[used : 2 * used], products[2 * used :]

    def arrays(self) -> tuple[Matrix, Matrix]:
        """Copies of the steps and the changes, by slots."""
        if self._both is None:
            return np.zeros((0, self._size)), np.zeros((0, self._size))
        both = self._both[:, : self._used_slots].cpu().numpy()
        return both[0], both[1]

    def clear(self) -> None:
        """Remove all pairs; their memory is reused."""
        self._used_slots = 0
        self._copies = {}

    def _there(self, array: NDArray[np.float64]) -> Tensor:
        """A copy on the device."""
        if array.size != self._size or self._device.type != "cuda":
            return torch.tensor(array, dtype=torch.float64, device=self._device)
        staged = self._stage()
        staged.numpy()[:] = array.reshape(-1)
        return staged.to(self._device).reshape(array.shape)

    def _here(self, tensor: Tensor) -> NDArray[np.float64]:
        """The values of a device tensor on the host, valid until the next transfer."""
        if tensor.numel() != self._size or self._device.type != "cuda":
            return tensor.cpu().numpy()
        return self._stage().copy_(tensor.reshape(-1)).numpy().reshape(tensor.shape)

    def _stage(self) -> Tensor:
        """Pinned memory: transfers are three times as fast and need no new pages."""
        if self._staged is None:
            self._staged = torch.empty(self._size, dtype=torch.float64, pin_memory=True)
        return self._staged
