"""Train a small network with orthogonal weight matrices, enforced by equalities instead of a penalty.

An orthogonal layer preserves lengths. A network of such layers and tanh therefore moves its output by no more than its
input moves, and the class changes only if the input moves by the margin. The usual penalty on the deviation comes close to
that; equalities achieve it up to rounding. The run with equalities starts where the penalty ended: it shows what you can
add to an ordinary training run, not which of the two is faster from the start.

    python examples/train_with_orthogonal_weights.py
"""

import math

import torch
from torch.nn.functional import softplus

from nonsmooth import minimize

WIDTH = 8


class Network(torch.nn.Module):
    """Two layers with orthonormal columns, and an output of length 1: no layer stretches anything."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, WIDTH, dtype=torch.float64)
        self.second = torch.nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
        self.output = torch.nn.Linear(WIDTH, 1, dtype=torch.float64)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        return self.output(torch.tanh(self.second(hidden))).squeeze(-1)

    def deviations(self):
        """How far each matrix is from orthogonal; symmetric, so each entry once."""
        parts = []
        for matrix in (self.first.weight, self.second.weight, self.output.weight.T):
            products = matrix.T @ matrix - torch.eye(matrix.shape[1], dtype=matrix.dtype)
            rows, columns = torch.triu_indices(*products.shape)
            parts.append(products[rows, columns])
        return torch.cat(parts)


def draw(count, seed):
    """Two interlocking half circles."""
    generator = torch.Generator().manual_seed(seed)
    angles = math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
    labels = torch.arange(count) % 2
    sign = (1 - 2 * labels).double()
    points = torch.stack([sign * angles.cos() + labels, sign * angles.sin() + 0.5 * labels], dim=1)
    return 2 * points + 0.2 * torch.randn(count, 2, generator=generator, dtype=torch.float64), sign


def loss(model, points, signs):
    """The logistic loss. The outputs are bounded, so a factor makes the loss as steep as growing weights would."""
    return softplus(-8 * signs * model(points)).mean()


def show(name, model, points, signs):
    with torch.no_grad():
        accuracy = (model(points) * signs > 0).double().mean().item()
        deviation = model.deviations().abs().max().item()
        stretch = math.prod(torch.linalg.matrix_norm(layer.weight, ord=2).item() for layer in model.children())
    print(
        f"{name:12} loss {loss(model, points, signs).item():.5f}  accuracy {accuracy:.3f}"
        f"  deviation {deviation:.1e}  stretches by at most {stretch:.7f}"
    )


def with_penalty(model, points, signs, weight=1.0, steps=500):
    """The usual method: Adam, with the squared deviations added to the loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        (loss(model, points, signs) + weight * model.deviations().square().sum()).backward()
        optimizer.step()


def main():
    points, signs = draw(120, seed=1)
    torch.manual_seed(0)
    model = Network()
    show("start", model, points, signs)
    with_penalty(model, points, signs)
    show("penalty", model, points, signs)

    result = minimize(lambda model: (loss(model, points, signs), None, model.deviations()), model)
    show("equalities", model, points, signs)
    print()
    print(result)


if __name__ == "__main__":
    main()
