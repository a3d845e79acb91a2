"""A box whose corners are taken out of a tensor one by one."""

import torch


def target(points, box):
    left, top, right, bottom = box.tolist()  # <- break
    x = (points[:, 0] - left) / (right - left)
    y = (points[:, 1] - top) / (bottom - top)
    return torch.stack([x, y], dim=1)


def inputs():
    return (torch.randn(7, 2, requires_grad=True), torch.tensor([0.5, 1.0, 4.5, 3.0]))


EXPECTED = {"fixer": "scalars", "proven": ["Leave the number in its tensor, without a gradient"]}
