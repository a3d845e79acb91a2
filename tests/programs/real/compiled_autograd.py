"""Compiled autograd: the backward of a whole step in a graph of its own."""

import torch
import torch._dynamo
import torch_counters

torch._dynamo.config.compiled_autograd = True
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


@torch.compile(backend="aot_eager")
def step(x):
    loss = net(x).sum()
    loss.backward()
    return loss


for _ in range(2):
    step(torch.ones(2, 4))
print("done")
torch_counters.write()
