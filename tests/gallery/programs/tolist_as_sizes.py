"""Lengths of sequences that lie one behind the other, as sizes for a split."""

import torch


def target(packed, lengths):
    parts = torch.split(packed.sin(), lengths.tolist())  # <- break
    return torch.stack([part.sum(dim=0) for part in parts])


def inputs():
    return (torch.randn(9, 3, requires_grad=True), torch.tensor([2, 4, 3]))


EXPECTED = {"fixer": "scalars", "proven": ["Let graphs contain numbers from tensors"]}
