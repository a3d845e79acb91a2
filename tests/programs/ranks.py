"""One rank of a torchrun job."""

import os

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")


@torch.compile(backend="eager")
def double(x):
    return x * 2


value = double(torch.ones(2) * int(os.environ["RANK"]))
torch.distributed.all_reduce(value)
os.write(1, f"rank {os.environ['RANK']} {value.tolist()}\n".encode())  # one write: the ranks share a pipe
torch.distributed.destroy_process_group()
