"""A warning of a library silenced around the call that gives it."""

import warnings

import torch


def target(x):
    with warnings.catch_warnings():
        # the named tensors of old
        warnings.simplefilter("ignore", category=UserWarning)  # <- break
        y = torch.nn.functional.interpolate(x, scale_factor=2.0)
    return y.square().mean()


def inputs():
    return (torch.randn(1, 2, 4, 4, requires_grad=True),)


EXPECTED = {"fixer": "contexts", "proven": ["Enter the context manager only in eager mode"]}
