"""A target for the command line: a module, an example input, and a further input of another size.

The command compiles the module, runs it with both inputs, forward and backward, and writes target.inspection.

    compile-inspect inspect examples/target.py:target
    compile-inspect show target.inspection kernels
"""

import torch

from compile_inspect import Target


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.layer(x)).sum()


torch.manual_seed(0)
target = Target(Model(), (torch.randn(4, 8),), further=(((torch.randn(6, 8),), {}),))
