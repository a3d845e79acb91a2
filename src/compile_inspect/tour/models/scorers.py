"""Three relevance scorers for image patches: information content, salience, and the match with a query."""

import torch
from torch import nn

from compile_inspect import Target

torch.manual_seed(0)


class InformationScorer(nn.Module):
    """The entropy of a patch's features."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """One number for each patch."""
        probabilities = torch.softmax(features, dim=-1)
        logarithms = torch.log(probabilities + 1e-8)
        return -(probabilities * logarithms).sum(dim=-1)


class SalienceScorer(nn.Module):
    """Edges: the magnitude of the Sobel gradient over the grid of patches."""

    kernels: torch.Tensor

    def __init__(self, side: int = 14) -> None:
        super().__init__()
        self.side = side
        sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("kernels", torch.stack([sobel, sobel.t()]).unsqueeze(1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """One number for each patch."""
        energy = features.square().mean(dim=-1).sqrt()
        image = energy.view(-1, 1, self.side, self.side)
        slopes = nn.functional.conv2d(image, self.kernels, padding=1)
        return slopes.square().sum(dim=1).sqrt().flatten(1)


class QueryContentScorer(nn.Module):
    """The attention of a query to each patch."""

    def forward(self, query: torch.Tensor, content: torch.Tensor) -> torch.Tensor:
        """Weights that sum to one over the patches."""
        scores = torch.matmul(query, content.transpose(-2, -1))
        scores = scores / content.size(-1) ** 0.5
        return torch.softmax(scores, dim=-1)


features, query = torch.randn(8, 196, 768), torch.randn(8, 1, 768)
information = Target(InformationScorer(), (features,))
salience = Target(SalienceScorer(), (features,))
query_content = Target(QueryContentScorer(), (query, features))
