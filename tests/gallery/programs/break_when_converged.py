"""Power iteration that stops early."""

import torch


def target(matrix):
    vector = torch.ones(matrix.shape[0]) / matrix.shape[0] ** 0.5
    for _ in range(20):
        image = matrix @ vector
        image = image / image.norm()
        if (image - vector).abs().max() < 1e-3:  # <- break
            break
        vector = image
    return vector @ matrix @ vector


def inputs():
    square = torch.linspace(-1.0, 1.0, 16).view(4, 4)
    return (square @ square.T + torch.eye(4),)


EXPECTED = {"fixer": "loops", "proven": ["Run all iterations, without effect after the last"]}
