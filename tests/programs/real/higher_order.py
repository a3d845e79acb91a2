"""Control flow as operators: cond, scan and while_loop."""

import torch
import torch_counters
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop


@torch.compile(backend="aot_eager", fullgraph=True)
def branch(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,)) + 1


@torch.compile(backend="aot_eager", fullgraph=True)
def accumulate(x):
    return scan(lambda carry, item: (carry + item, (carry * 2).clone()), torch.zeros(3), x)


@torch.compile(backend="aot_eager", fullgraph=True)
def halve(x):
    return while_loop(lambda y: y.sum() > 1, lambda y: (y / 2,), (x,))


with torch.no_grad():
    print(branch(torch.ones(3)).shape, accumulate(torch.ones(4, 3))[0].shape, halve(torch.ones(3))[0].shape)
    branch(-torch.ones(3))
torch_counters.write()
