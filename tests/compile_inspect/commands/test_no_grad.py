"""Models that are made for inference, and say so, can be given to every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from invoking import invoke

import compile_inspect
from conftest import quick_first

PROGRAM = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        CHECK
        print("x")
        return self.linear(x)

net = Net().eval()
"""
CHECKS = {
    "assertion": "assert not torch.is_grad_enabled() and not self.training",
    "exception": "if torch.is_grad_enabled():\n            raise RuntimeError('for inference')",
    "in place": "self.linear.weight.mul_(1.0)",  # which autograd refuses for a leaf
    "numpy": "self.linear(x).numpy()",
}
COMMANDS = {
    "inspect": ("--backend", "eager"),
    "breaks": ("--backend", "eager", "--seconds", "0"),
    "fix": ("--backend", "eager", "--seconds", "0"),
    "guards": (),
    "guards --what-if": ("--what-if", "batch=2..4"),
    "verify": ("--variants", "eager-backend", "--samples", "0"),
    "bench": ("--variants", "eager-backend", "--seconds", "0.01", "--builds", "0"),
}


def typed(command: str, check: str, folder: Path, *options: str):  # type: ignore[no-untyped-def]
    (folder / "mine.py").write_text(PROGRAM.replace("CHECK", CHECKS[check]))
    name = command.partition(" ")[0]
    return invoke(name, "mine.py:net", "--inputs", "float32[3, 4]", *COMMANDS[command], *options, cwd=folder)


@pytest.mark.parametrize("command", quick_first(COMMANDS, 3))
def test_every_command_runs_it_without_gradients(command: str, tmp_path: Path) -> None:
    done = typed(command, "assertion", tmp_path, "--no-grad")
    assert done.returncode == 0, done.stderr + done.stdout
    if command == "breaks":
        assert "compile-inspect fix mine.py:net --inputs 'float32[3, 4]' --no-grad" in done.stdout
    if command == "inspect":
        assert compile_inspect.load(tmp_path / "net.inspection").target.no_grad  # type: ignore[union-attr]


@pytest.mark.parametrize("check", CHECKS)
def test_without_the_option_the_error_says_what_helps(check: str, tmp_path: Path) -> None:
    done = typed("inspect", check, tmp_path)
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("Without gradients it runs: add --no-grad, or give a Target gradients=False.")
    assert typed("inspect", check, tmp_path, "--no-grad").returncode == 0


def test_an_error_that_has_nothing_to_do_with_gradients_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(x):\n    raise ValueError('no')\n")
    done = invoke("inspect", "mine.py:f", "--inputs", "float32[2]", cwd=tmp_path)
    assert done.returncode == 2 and "no-grad" not in done.stderr


@pytest.mark.slow
def test_a_long_forecast_says_what_it_is_doing_and_what_it_took(tmp_path: Path) -> None:
    from compile_inspect.recompiles import calls_from_ranges, find_remedies, predict
    from compile_inspect.target import find_target

    (tmp_path / "grow.py").write_text("def f(x):\n    return x * 2\n")
    target = find_target(f"{tmp_path / 'grow.py'}:f", "float32[2, 3]")
    calls = calls_from_ranges(target, ["batch=2..4"])
    told: list[tuple[int, int]] = []
    titles: list[str] = []
    forecast = predict(target, calls, on_call=lambda number, count: told.append((number, count)))
    assert told == [(0, 3), (1, 3), (2, 3)]
    find_remedies(target, calls, forecast, on_trial=lambda title: titles.append(title))
    assert len(titles) >= 1
    done = invoke("guards", "grow.py:f", "--inputs", "float32[2, 3]", "--what-if", "batch=2..4", cwd=tmp_path)
    assert "predicted in " in done.stdout and "This took " in done.stdout
