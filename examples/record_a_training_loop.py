"""Record a training loop that uses torch.compile, and print its graph breaks and kernels.

The loop is an ordinary one. `compile_inspect.record` observes the compilations that happen inside the block. It does
not compile anything itself and changes no setting of torch.

    python examples/record_a_training_loop.py

If torch takes the code from its cache, Inductor does not run and most kernels have no lines. To see the lines again:

    TORCHINDUCTOR_FX_GRAPH_CACHE=0 python examples/record_a_training_loop.py
"""

import torch

import compile_inspect


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 1)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.first(x))
        if hidden.abs().max().item() > 100.0:  # a graph break: the value is needed on the host
            hidden = hidden / 2
        return self.second(hidden).squeeze(-1)


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(32, 8)
        loss = (model(x) - x.sum(-1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = torch.compile(Model())
    with compile_inspect.record() as recording:
        loss = train(model, steps=3)
    inspection = recording.inspection
    print(f"loss {loss:.3f}; {len(inspection.compilations)} compilations, {inspection.compile_seconds:.1f} s")

    print("\nGraph breaks")
    for cause in inspection.breaks:
        print(f"  {cause.location}  {cause.kind}")
        for hint in cause.hints:
            print(f"    {hint}")

    print("\nKernels")
    for lowering, kernel in inspection.kernels():
        lines = ", ".join(str(location.line) for location in inspection.kernel_lines(kernel))
        print(f"  {lowering.compilation} {lowering.direction.value:8}  lines {lines or '-':8}  {kernel.name:.60}")


if __name__ == "__main__":
    main()
