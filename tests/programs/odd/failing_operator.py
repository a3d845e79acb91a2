"""An error inside torch's tracing, whose traceback torch keeps."""

import torch


@torch.library.custom_op("odd::operator", mutates_args=())
def operator(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@operator.register_fake
def _(x):
    raise RuntimeError("the fake raises")


@torch.compile(backend="eager")
def program(x):
    return operator(x) + 1


program(torch.ones(2))
