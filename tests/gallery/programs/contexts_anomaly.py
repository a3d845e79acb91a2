"""Anomaly detection that was switched on for a search after a NaN."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        with torch.autograd.set_detect_anomaly(True):  # <- break
            hidden = self.layer(x).exp()
        return hidden.sum()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "contexts", "proven": ["Enter the context manager only in eager mode"]}
