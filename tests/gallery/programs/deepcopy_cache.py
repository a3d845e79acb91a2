"""A cache of keys and values that is copied before it grows."""

import copy

import torch


def target(keys, values):
    cache = {"keys": keys, "values": values}
    longer = copy.deepcopy(cache)  # <- break
    longer["keys"] = torch.cat([longer["keys"], keys])
    return longer["keys"].sum(0) + cache["values"]


def inputs():
    return torch.randn(3, 4), torch.randn(3, 4)


EXPECTED = {"fixer": "builtins", "proven": ["Clone each tensor of the dictionary"]}
