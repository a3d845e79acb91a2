"""Generation with a key-value cache, as gpt-fast does it: a prefill of any length, then one token at a time, each compiled."""

import torch
import torch_counters
from torch.nn import functional

WIDTH, HEADS, LENGTH, TOKENS = 16, 2, 32, 40


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wqkv, self.wo = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False), torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False), torch.nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.norm = torch.nn.RMSNorm(WIDTH)
        self.register_buffer("cache", torch.zeros(2, 1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x, position, mask):
        q, k, v = (t.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for t in self.wqkv(self.norm(x)).chunk(3, -1))
        self.cache[0][:, :, position] = k
        self.cache[1][:, :, position] = v
        y = functional.scaled_dot_product_attention(q, self.cache[0], self.cache[1], attn_mask=mask)
        x = x + self.wo(y.transpose(1, 2).reshape(1, -1, WIDTH))
        return x + self.down(functional.silu(self.up(x)))


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = torch.nn.Embedding(TOKENS, WIDTH), torch.nn.Linear(WIDTH, TOKENS)
        self.layers = torch.nn.ModuleList([Layer() for _ in range(2)])
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool)))

    def forward(self, tokens, position):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, position, self.mask[None, None, position])
        return self.output(x)


def decode_one_token(model, token, position):
    return model(token, position)[:, -1].argmax(-1, keepdim=True)


def prefill(model, tokens, position):
    return model(tokens, position)[:, -1].argmax(-1, keepdim=True)


torch.manual_seed(0)
model = Transformer().eval()
decode = torch.compile(decode_one_token, fullgraph=True)
fill = torch.compile(prefill, fullgraph=True, dynamic=True)
with torch.no_grad():
    for length in (5, 7):
        token = fill(model, torch.randint(TOKENS, (1, length)), torch.arange(length))
        for step in range(4):
            token = decode(model, token, torch.tensor([length + step]))
print("token", tuple(token.shape))
torch_counters.write()
