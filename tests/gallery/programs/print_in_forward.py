"""A print that was left in after debugging."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        print("shape", hidden.shape)  # <- break
        return hidden.relu().sum()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {
    "fixer": "prints",
    "proven": ["Print or log only in eager mode"],
    "withdrawn": ["Let torch call print after the graph"],  # a torch.Size cannot be kept until then
}
