"""Activations saved on the way, to compare them with another implementation."""

import os

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        torch.save(hidden, os.devnull)  # <- break
        return hidden.relu()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Call it only in eager mode"]}
