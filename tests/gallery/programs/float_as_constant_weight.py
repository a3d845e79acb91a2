"""A loss that is balanced by the sizes of its terms; the sizes are constants to the gradient."""

import torch


def target(prediction, goal):
    data = torch.nn.functional.mse_loss(prediction, goal)
    smoothness = (prediction[1:] - prediction[:-1]).square().mean()
    weight = float(data) / (float(smoothness) + 1e-6)  # <- break
    return data + weight * smoothness


def inputs():
    return (torch.linspace(-1.0, 1.0, 8).sin().requires_grad_(), torch.linspace(0.0, 1.0, 8))


EXPECTED = {
    "fixer": "scalars",
    "proven": ["Leave the number in its tensor, without a gradient"],
}
