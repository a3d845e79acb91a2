"""A seed made from a name by a function written in C."""

import zlib

import torch


def target(x):
    slot = zlib.crc32(b"attention.0.query") % 4  # <- break
    return x[:, slot].sin().sum()


def inputs():
    return (torch.randn(4, 4, requires_grad=True),)


EXPECTED = {"fixer": "foreign", "proven": ["Call zlib.crc32 once, outside the function"]}
