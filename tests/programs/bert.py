"""A two-layer BERT of transformers with random weights, forward and backward."""

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
configuration = BertConfig(
    num_hidden_layers=2,
    num_attention_heads=2,
    hidden_size=32,
    intermediate_size=64,
    vocab_size=64,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
model = BertForSequenceClassification(configuration)
tokens = torch.randint(0, 64, (2, 16))
compiled = torch.compile(model)
loss = compiled(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=torch.tensor([0, 1])).loss
loss.backward()
print(f"loss {loss.item():.5f}")
