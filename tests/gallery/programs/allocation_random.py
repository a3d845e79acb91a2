"""Negative samples drawn in place, as the older functions wanted it."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, positive):
        negative = torch.empty_like(positive).random_(10)  # <- break
        return (self.table(positive) * self.table(negative)).sum(-1).sigmoid()


target = Model()


def inputs():
    return (torch.arange(6),)


EXPECTED = {"fixer": "allocation", "proven": ["Draw the integers with torch.randint_like"]}
