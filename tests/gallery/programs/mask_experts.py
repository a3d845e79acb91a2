"""Rows sent to one of several experts, as in a mixture of experts without a router of its own."""

import torch


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        chosen = x[:, :3].argmax(1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mask = chosen == number
            out[mask] = expert(x[mask])  # <- break
        return out


target = Experts()


def inputs():
    return (torch.randn(9, 4),)


EXPECTED = {
    "fixer": "shapes",
    "proven": ["Choose between new and old values with torch.where, row by row"],
    "withdrawn": ["Choose between new and old values with torch.where"],
}
