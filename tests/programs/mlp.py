"""An MLP, forward and backward: one graph, no break."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
compiled = torch.compile(model)
loss = compiled(torch.randn(8, 16)).square().mean()
loss.backward()
print(f"loss {loss.item():.6f}")
print(f"gradient {model[0].weight.grad.norm().item():.6f}")
