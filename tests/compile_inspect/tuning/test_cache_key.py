"""Kept decisions are found again only where everything they depend on is the same, also in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import dataclasses, torch
from compile_inspect.tuning.cache_key import program_key
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


RUN = """
import runpy, sys
for folder in sys.argv[1:]:
    sys.path[0] = folder
    sys.modules.pop("settings_of_the_model", None)
    runpy.run_path(folder + "/program.py", run_name="__main__")
"""


def written(folder: Path, *, scale: str = "2.0", width: str = "3", body: str = "tanh", offset: str = "1.0") -> str:
    """A folder with a model and the module that it reads."""
    folder.mkdir()
    (folder / "settings_of_the_model.py").write_text(f"OFFSET = {offset}\n")
    (folder / "program.py").write_text(PROGRAM.replace("SCALE", scale).replace("WIDTH", width).replace("BODY", body))
    return str(folder)


def keys(*folders: str, **variables: str) -> list[str]:
    """The keys that a process of its own finds for these models, one after the other."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | variables
    done = subprocess.run([sys.executable, "-c", RUN, *folders], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CHANGES = [{"scale": "2.5"}, {"scale": "-2.0"}, {"width": "5"}, {"body": "sin"}, {"offset": "1.5"}]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    (found,) = keys(written(tmp_path_factory.mktemp("first") / "model"))
    return found


@pytest.fixture(scope="module")
def further(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The keys of the changed models and of the same model again, in another process."""
    folder = tmp_path_factory.mktemp("further")
    return keys(*(written(folder / str(number), **change) for number, change in enumerate([*CHANGES, {}])))


def test_the_same_program_has_the_same_key(first: str, further: list[str]) -> None:
    """Also behind others in its process: it is the change that makes the key of a changed one another."""
    assert len(first) == 40
    assert len(further) == len(CHANGES) + 1
    assert further[-1] == first


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=lambda number: "=".join(*CHANGES[number].items()))
def test_another_program_has_another_key(number: int, first: str, further: list[str]) -> None:
    assert further[number] != first


@pytest.mark.slow
def test_another_processor_has_another_key(first: str, tmp_path: Path) -> None:
    assert keys(written(tmp_path / "model"), ATEN_CPU_CAPABILITY="default") != [first]
