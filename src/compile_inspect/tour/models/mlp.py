"""A small MLP, a simple first model for torch.compile."""

import torch
from torch import nn

from compile_inspect import Target

torch.manual_seed(0)


class Perceptron(nn.Module):
    """Two layers with a GELU between them."""

    def __init__(self, width: int = 64, hidden: int = 256, classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class probabilities."""
        hidden = nn.functional.gelu(self.first(x))
        scores = self.second(hidden)
        return torch.softmax(scores, dim=-1)


mlp = Target(Perceptron(), (torch.randn(32, 64),))
