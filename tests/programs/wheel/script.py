"""A compiled function with one graph break, for `compile-inspect run`."""

import torch


@torch.compile
def step(x, weight):
    hidden = torch.relu(x @ weight)
    if hidden.mean() > 1:
        hidden = hidden / 2
    return (hidden * 0.5).sum()


torch.manual_seed(0)
weight = torch.randn(8, 8, requires_grad=True)
loss = step(torch.randn(4, 8), weight)
loss.backward()
print(f"loss {loss.item():.3f}")
