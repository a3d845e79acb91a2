"""One compiled function that several threads call at once, each with a size of its own."""

import threading

import torch
import torch_counters


@torch.compile(backend="aot_eager", dynamic=False)
def work(x):
    return (x + 1).relu()


together = threading.Barrier(3)


def call(size: int) -> None:
    together.wait()
    for _ in range(2):
        work(torch.ones(size))


threads = [threading.Thread(target=call, args=(size,)) for size in (3, 4, 5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
torch_counters.write()
