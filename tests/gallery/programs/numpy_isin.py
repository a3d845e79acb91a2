"""Tokens that are special ones, found with numpy."""

import numpy as np
import torch

SPECIAL = np.array([0, 1, 2])


def target(embeddings, tokens):
    special = torch.from_numpy(np.isin(tokens.numpy(), SPECIAL))  # <- break
    return embeddings.masked_fill(special.unsqueeze(-1), 0.0).sum(1)


def inputs():
    return torch.randn(2, 5, 3, requires_grad=True), torch.tensor([[0, 7, 4, 1, 2], [5, 0, 9, 3, 1]])


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.isin with functions that torch translates"]}
