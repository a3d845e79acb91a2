"""A whole training step compiled as one function."""

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)


def target(x):
    optimizer.zero_grad()  # <- break
    loss = model(x).square().mean()
    loss.backward()  # <- break
    optimizer.step()  # <- break
    return loss.detach()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {
    "fixer": "training",
    "proven": ["Reset the gradients with the model"],
    "withdrawn": ["Let torch trace the backward pass too"],  # the optimizer's step still ends the graph
}
