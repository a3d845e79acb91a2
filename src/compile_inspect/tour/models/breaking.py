"""Models that break the graph, each in one of the most common ways."""

import torch
from torch import nn

from compile_inspect import Target

torch.manual_seed(0)


class Chatty(nn.Module):
    """Prints while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.second = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two layers, with a print between them."""
        hidden = torch.relu(self.first(x))
        print("halfway")
        result: torch.Tensor = self.second(hidden)
        return result


class Branching(nn.Module):
    """Branches on a value that is known only at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer, halved where its mean is positive."""
        hidden = self.layer(x)
        if hidden.mean() > 0:
            hidden = hidden / 2
        result: torch.Tensor = hidden + 1
        return result


class Peeking(nn.Module):
    """Reads a number from a tensor and computes with it in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer, scaled by its largest entry."""
        hidden = self.layer(x)
        largest = hidden.abs().max().item()
        result: torch.Tensor = hidden / (largest + 1.0)
        return result


chatty = Target(Chatty(), (torch.randn(8, 16),))
branching = Target(Branching(), (torch.randn(8, 16),))
peeking = Target(Peeking(), (torch.randn(8, 16),))
