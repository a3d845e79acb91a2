"""A graph's adjacency as a sparse matrix, made in the forward."""

import torch


def target(x, edges, weights):
    adjacency = torch.sparse_coo_tensor(edges, weights, (4, 4))  # <- break
    return torch.sparse.mm(adjacency, x)  # <- break


def inputs():
    return (torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.rand(3))


EXPECTED = {"fixer": "allocation"}
