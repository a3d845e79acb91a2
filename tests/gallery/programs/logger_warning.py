"""A logger's warning inside the function."""

import logging

import torch

logger = logging.getLogger(__name__)


def target(x):
    y = x * 2
    if y.dim() == 2:
        logger.warning(  # <- break
            "two dimensions: %s", y.dim()
        )
    return y.relu()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {
    "fixer": "prints",
    "proven": ["Print or log only in eager mode", "Let torch ignore calls to Logger.warning"],
}
