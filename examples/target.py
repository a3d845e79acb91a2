"""A target for the command line: a module, an example input, and a further input of another size.

    compile-inspect inspect examples/target.py:target
    compile-inspect show target.inspection kernels
"""

import torch

from compile_inspect import Target

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
target = Target(model, (torch.randn(4, 8),), further=(((torch.randn(6, 8),), {}),))
