"""Guards that look accidental, from captures."""

from __future__ import annotations

import pytest

from compile_inspect.advice.accidental_guards import accidental_guards
from compile_inspect.capture.api import inspect
from compile_inspect.fixes.program import load_target
from compile_inspect.records import Guard, GuardFailure, Inspection, Recompile
from compile_inspect.records.accidental_guards import AccidentalGuard, FailureEvidence, ValueOrigin

PROGRAM = """\
import torch

SCALE, LIMIT = 3, 7


def faster():
    global SCALE
    SCALE += 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.width, self.mode = 0, 4, "train"

    def tick(self):
        self.step += 1

    def forward(self, x, n):
        if self.step > 2 and self.mode == "train":
            x = x + 1
        return x * SCALE * LIMIT + n * self.width


model = Model()
inputs = (torch.ones(3), 5)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AccidentalGuard]:
    path = tmp_path_factory.mktemp("accidental") / "program.py"
    path.write_text(PROGRAM)
    inspection = inspect(load_target(f"{path}:model", f"{path}:inputs"), backend="eager")
    return {item.guard.variable: item for item in accidental_guards(inspection)}


def test_numbers_and_where_they_come_from(found: dict[str, AccidentalGuard]) -> None:
    assert {name: item.origin for name, item in found.items()} == {
        "self.step": ValueOrigin.ATTRIBUTE,
        "global SCALE": ValueOrigin.GLOBAL,
    }  # not n, self.width and global LIMIT, which nothing changes


def test_the_line_that_changes_a_value_is_named(found: dict[str, AccidentalGuard]) -> None:
    assert found["self.step"].evidence is FailureEvidence.CHANGED_VALUE
    line = found["self.step"].change_location
    assert line is not None and line.code == "self.step += 1" and line.function == "tick"
    assert "allow_unspec_int_on_nn_module" in found["self.step"].remedy


def test_what_has_failed_is_sure() -> None:
    guard = Guard("0/0", "EQUALS_MATCH", "L['n']", "n", "n == 5")
    other = Guard("0/0", "EQUALS_MATCH", "L['m']", "m", "m == 5")
    recompile = Recompile("0/1", "f", "f.py", 1, (GuardFailure("0/0", "n", "n == 5", "5", "6"),))
    (first,) = accidental_guards(Inspection(guards=(other, guard), recompiles=(recompile,)))
    assert (first.guard.variable, first.evidence) == ("n", FailureEvidence.FAILED_BEFORE)


def test_strings_and_noise_are_not_numbers() -> None:
    guards = (
        Guard("0/0", "EQUALS_MATCH", "L['mode']", "mode", "mode == 'train'"),
        Guard("0/0", "EQUALS_MATCH", "L['n']", "n", "n == 5", is_internal=True),
        Guard("0/0", "LENGTH_CHECK", "L['items']", "items", "len(items) == x"),
    )
    assert accidental_guards(Inspection(guards=guards)) == ()
