"""`compile-inspect guards` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invoking import invoke as command
from invoking import recorded_here

PROGRAM = """\
import torch

SCALE = 3


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def tick(self):
        self.step += 1

    def forward(self, x, n):
        y = x * n * SCALE
        return y.sum() if self.step < 10 else y.mean()


model = Model()
inputs = (torch.ones(4, 8), 2)
"""
TARGET = ("model.py:model", "--inputs", "model.py:inputs")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(PROGRAM)
    return tmp_path


def test_what_the_code_depends_on(home: Path) -> None:
    done = command("guards", *TARGET, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "1 guard on numbers that change" in done.stdout
    assert "global SCALE == 3" not in done.stdout.partition("numbers that change")[2]  # nothing changes it
    assert "The program changes the value: model.py:12 self.step += 1" in done.stdout
    assert "to check" not in done.stdout  # torch times one check with cold caches, twenty times as long as any call takes


def test_what_if(home: Path) -> None:
    done = command("guards", *TARGET, "--what-if", "batch=0,1,2,3,4,8", "--check", "eager", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "6 calls: 3 graphs compiled" in done.stdout
    assert "as predicted" in done.stdout
    assert "Remedy" in done.stdout


@pytest.mark.slow
def test_the_limit_is_foretold(home: Path) -> None:
    sizes = "batch=" + ",".join(str(size) for size in range(2, 14))
    done = command("guards", *TARGET, "--what-if", sizes, "--static", "--recompile-limit", "4", cwd=home)
    assert "4 graphs compiled" in done.stdout and "At batch=6 forward reaches recompile_limit = 4" in done.stdout, done.stdout


def test_as_json_and_from_a_capture(home: Path) -> None:
    found = json.loads(command("guards", *TARGET, "--what-if", "batch=2,3", "--json", "--check", "eager", cwd=home).stdout)
    assert len(found["forecast"]["compilations"]) == 2 and found["agrees"] is True
    (home / "script.py").write_text(
        "import torch, model\nf = torch.compile(model.model, backend='eager')\nfor n in 2, 3, 4:\n    f(torch.ones(n, 8), 2)\n"
    )
    recorded_here(home / "script.py", home / "c.inspection")
    (home / "model.py").unlink()
    done = command("guards", "c.inspection", cwd=home)
    assert done.returncode == 0 and "x changes" in done.stdout and "torch._dynamo.mark_dynamic(x, 0)" in done.stdout, (
        done.stdout
    )
    refused = command("guards", "c.inspection", "--what-if", "batch=1..4", cwd=home)
    assert refused.returncode == 2 and "name the target" in refused.stderr


def test_mistakes_are_said(home: Path) -> None:
    done = command("guards", *TARGET, "--what-if", "batch=one", cwd=home)
    assert done.returncode == 2 and "Traceback" not in done.stderr and "batch=one" in done.stderr, done.stderr
    alone = command("guards", *TARGET, "--check", "eager", cwd=home)
    assert alone.returncode == 2 and "--what-if" in alone.stderr


RAISES = """\
import torch


def f(x):
    if x.shape[0] > 6:
        raise ValueError("too many rows")
    return x.view(4, -1) + 1


inputs = (torch.ones(4, 6),)
"""


def test_calls_that_raise_are_all_named_with_their_cause(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(RAISES)
    target = ("raises.py:f", "--inputs", "raises.py:inputs")
    done = command("guards", *target, "--what-if", "batch=3..9", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    told = " ".join(done.stdout.split())  # wrapped where the terminal is narrow
    assert "batch=3 fails in eager mode too: RuntimeError: shape '[4, -1]' is invalid for input of size 18" in told
    assert "batch=7, batch=8 and batch=9 fail in eager mode too: ValueError: too many rows" in told
    assert "batch=4 f raises.py:4 first compilation" in told  # the call before it left no version behind
    found = json.loads(command("guards", *target, "--what-if", "batch=3,4,7", "--json", cwd=tmp_path).stdout)
    assert [call.get("fails_in_eager", False) for call in found["forecast"]["calls"]] == [True, False, True]
