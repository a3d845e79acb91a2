"""As many steps of smoothing as a tensor says."""

import torch


def target(x, steps):
    for _ in range(steps.item()):  # <- break
        x = 0.5 * x + 0.25 * (x.roll(1) + x.roll(-1))
    return x


def inputs():
    return (torch.randn(8, requires_grad=True), torch.tensor(3))


EXPECTED = {"fixer": "loops", "proven": ["Loop with while_loop"]}
