"""The rows of the nodes that are alive; how many there are is not known."""

import torch


def target(nodes, alive):
    rows = torch.nonzero(alive).squeeze(1)  # <- break
    return nodes.index_select(0, rows).relu()


def inputs():
    return torch.randn(6, 4, requires_grad=True), torch.tensor([1, 0, 1, 1, 0, 1])


EXPECTED = {"fixer": "shapes", "proven": ["Let the graph contain results of unknown length"]}
