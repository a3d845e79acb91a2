"""The guard against overflow that encoders of transformers have, for one type of number only."""

import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, hidden_states):
        hidden_states = self.layer(hidden_states)
        if hidden_states.dtype == torch.float32 and (hidden_states.isinf().any() or hidden_states.isnan().any()):  # <- break
            clamp_value = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = torch.clamp(hidden_states, min=-clamp_value, max=clamp_value)
        return hidden_states.tanh()


target = Encoder()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where"]}
