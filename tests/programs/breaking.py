"""Three kinds of graph break (print, .item(), an `if` on a tensor) and a recompile."""

import torch


class Breaking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.scale = 3

    def forward(self, x):
        hidden = self.layer(x).relu()
        print("in forward")
        if hidden.sum().item() > 1e9:
            hidden = hidden / 2
        if hidden.mean() > 0:
            hidden = hidden + 1
        return (hidden * self.scale).sum()


torch.manual_seed(0)
model = Breaking()
compiled = torch.compile(model)
for batch in (4, 5):
    loss = compiled(torch.randn(batch, 16))
    loss.backward()
    print(f"loss {loss.item():.4f}")
