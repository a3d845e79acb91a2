"""FSDP2 in two processes: the sharded model compiled from outside, or (with `inside`) each layer compiled, then sharded."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch_counters
from torch.distributed.fsdp import fully_shard


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * 2


def work(rank: int, port: str, inside: bool) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = Model()
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for layer in model.layers:
        if inside:
            layer.compile(backend="aot_eager")
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if not inside:
        model.compile(backend="aot_eager")
    for _ in range(2):
        model(torch.ones(4, 8)).square().mean().backward()
    torch_counters.write(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], "inside" in sys.argv), nprocs=2)
