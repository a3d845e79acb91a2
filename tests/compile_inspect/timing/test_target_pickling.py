"""Functions and classes that have no importable name, sent to another process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest
import torch

from compile_inspect.errors import TargetError
from compile_inspect.target import find_object
from compile_inspect.timing.pickling import dumps, has_importable_name, loads
from conftest import ROOT

FACTOR = 3.0


def helper(x: Any) -> Any:
    return x * FACTOR


def scaled(by: float) -> Any:
    def inner(x: Any, *, more: float = 1.0) -> Any:
        return helper(x) * by + more

    return inner


def test_a_closure_keeps_its_cells_defaults_and_globals() -> None:
    again = loads(dumps(scaled(2.0)))
    assert again(1.0) == 7.0 and again(1.0, more=0.0) == 6.0
    assert again.__qualname__ == "scaled.<locals>.inner" and again.__kwdefaults__ == {"more": 1.0}


def test_closures_that_hold_themselves_and_each_other() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    one, other = loads(dumps((even, odd)))
    assert one(4) and other(3) and not one(3)
    assert one.__closure__[0].cell_contents is other


def test_a_lambda_is_sent_and_what_has_a_name_is_found_by_it() -> None:
    assert loads(dumps(lambda x: x + 1))(2) == 3
    assert loads(dumps(helper)) is helper
    assert has_importable_name(torch.nn.Linear) and not has_importable_name(scaled(1.0))


def test_a_local_class_with_super_slots_and_descriptors() -> None:
    class Base(ABC):
        __slots__ = ("value",)

        def __init__(self, value: int) -> None:
            self.value = value

        @abstractmethod
        def twice(self) -> int: ...

    class Derived(Base):
        kind = "derived"

        def __init__(self, value: int) -> None:
            super().__init__(value + 1)

        def twice(self) -> int:
            return 2 * self.value

        @property
        def half(self) -> float:
            return self.value / 2

        @staticmethod
        def one() -> int:
            return 1

        @classmethod
        def named(cls) -> str:
            return cls.kind

    again = loads(dumps(Derived(3)))
    assert (again.twice(), again.half, again.one(), again.named()) == (8, 2.0, 1, "derived")


def test_a_module_of_a_local_class_has_its_weights() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu()

    model = Model()
    again = loads(dumps(model))
    x = torch.ones(1, 2)
    assert type(again) is not Model and torch.equal(again(x), model(x))


def test_what_cannot_be_sent_raises() -> None:
    import enum

    class Color(enum.Enum):
        RED = 1

    with pytest.raises(TargetError, match="has the metaclass"):
        dumps(Color.RED)
    with Path(__file__).open() as file, pytest.raises(TypeError, match="TextIOWrapper"):
        dumps(lambda: file)


PROGRAM = """
import pathlib, sys, torch
from compile_inspect.timing.pickling import dumps
SCALE = 2.0
def double(x):
    return x * SCALE
class Model(torch.nn.Module):
    def forward(self, x):
        return double(x).sin()
pathlib.Path(sys.argv[1]).write_bytes(dumps((Model(), lambda x: double(x) + 1)))
"""
READER = """
import pathlib, sys, torch
from compile_inspect.timing.pickling import loads
model, plus = loads(pathlib.Path(sys.argv[1]).read_bytes())
x = torch.ones(2)
assert torch.equal(model(x), (x * 2).sin()) and torch.equal(plus(x), x * 2 + 1)
import __main__
assert __main__.double(1.0) == 2.0  # torch's compilers look globals up by the name of the module
compiled = torch.compile(model, backend="eager", fullgraph=True)
assert torch.equal(compiled(x), model(x))
__main__.SCALE = 5.0
assert torch.equal(compiled(x), (x * 5).sin())
"""


@pytest.mark.slow
def test_the_running_program_is_not_run_again(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for text in (PROGRAM, READER):
        command = [sys.executable, "-c", textwrap.dedent(text), str(tmp_path / "sent")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_file_off_the_search_path_is_pickled_as_code(tmp_path: Path) -> None:
    """It is in `sys.modules`, where another process does not have it."""
    (tmp_path / "off_the_path.py").write_text("def double(x):\n    return 2 * x\n")
    before = list(sys.path)
    function = find_object(f"{tmp_path / 'off_the_path.py'}:double")
    assert has_importable_name(function)
    sys.path[:] = before
    assert not has_importable_name(function)
    data = dumps(function)
    del sys.modules["off_the_path"]
    assert loads(data)(21) == 42
