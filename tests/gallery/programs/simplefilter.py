"""Warnings switched off around an operation."""

import warnings

import torch


def target(x):
    y = x.sin()
    warnings.simplefilter("ignore")  # <- break
    return y.std().nan_to_num()


def inputs():
    return (torch.randn(5, requires_grad=True),)


EXPECTED = {"fixer": "builtins", "proven": ["Do it only in eager mode"]}
