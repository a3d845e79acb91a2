"""Cross entropy of the tokens with a label, as in training a masked language model."""

import torch
from torch.nn import functional


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = torch.nn.Linear(8, 11)

    def forward(self, hidden, labels):
        logits = self.decoder(hidden).view(-1, 11)
        labels = labels.view(-1)
        active = labels >= 0
        return functional.cross_entropy(logits[active], labels[active])  # <- break


target = Head()


def inputs():
    return torch.randn(2, 4, 8), torch.tensor([[3, -1, 7, -1], [-1, 0, 10, 2]])


EXPECTED = {"fixer": "shapes", "proven": ["Mark the targets outside the mask as ignored"]}
