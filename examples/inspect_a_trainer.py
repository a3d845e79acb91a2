"""Inspect a training loop in the style of Lightning: a module with `training_step`, and a trainer that compiles it.

Two things go wrong silently in such loops. A value that is logged inside the step (`loss.item()`) breaks the graph. And
the last batch of an epoch is smaller than the others, so everything is compiled a second time. The recording names both
causes, with the line. Then the same training runs without them, in two ways: by dropping the last batch
(`drop_last=True`), which trains on less data, and by compiling for any batch size (`dynamic=True`).

    python examples/inspect_a_trainer.py
"""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

import compile_inspect


class Module(torch.nn.Module):
    """What a user of Lightning writes, as far as this example needs it."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
        self.logged = []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

    def log(self, value):
        self.logged.append(value)

    def training_step(self, batch):
        x, y = batch
        return (self.network(x).squeeze(-1) - y).square().mean()

    def on_train_batch_end(self, loss):
        self.log(loss.detach())  # a tensor: no synchronization, and no graph break in the step


class LoggingModule(Module):
    """The same, but it logs a number inside the step."""

    def training_step(self, batch):
        loss = super().training_step(batch)
        self.log(loss.item())
        return loss

    def on_train_batch_end(self, loss):
        pass


class Trainer:
    """The loop around it. The step is compiled, the optimizer is not."""

    def __init__(self, *, epochs, dynamic=None):
        self.epochs = epochs
        self.dynamic = dynamic

    def fit(self, module, loader):
        step = torch.compile(module.training_step, dynamic=self.dynamic)
        optimizer = module.configure_optimizers()
        for _ in range(self.epochs):
            for batch in loader:
                loss = step(batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                module.on_train_batch_end(loss)


def data(*, drop_last=False):
    """20 samples in batches of 8: the last batch of an epoch has 4."""
    torch.manual_seed(0)
    x = torch.randn(20, 6)
    return DataLoader(TensorDataset(x, x.sum(dim=1)), batch_size=8, drop_last=drop_last)


def count_of(items, noun):
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def record_training(name, module, trainer, loader):
    """Train, and print what was compiled."""
    torch.compiler.reset()  # each training begins with nothing compiled
    with compile_inspect.record() as recording:
        trainer.fit(module, loader)
    inspection = recording.inspection
    print(
        f"{name}: {len(inspection.compilations)} compiled, {count_of(inspection.breaks, 'graph break')}, "
        f"{count_of(inspection.recompiles, 'recompile')}"
    )
    for compilation in inspection.compilations:
        print(f"  {compilation.id}  {compilation.function}: {compilation.outcome.value}")
    for cause in inspection.breaks:
        location = cause.location
        print(f"  graph break at {Path(location.file).name}:{location.line}  {location.code}")
        print(f"    {cause.kind}")
    for recompile in inspection.recompiles:
        failure = recompile.latest
        print(f"  recompile {recompile.compilation}: {failure.variable} was {failure.expected}, is {failure.actual}")
    losses = torch.tensor([float(value) for value in module.logged]).reshape(trainer.epochs, len(loader)).mean(dim=1)
    print(f"  mean loss of the first epoch {losses[0]:.4f}, of the last {losses[-1]:.4f}, {len(loader)} batches each\n")


def main():
    def build(kind):
        torch.manual_seed(1)
        return kind()

    record_training("as it is often written", build(LoggingModule), Trainer(epochs=20), data())
    record_training("drop_last=True", build(Module), Trainer(epochs=20), data(drop_last=True))
    record_training("dynamic=True", build(Module), Trainer(epochs=20, dynamic=True), data())


if __name__ == "__main__":
    main()
