"""DistributedDataParallel in two processes: compiled from outside, or (with `inside`) the model compiled and then wrapped."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch_counters
from torch.nn.parallel import DistributedDataParallel


def work(rank: int, port: str, inside: bool) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    if inside:
        model = DistributedDataParallel(torch.compile(net, backend="aot_eager"))
    else:
        model = torch.compile(DistributedDataParallel(net), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
    torch_counters.write(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], "inside" in sys.argv), nprocs=2)
