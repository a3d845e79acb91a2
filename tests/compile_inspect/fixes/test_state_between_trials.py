"""What calls change, such as running means, is put back between trials: else a right fix would be withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from compile_inspect.fixes.planning import try_proposals
from compile_inspect.fixes.trial_runner import TrialRunner
from conftest import quick_first

HEAD = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
TAIL = "\n\ntorch.manual_seed(0)\nnet = Net()\ninputs = (torch.randn(4, 8),)\n"
PROGRAMS = {
    "batch norm": (
        "        self.norm = nn.BatchNorm1d(8)\n\n    def forward(self, x):\n        y = self.norm(x)\n        print('y')\n"
        "        return y.relu()\n"
    ),
    "moving average": (
        "        self.register_buffer('mean', torch.zeros(8))\n\n    def forward(self, x):\n"
        "        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)\n        print('mean')\n        return x - self.mean\n"
    ),
    "counter": (
        "        self.register_buffer('calls', torch.zeros(()))\n\n    def forward(self, x):\n        self.calls += 1\n"
        "        print('called')\n        return x * self.calls\n"
    ),
    "history": (
        "        self.register_buffer('last', torch.zeros(4, 8))\n\n    def forward(self, x):\n"
        "        y = x + 0.5 * self.last\n        self.last.copy_(y.detach())\n        print('y')\n        return y\n"
    ),
    "number of calls": (
        "        self.calls = 0\n\n    def forward(self, x):\n        self.calls += 1\n        print('called')\n"
        "        return x * self.calls\n"
    ),
}


@pytest.mark.parametrize("name", quick_first(PROGRAMS, 3))
@pytest.mark.parametrize("seconds", [0.0, pytest.param(0.02, marks=pytest.mark.slow)], ids=["not timed", "timed"])
def test_a_fix_of_a_module_that_changes_itself_is_proven(tmp_path: Path, name: str, seconds: float) -> None:
    file = tmp_path / f"changes_itself_{name.replace(' ', '_')}.py"
    file.write_text(HEAD + PROGRAMS[name] + TAIL)
    runner = TrialRunner(f"{file}:net", f"{file}:inputs", backend="eager", seconds=seconds)
    (finding,) = try_proposals(runner)
    assert finding.best_proposal is not None, finding.trials
    assert (runner.fullgraph_failure(finding.best_proposal) is None) is (
        name != "number of calls"
    )  # which is compiled again at every call
