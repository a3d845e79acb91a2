"""Flex attention with a mask and a score of the program's own."""

import torch
import torch_counters
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def causal(batch, head, query, key):
    return query >= key


def tilted(score, batch, head, query, key):
    return score + (key - query) * 0.1


@torch.compile
def attend(q, k, v, mask):
    return flex_attention(q, k, v, score_mod=tilted, block_mask=mask).sum(-1)


with torch.no_grad():
    mask = create_block_mask(causal, None, None, 128, 128, device="cpu")
    q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
    print(tuple(attend(q, k, v, mask).shape))
torch_counters.write()
