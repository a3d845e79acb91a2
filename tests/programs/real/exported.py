"""torch.export, and the exported program compiled ahead of time by AOTInductor."""

import tempfile
from pathlib import Path

import torch
import torch_counters


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x)).sum(-1)


x = torch.randn(4, 8)
with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
    program = torch.export.export(Model().eval(), (x,))
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(Path(folder) / "model.pt2"))
    print(tuple(torch._inductor.aoti_load_package(package)(x).shape))
torch_counters.write()
