"""Kept decisions are found again only where everything they depend on is the same, also in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import dataclasses, sys, torch
from compile_inspect.tuning.key import program_key
from compile_inspect.variants import Task
import settings_of_the_model as settings

@dataclasses.dataclass
class Config:
    scale: float = SCALE

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.layer = torch.nn.Linear(4, WIDTH)

    def forward(self, x):
        return torch.BODY(self.layer(x)) * self.config.scale + settings.OFFSET

print(program_key(Task(Model(), (torch.ones(2, 4),))))
"""


def key(
    folder: Path, *, scale: str = "2.0", width: str = "3", body: str = "tanh", offset: str = "1.0", **variables: str
) -> str:
    """The key that a process of its own finds for a model."""
    (folder / "settings_of_the_model.py").write_text(f"OFFSET = {offset}\n")
    program = PROGRAM.replace("SCALE", scale).replace("WIDTH", width).replace("BODY", body)
    (folder / "program.py").write_text(program)
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | variables
    done = subprocess.run([sys.executable, str(folder / "program.py")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CHANGES = [
    {"scale": "2.5"},
    {"scale": "-2.0"},
    {"width": "5"},
    {"body": "sin"},
    {"offset": "1.5"},
    {"ATEN_CPU_CAPABILITY": "default"},
]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    return key(tmp_path_factory.mktemp("first"))


def test_the_same_program_has_the_same_key(first: str, tmp_path: Path) -> None:
    assert len(first) == 40
    assert key(tmp_path) == first


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_program_or_processor_has_another_key(change: dict[str, str], first: str, tmp_path: Path) -> None:
    assert key(tmp_path, **change) != first
