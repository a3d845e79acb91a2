"""A backbone that is frozen at every call."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        for parameter in self.backbone.parameters():
            parameter.requires_grad = False  # <- break
        return self.head(self.backbone(x).relu())


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "attributes", "proven": ["Set it once, in __init__"]}
