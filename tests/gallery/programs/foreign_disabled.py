"""A function that an older torch could not compile, and that has been left out ever since."""

import torch


@torch.compiler.disable(recursive=False)  # einsum was not supported
def attention(query, key, value):
    weights = torch.einsum("bqd,bkd->bqk", query, key).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, value)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 12)

    def forward(self, x):
        query, key, value = self.project(x).chunk(3, dim=-1)
        mixed = attention(query, key, value)  # <- break
        return mixed.mean()


target = Model()


def inputs():
    return (torch.randn(2, 3, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Compile the function with its callers"]}
