"""A kernel of one's own in a C library, called by ctypes."""

import ctypes

import torch


def copied(x, scale=2.0):
    result = torch.empty_like(x)
    ctypes.memmove(result.data_ptr(), x.data_ptr(), x.numel() * x.element_size())  # <- break
    return result.mul_(scale)


def target(x):
    return copied(x.contiguous().exp()).sum(0)


def inputs():
    return (torch.randn(4, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Register the function as a custom operator"]}
