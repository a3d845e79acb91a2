"""One block of a transformer: attention and an MLP, each after a normalization and around a residual."""

import torch
from torch import nn

from compile_inspect import Target

torch.manual_seed(0)


class Block(nn.Module):
    """A pre-norm block with causal attention."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens in, tokens out."""
        batch, tokens, width = x.shape
        parts = self.projection(self.before_attention(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, tokens, width))
        result: torch.Tensor = x + self.narrow(nn.functional.gelu(self.wide(self.before_mlp(x))))
        return result


block = Target(Block(), (torch.randn(4, 16, 64),))
