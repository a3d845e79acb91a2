"""A nonsmooth problem with constraints, solved with the native library that came with the package."""

import torch

import nonsmooth
from nonsmooth.native import load


def rosenbrock(x):
    f = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    return f, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None


assert load() is not None, "the native library cannot be loaded"
result = nonsmooth.minimize(rosenbrock, torch.tensor([-1.0, 1.0], dtype=torch.float64), bounds=(-2.0, 2.0))
print(result)
assert result.status is nonsmooth.Status.STATIONARY, result.status
assert result.method == "native", result.method
assert abs(result.f - 0.0857864376) < 1e-6, result.f
