"""A part that is frozen or not, by a stack of context managers."""

import contextlib

import torch


class Model(torch.nn.Module):
    def __init__(self, frozen=True):
        super().__init__()
        self.backbone, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
        self.frozen = frozen

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            if self.frozen:
                stack.enter_context(torch.no_grad())  # <- break
            hidden = self.backbone(x).relu()
        return self.head(hidden)


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "contexts", "proven": ["Enter the managers in the `with` itself"]}
