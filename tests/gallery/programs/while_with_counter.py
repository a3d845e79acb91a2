"""Conjugate gradients, until the residual is small or patience has run out."""

import torch


def target(matrix, right):
    x = torch.zeros_like(right)
    residual = right - matrix @ x
    direction = residual * 1.0
    turns = 0
    while residual.norm() > 1e-4 and turns < 10:  # <- break
        product = matrix @ direction
        length = residual.square().sum()
        step = length / (direction @ product)
        x = x + step * direction
        residual = residual - step * product
        direction = residual + residual.square().sum() / length * direction
        turns += 1
    return x


def inputs():
    square = torch.linspace(-1.0, 1.0, 16).view(4, 4)
    return (square @ square.T + torch.eye(4), torch.linspace(1.0, 2.0, 4))


EXPECTED = {"fixer": "loops", "proven": ["Loop with while_loop"]}
