"""The workloads that variants are measured on, for any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from compile_inspect import Target


class InformationScorer(nn.Module):
    """Entropy of the softmax of every feature vector."""

    def forward(self, features: Tensor) -> Tensor:
        probabilities = torch.softmax(features, dim=-1)
        return -(probabilities * torch.log(probabilities + 1e-8)).sum(dim=-1)


class SalienceScorer(nn.Module):
    """Edge strength by Sobel filters, plus local contrast."""

    def __init__(self) -> None:
        super().__init__()
        across = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("filters", torch.stack([across, across.T])[:, None])

    def forward(self, image: Tensor) -> Tensor:
        edges = nn.functional.conv2d(image, self.filters, padding=1)
        mean = nn.functional.avg_pool2d(image, 3, stride=1, padding=1)
        contrast = (image - mean).square()
        return (edges.square().sum(1, keepdim=True) + 1e-6).sqrt() + contrast


class QueryContentScorer(nn.Module):
    """Scaled dot products of a query with content, as probabilities."""

    def forward(self, query: Tensor, content: Tensor) -> Tensor:
        return torch.softmax(query @ content.transpose(-2, -1) / content.shape[-1] ** 0.5, dim=-1)


def pointwise(x: Tensor) -> Tensor:
    """Sixty pointwise operations."""
    for _ in range(20):
        x = torch.tanh(x * 1.01 + 0.1)
    return x


def mlp(device: str) -> nn.Module:
    """256-512-512-10."""
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)


def dictionary(device: str, n: int = 30, count: int = 9000) -> Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Values and Jacobian of dictionary learning, as a solver needs them: ‖qᵀY‖₁/m and qᵀq − 1, each differentiated."""
    data = torch.randn(n, count, dtype=torch.float64, device=device)

    def objective(q: Tensor) -> Tensor:
        return (q @ data).abs().sum() / count

    def constraint(q: Tensor) -> Tensor:
        return q @ q - 1

    def values_and_jacobian(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gradient, value = torch.func.grad_and_value(objective)(q)
        normal, violation = torch.func.grad_and_value(constraint)(q)
        return value, violation, torch.stack([gradient, normal])

    return values_and_jacobian


def encoder_step(device: str) -> Target:
    """A transformer encoder layer, 256 wide, forward and backward."""
    layer = nn.TransformerEncoderLayer(256, 8, 512, dropout=0.0, batch_first=True).to(device)
    inputs = torch.randn(4, 32, 256, device=device)

    def loss(x: Tensor) -> Tensor:
        return layer(x).square().mean()

    return Target(loss, (inputs,), gradients=True)


def gpt2(device: str) -> Target:
    """GPT-2 from a random configuration: two layers, 128 wide, 32 tokens; logits."""
    from transformers import GPT2Config, GPT2LMHeadModel

    configuration = GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000, n_positions=64, use_cache=False)
    model = GPT2LMHeadModel(configuration).to(device).eval()

    def logits(tokens: Tensor) -> Tensor:
        return model(tokens).logits

    return Target(logits, (torch.randint(0, 1000, (1, 32), device=device),), gradients=False)


def workloads(device: str) -> dict[str, Callable[[], Target]]:
    """Makers by name: each is called when its turn comes, so that memory is not held for all of them."""
    large = device == "cuda"

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device)

    def inference(function: Any, *args: Tensor) -> Target:
        return Target(function, args, gradients=False)

    batch = 32 if large else 4
    return {
        "information scorer": lambda: inference(InformationScorer(), randn(batch, 196, 768)),
        "salience scorer": lambda: inference(SalienceScorer().to(device), randn(8, 1, 64, 64)),
        "query-content scorer": lambda: inference(QueryContentScorer(), randn(batch, 1, 768), randn(batch, 196, 768)),
        "MLP, batch 1": lambda: inference(mlp(device).eval(), randn(1, 256)),
        "MLP, batch 32": lambda: inference(mlp(device).eval(), randn(32, 256)),
        "MLP, batch 1024": lambda: inference(mlp(device).eval(), randn(1024, 256)),
        "encoder layer, forward and backward": lambda: encoder_step(device),
        "GPT-2, forward": lambda: gpt2(device),
        "60 pointwise operations": lambda: inference(pointwise, randn(4096)),
        "dictionary, values and Jacobian": lambda: inference(
            dictionary(device), torch.nn.functional.normalize(randn(30).double(), dim=0)
        ),
    }
