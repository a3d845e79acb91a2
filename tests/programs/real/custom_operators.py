"""Operators of the program's own: one that computes, and one that changes its argument."""

import torch
import torch_counters


@torch.library.custom_op("real_programs::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x, factor):
    return torch.empty_like(x)


@torch.library.custom_op("real_programs::add_one", mutates_args={"x"})
def add_one(x: torch.Tensor) -> None:
    x += 1


@torch.compile(backend="aot_eager")
def known(x):
    return scaled(x.sin(), 2.0).cos()


@torch.compile(backend="aot_eager")
def changing(x):
    y = x.sin()
    add_one(y)
    return y.cos()


print(known(torch.ones(3)).shape, changing(torch.ones(3)).shape)
torch_counters.write()
