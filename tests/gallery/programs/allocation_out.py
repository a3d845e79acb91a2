"""A product written into an empty tensor, which torch resizes."""

import torch


def target(x, w):
    product = torch.empty(0)
    torch.mm(x, w, out=product)  # <- break
    return product.relu()


def inputs():
    return (torch.randn(3, 4), torch.randn(4, 2))


EXPECTED = {"fixer": "allocation", "proven": ["Assign the result to the name"]}
