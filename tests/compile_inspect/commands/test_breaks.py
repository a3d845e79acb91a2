"""`compile-inspect breaks` and `fix` as a user meets them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from invoking import invoke, recorded_here

from conftest import environment

PROGRAM = '''\
"""A model."""   # kept
import torch

class Model(torch.nn.Module):
    """Its docstring."""
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear( 4,4 )   # odd on purpose

    @torch.no_grad()
    def helper(self, x): return x   # one line

    def forward(self, x):

        hidden = self.layer(x);  print( "é", hidden.shape )  ;  hidden = hidden * 2
        def nested(y):
            print("nested",
                  y.shape)   # where
            return y.relu()
        return nested(hidden).sum()


model = Model()
inputs = (torch.ones(3, 4),)
'''
ONE_BREAK = PROGRAM.replace(
    """            print("nested",
                  y.shape)   # where
""",
    "",
)
FIXED = PROGRAM.replace('print( "é"', 'torch.compiler.is_compiling() or print( "é"').replace(
    """            print("nested",
                  y.shape)   # where
""",
    """            if not torch.compiler.is_compiling():
                print("nested",
                      y.shape)   # where
""",
)


def in_a_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compile_inspect", *arguments],
        env=environment(Path("cache")), capture_output=True, text=True, cwd=cwd, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: equal functions in two files are one to torch, and it names the first of the files."""
    return tmp_path_factory.mktemp("breaks")


@pytest.fixture
def home(folder: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "model.py").write_text(PROGRAM)
    return folder


TARGET = ("model.py:model", "--inputs", "model.py:inputs", "--backend", "eager", "--seconds", "0")


def test_causes_with_fixes_that_were_tried(home: Path) -> None:
    done = invoke("breaks", *TARGET, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "Graph break 1 of 2: Failed to trace builtin operator · GB0059" in done.stdout
    assert "Your line  model.py:15 in forward" in done.stdout and "Your line  model.py:17 in nested" in done.stdout
    assert '+                print("nested",' in done.stdout
    assert done.stdout.count("The break is gone, and the results agree with eager.") == 2
    assert "A trial confirmed that fullgraph=True works with these 2 fixes." in done.stdout
    assert (home / "model.py").read_text() == PROGRAM


def test_fix_shows_what_it_would_write(home: Path) -> None:
    (home / "model.py").write_text(ONE_BREAK)
    shown = invoke("fix", *TARGET, cwd=home)
    assert shown.returncode == 0 and "Nothing was written" in shown.stdout, shown
    assert "+        hidden = self.layer(x);  torch.compiler.is_compiling() or print(" in shown.stdout, shown
    assert (home / "model.py").read_text() == ONE_BREAK
    assert not (home / "model.py.before-fix").exists()


def test_fix_writes_only_the_lines_of_the_fix(home: Path) -> None:
    applied = invoke("fix", *TARGET, "--apply", cwd=home)
    assert applied.returncode == 0, applied
    assert (home / "model.py").read_bytes() == FIXED.encode()
    assert "mv model.py.before-fix model.py" in applied.stdout
    assert (home / "model.py.before-fix").read_text() == PROGRAM
    again = invoke("fix", *TARGET, cwd=home)
    assert again.returncode == 0 and "nothing to fix" in again.stdout


def test_from_a_capture_nothing_can_be_tried(home: Path) -> None:
    (home / "script.py").write_text("import torch, model\ntorch.compile(model.model, backend='eager')(*model.inputs)\n")
    recorded_here(home / "script.py", home / "c.inspection")
    (home / "model.py").unlink()  # as if recorded elsewhere
    done = in_a_process("breaks", "c.inspection", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "Not tried: a trial needs the target, which a capture does not contain." in done.stdout
    assert "+            if not torch.compiler.is_compiling():" in done.stdout
    refused = invoke("breaks", "c.inspection", "--inputs", "model.py:inputs", cwd=home)
    assert refused.returncode == 2 and "leave out --inputs" in refused.stderr


@pytest.mark.slow
def test_as_json(home: Path) -> None:
    done = invoke("breaks", *TARGET, "--json", cwd=home)
    found = json.loads(done.stdout)["breaks"]
    assert sorted(item["cause"]["own_location"]["line"] for item in found) == [15, 17]
    assert [item["trials"][0][1]["status"] for item in found] == ["PROVEN", "PROVEN"]


def test_what_cannot_be_fixed_is_said(home: Path) -> None:
    text = PROGRAM.replace('print( "é", hidden.shape )', "torch._dynamo.graph_break()").replace('print("nested",', "len((")
    (home / "model.py").write_text(text.replace("                  y.shape)   # where", "                  y,))   # where"))
    done = invoke("fix", *TARGET, cwd=home)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done
    missing = in_a_process("fix", "model.py:nothing", cwd=home)
    assert missing.returncode == 2 and "nothing" in missing.stderr
