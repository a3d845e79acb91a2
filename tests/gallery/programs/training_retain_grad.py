"""Grad-CAM: the gradient of a feature map in the middle of the network is to be looked at."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(2, 3)

    def forward(self, x):
        maps = self.features(x).relu()
        if maps.requires_grad:
            maps.retain_grad()  # <- break
        return self.head(maps.mean((2, 3)))


target = Model()


def inputs():
    return (torch.randn(2, 1, 8, 8),)


EXPECTED = {"fixer": "training", "proven": ["Retain the gradient only in eager mode"]}
