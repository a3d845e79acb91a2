"""Garbage collected between two steps, against memory running out."""

import gc

import torch


def target(x):
    wide = x.repeat(4, 1).exp()
    narrow = wide.sum(0)
    del wide
    gc.collect()  # <- break
    return narrow.log().sum()


def inputs():
    return (torch.randn(4, 4, requires_grad=True),)


EXPECTED = {"fixer": "foreign", "proven": ["Call it only in eager mode"]}
