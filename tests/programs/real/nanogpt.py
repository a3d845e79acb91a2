"""A small GPT, trained for a few steps as nanoGPT trains one: the model compiled, everything else in eager mode."""

import math

import torch
import torch_counters
from torch.nn import functional


class Attention(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = torch.nn.Linear(width, 3 * width)
        self.c_proj = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.c_attn(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(torch.nn.Module):
    def __init__(self, tokens: int = 50, width: int = 16, length: int = 16) -> None:
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(tokens, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.ModuleList([Block(width, 2) for _ in range(2)])
        self.ln_f, self.lm_head = torch.nn.LayerNorm(width), torch.nn.Linear(width, tokens, bias=False)
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                torch.nn.init.normal_(parameter, std=0.02 / math.sqrt(4))

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


torch.manual_seed(0)
model = torch.compile(GPT())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    idx = torch.randint(50, (2, 16))
    _, loss = model(idx, idx)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
print("loss", f"{loss.item():.1f}")
torch_counters.write()
