"""Positions put into bins, as in discretized states of a reinforcement learning agent."""

import numpy as np
import torch

EDGES = np.linspace(-1.0, 1.0, 5)


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.values = torch.nn.Embedding(6, 3)

    def forward(self, position):
        state = np.digitize(position.numpy(), EDGES)  # <- break
        return self.values(torch.from_numpy(state))


target = Agent()


def inputs():
    return (torch.randn(7, dtype=torch.float64),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.digitize with functions that torch translates"]}
