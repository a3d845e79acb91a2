"""A model whose `print` breaks the graph, for `compile-inspect fix`; as a script it requires that the break is gone."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        print("hidden", hidden.shape)
        return hidden.relu().sum()


torch.manual_seed(0)
model = Model()
inputs = (torch.randn(3, 4),)

if __name__ == "__main__":
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), model(*inputs))
