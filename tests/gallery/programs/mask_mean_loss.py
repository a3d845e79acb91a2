"""A mean over the tokens that are no padding."""

import torch


class MaskedLoss(torch.nn.Module):
    def __init__(self, padding):
        super().__init__()
        self.padding = padding

    def forward(self, losses, tokens):
        mask = tokens != self.padding
        return losses[mask].mean()  # <- break


target = MaskedLoss(0)


def inputs():
    tokens = torch.tensor([[5, 3, 8, 0, 0], [4, 9, 0, 0, 0], [2, 2, 6, 7, 0]])
    return torch.randn(3, 5, requires_grad=True), tokens


EXPECTED = {"fixer": "shapes", "proven": ["Put neutral values where the mask is false"]}
