"""A train step: forward and loss compiled, backward in eager mode, the optimizer's step compiled by itself."""

import torch
import torch_counters

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)


@torch.compile(backend="aot_eager")
def loss_of(x):
    return net(x).square().mean()


update = torch.compile(optimizer.step, backend="aot_eager")
for _ in range(3):
    loss_of(torch.ones(2, 4)).backward()
    update()
    optimizer.zero_grad()
print("done")
torch_counters.write()
