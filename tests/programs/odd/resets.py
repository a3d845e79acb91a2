"""Two functions with a reset between them: torch gives both the id 0/0."""

import torch


def first(x):
    return x.sin()


def second(x):
    print("break")
    return x.cos()


torch.compile(first, backend="eager")(torch.ones(2))
torch._dynamo.reset()
torch.compile(second, backend="eager")(torch.ones(2))
torch.compile(second, backend="eager")(torch.ones(3))
