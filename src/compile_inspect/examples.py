"""Built-in models for the tour and for trying things out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compile_inspect.target import Target

if TYPE_CHECKING:
    import torch


def branching_target() -> Target:
    """A model with three kinds of graph break, called with two batch sizes."""
    import torch

    torch.manual_seed(0)
    model = _branching_model()
    return Target(model, (torch.randn(4, 16),), further=(((torch.randn(5, 16),), {}),))


def mlp_target() -> Target:
    """A plain MLP: one graph, no breaks."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    return Target(model, (torch.randn(8, 16),))


def _branching_model() -> torch.nn.Module:
    import torch

    class Branching(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)
            self.scale = 3

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = self.layer(x).relu()
            print("in forward")
            if hidden.sum().item() > 1e9:
                hidden = hidden / 2
            if hidden.mean() > 0:
                hidden = hidden + 1
            return (hidden * self.scale).sum()

    return Branching()
