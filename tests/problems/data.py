"""Random data of the published examples, from the seeds their reference figures were measured with.

Each function uses a generator of its own and returns float64 tensors on the CPU.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def generator(seed: int) -> torch.Generator:
    """A generator that leaves torch's global one alone; it draws what the global one would after `manual_seed`."""
    return torch.Generator().manual_seed(seed)


def output_feedback_plant(states: int = 40, inputs: int = 10, outputs: int = 20) -> tuple[Tensor, Tensor, Tensor]:
    """A, B and C of a synthetic plant, to be stabilized by u = X y."""
    draws = generator(4)
    root = math.sqrt(states)
    dynamics = torch.randn(states, states, dtype=torch.float64, generator=draws) / root
    control = torch.randn(states, inputs, dtype=torch.float64, generator=draws) / root
    measurement = torch.randn(outputs, states, dtype=torch.float64, generator=draws) / root
    return dynamics - 0.5 * torch.eye(states, dtype=torch.float64), control, measurement


def sphere_data(n: int = 300) -> tuple[Tensor, Tensor]:
    """A symmetric matrix and a starting point (n, 1), drawn in single precision."""
    draws = generator(0)
    matrix = torch.randn(n, n, generator=draws).double()
    return 0.5 * (matrix + matrix.T), torch.randn(n, 1, generator=draws).double()


def trace_data(n: int = 5, columns: int = 2) -> tuple[Tensor, Tensor]:
    """A symmetric matrix, drawn in single precision, and a starting point (n * columns, 1)."""
    matrix = torch.randn(n, n, generator=generator(0)).double()
    start = torch.randn(n * columns, 1, dtype=torch.float64, generator=generator(1))
    return (matrix + matrix.T) / 2, start


def component_data(rows: int = 3, columns: int = 4) -> Tensor:
    """The matrix that robust principal component analysis takes apart, drawn in single precision."""
    return torch.randn(rows, columns, generator=generator(1)).double()


def lasso_data(n: int = 80) -> Tensor:
    """The noisy signal (n, 1) of the generalized LASSO, drawn in single precision."""
    return torch.rand(n, 1, generator=generator(1)).double()


def dictionary_data(n: int = 30) -> tuple[Tensor, Tensor]:
    """Sparse data (n, m) with the unit vectors as its dictionary, and a starting point (n, 1) on the sphere."""
    count = 10 * n * min(n, 60)
    draws = np.random.RandomState(1)
    values, mask = (torch.special.ndtri(torch.from_numpy(draws.rand(n, count))) for _ in range(2))
    start = torch.special.ndtri(torch.from_numpy(np.random.RandomState(1).rand(n, 1)))
    return values * (mask <= 0.3), start / torch.linalg.vector_norm(start)


def flower_data() -> tuple[Tensor, Tensor]:
    """Two classes of 50 points in four dimensions, alike those of the iris data, and their labels (100, 1)."""
    draws = np.random.RandomState(3)
    first = draws.randn(50, 4) * 0.35 + [5.0, 3.4, 1.46, 0.25]
    second = draws.randn(50, 4) * 0.4 + [5.9, 2.8, 4.26, 1.3]
    points = np.vstack([first, second])
    labels = torch.cat([torch.zeros(50, 1), torch.ones(50, 1)]).double()
    return torch.from_numpy(points / points.max()), labels


def many_constraints_data(constraints: int, n: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Center (n, 1), rows (m, n), limits (m, 1) and starting point (n, 1) of the problem with many inequalities."""
    draws = generator(seed)
    center = 2 * torch.randn(n, 1, generator=draws, dtype=torch.float64)
    rows = torch.randn(constraints, n, generator=draws, dtype=torch.float64) / math.sqrt(n)
    limits = torch.rand(constraints, 1, generator=draws, dtype=torch.float64) * 0.5
    return center, rows, limits, torch.randn(n, 1, generator=draws, dtype=torch.float64)


def image_data(batch: int = 100) -> tuple[Tensor, Tensor]:
    """Noisy images (batch, 3, 32, 32) of ten prototypes, and their labels."""
    draws = generator(5)
    labels = torch.randint(0, 10, (batch,), generator=draws)
    prototypes = torch.randn(10, 3, 32, 32, generator=draws, dtype=torch.float64)
    noise = torch.randn(batch, 3, 32, 32, generator=draws, dtype=torch.float64)
    return 0.5 * prototypes[labels] + 0.5 * noise, labels


def sequence_data(batch: int = 50, length: int = 14, width: int = 14) -> tuple[Tensor, Tensor]:
    """Noisy sequences (batch, length, width) of ten prototypes, and their labels."""
    draws = generator(6)
    labels = torch.randint(0, 10, (batch,), generator=draws)
    prototypes = torch.rand(10, length, width, generator=draws, dtype=torch.float64)
    return prototypes[labels] + 0.3 * torch.randn(batch, length, width, generator=draws, dtype=torch.float64), labels
