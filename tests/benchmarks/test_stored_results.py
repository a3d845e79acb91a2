"""Every file of results is a complete envelope, and the scripts write such files."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stored_results
from stored_results import ROOT, Measurement, envelope_problems, load, pack, unpack

FILES = sorted(stored_results.RESULTS.glob("*.json"))
MAX_TOTAL_BYTES = 4_000_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_a_complete_envelope(path: Path) -> None:
    document = load(path)
    assert document["name"] == path.stem
    assert (ROOT / "benchmarks" / document["script"]).exists()
    assert document["command"].startswith(f"python benchmarks/{document['script']}")


def test_the_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < MAX_TOTAL_BYTES


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"date": "yesterday"}, "not in ISO format"),
        ({"schema": 99}, "schema 99"),
        ({"samples": None}, "neither samples nor a summary"),
        ({"transcribed": True}, "transcribed results have no samples"),
        ({"machine": {"processor": "fast"}}, "exactly the keys"),
        ({"dirty": "yes"}, "'dirty' is a str"),
        ({"extra": 1}, "not a key"),
    ],
)
def test_a_wrong_envelope_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = Measurement("example").write([1.0, 2.0], path=tmp_path / "example.json")
    assert any(problem in text for text in envelope_problems(load(path) | change))
    stored_results.save(load(path) | change, path)
    with pytest.raises(ValueError, match="example"):
        load(path)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    samples = {"runs": pack([{"n": number, "text": "é" * 50} for number in range(5)]), "empty": [], "nothing": None}
    document = load(Measurement("example").write(samples, notes=["One thread."], path=tmp_path / "example.json"))
    assert document["samples"] == samples
    assert unpack(document["samples"]["runs"])[3] == {"n": 3, "text": "é" * 50}
    assert document["versions"]["python"] and document["commit"] and document["load"]
    assert document["summary"] is None and document["notes"] == ["One thread."]


def test_absolute_paths_do_not_get_into_commands() -> None:
    arguments = ["/home/user/benchmarks/tune.py", "--python", "/opt/peer/bin/python", "--only", "MLP, batch 1"]
    assert stored_results.command_line(arguments) == "python benchmarks/tune.py --python PATH --only 'MLP, batch 1'"


def test_the_examples_hold() -> None:
    from rendering import tables

    for module in (stored_results, tables):
        failed, tried = doctest.testmod(module)
        assert tried and not failed


def test_a_script_writes_a_valid_file(tmp_path: Path) -> None:
    output = tmp_path / "trial.json"
    command = ["benchmarks/composite_problems.py", "--only", "bounded sum 20", "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = load(output)
    assert document["name"] == "composite_problems"
    assert document["command"] == "python benchmarks/composite_problems.py --only 'bounded sum 20' --output PATH"
    assert [one["problem"] for one in document["samples"]] == ["bounded sum 20"]
    assert str(output) in done.stdout
