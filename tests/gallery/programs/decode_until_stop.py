"""Greedy decoding until a stop token: a list grows as long as a tensor says, which no graph can hold."""

import torch


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(6, 4)
        self.head = torch.nn.Linear(4, 6)

    def forward(self, token):
        tokens = []
        for _ in range(4):
            token = self.head(self.embedding(token)).argmax(dim=-1)
            tokens.append(token)
            if (token == 0).all():  # <- break
                break
        return torch.stack(tokens)


target = Decoder()


def inputs():
    return (torch.tensor([1, 2]),)


EXPECTED = {"fixer": "loops"}
