"""A two-layer GPT-2 of transformers with random weights, forward and backward."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
configuration = GPT2Config(
    n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
)
model = GPT2LMHeadModel(configuration)
tokens = torch.randint(0, 64, (2, 16))
compiled = torch.compile(model)
loss = compiled(input_ids=tokens, labels=tokens).loss
loss.backward()
print(f"loss {loss.item():.5f}")
