"""A backward inside a compiled function, where Dynamo watches everything that runs, and what it counted."""

import torch
import torch._dynamo.utils

model = torch.nn.Linear(3, 3)


@torch.compile(backend="aot_eager")
def step(x):
    loss = model(x).sin().sum()
    loss.backward()
    return loss


step(torch.ones(2, 3))
print(dict(torch._dynamo.utils.counters["frames"]), dict(torch._dynamo.utils.counters["stats"]))
