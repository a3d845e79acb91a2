"""Three kinds of graph break, a recompile and a backward, with as few kernels as that takes."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, x):
        hidden = self.layer(x).relu()
        print("in forward")
        return (hidden * 3).sum()


def branching(x):
    if x.sum().item() > 1e9:
        x = x / 2
    if x.mean() > 0:
        x = x + 1
    return x


torch.manual_seed(0)
model = torch.compile(Model())
loss = model(torch.randn(4, 16))
loss.backward()
print(f"loss {loss.item():.4f}")
with torch.no_grad():
    print(f"loss {model(torch.randn(5, 16)).item():.4f}")
print(torch.compile(branching, backend="aot_eager")(torch.ones(3)).tolist())
