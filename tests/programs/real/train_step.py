"""A whole train step compiled at once, which torch breaks in three places."""

import torch
import torch_counters

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


@torch.compile(backend="aot_eager")
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(2):
    print("loss", f"{step(torch.ones(2, 4)).item():.1f}")
torch_counters.write()
