"""Files that commands write: names that nobody chose are written again, all others are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import compile_inspect
from compile_inspect.capture_file import replaceable, save
from compile_inspect.journal import FileJournal
from compile_inspect.records import SCHEMA_VERSION, Inspection, Timing
from conftest import environment


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compile_inspect", "run", *arguments]
    return subprocess.run(command, env=environment(folder / "cache"), capture_output=True, text=True, cwd=folder, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text("import sys\nprint('out')\nprint('err', file=sys.stderr)\n")
    return tmp_path


def test_a_second_run_replaces_the_capture_of_the_first_and_says_where_it_is(folder: Path) -> None:
    first, second = run(folder, "script.py"), run(folder, "script.py")
    for done in (first, second):
        assert (done.returncode, done.stdout) == (0, "out\n")
        assert done.stderr == "err\n\nRecorded 0 compilations.\nNext: compile-inspect show script.inspection\n"
    assert compile_inspect.load(folder / "script.inspection").complete


def test_quiet_says_nothing(folder: Path) -> None:
    done = run(folder, "--quiet", "script.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "err\n")


def test_names_that_were_chosen_are_kept(folder: Path) -> None:
    assert run(folder, "-o", "script.inspection", "script.py").returncode == 0
    again = run(folder, "-o", "script.inspection", "script.py")
    assert again.returncode == 2 and "exists already" in again.stderr and again.stdout == ""


def test_a_file_of_another_kind_is_kept(folder: Path) -> None:
    (folder / "script.inspection").write_text("my notes")
    done = run(folder, "script.py")
    assert done.returncode == 2 and (folder / "script.inspection").read_text() == "my notes"


def test_what_may_be_replaced(tmp_path: Path) -> None:
    plain = Inspection(notes=("recorded",))
    save(plain, tmp_path / "plain")
    save(replace(plain, timings=(Timing("model"),)), tmp_path / "timed")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("text")
    (tmp_path / "json").write_text(json.dumps({"kind": "other"}))
    for name, pid in (("running", os.getpid()), ("killed", 2**22 + 1)):
        journal = FileJournal(tmp_path / name, {"schema": SCHEMA_VERSION, "pid": pid})
        journal.create()
        journal.close()
    found = {item.name for item in tmp_path.iterdir() if replaceable(item)}
    assert found == {"plain", "killed"}
    assert not replaceable(tmp_path / "missing")
