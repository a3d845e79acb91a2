"""Several processes that compile: a DataLoader with two forked workers, and a spawned process."""

import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader, Dataset


def double(x):
    return x * 2


class Doubled(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.compile(double, backend="eager")(torch.ones(2) * index)


def spawned(queue):
    queue.put(torch.compile(double, backend="eager")(torch.ones(3)).sum().item())


if __name__ == "__main__":
    torch.compile(double, backend="eager")(torch.ones(5))
    for batch in DataLoader(Doubled(), num_workers=2, batch_size=2):
        print(batch.sum().item())
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=spawned, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    sys.exit(process.exitcode)
