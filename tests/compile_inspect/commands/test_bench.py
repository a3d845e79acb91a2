"""`compile-inspect bench` as a user meets it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from invoking import Done, invoke

import compile_inspect
from compile_inspect.capture_file import save
from compile_inspect.records import Inspection, Timing
from compile_inspect.serialization import from_data
from conftest import ROOT, environment

PROGRAM = """
import torch

torch.manual_seed(0)
torch.set_num_threads(1)

def double(x):
    return (x * 2).sin()

def fails(x):
    raise ValueError("not today")

inputs = (torch.ones(8, 4),)
"""


def in_a_process(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compile_inspect", *arguments],
        env=environment(cwd / "cache", **more),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench")
    (path / "mine.py").write_text(PROGRAM)
    save(Inspection(notes=("recorded before",)), path / "old.inspection")
    return path


BENCH = ("bench", "mine.py:double", "--inputs", "mine.py:inputs", "--seconds", "0.1")


@pytest.fixture(scope="module")
def swept(folder: Path) -> Done:
    done = invoke(
        *BENCH,
        "--variants",
        "eager,eager-backend,cuda-graph/eager",
        "--sweep",
        "batch=1,64",
        "--builds",
        "0",
        "--export",
        "out.json",
        "--capture",
        "old.inspection",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_report_has_a_table_for_every_size_and_a_plot(swept: Done) -> None:
    text = swept.stdout
    assert text.startswith("mine.py:double · forward · cpu · 1 thread · torch 2.")
    assert "batch 1 · float32[1, 4] cpu" in text and "batch 64 · float32[64, 4] cpu" in text
    assert text.count("  Variant ") == 2
    assert text.count("cuda-graph/eager cannot run: CUDA graphs need tensors on a CUDA device") == 2
    assert "● eager\n" in text and "▲ eager-backend\n" in text and "└┬──" in text
    assert "- no cold build of eager-backend: no cold builds were requested" in text and "warm, order-dependent" in text
    assert text.endswith("Wrote out.json.\nNext: compile-inspect show old.inspection timing\n")
    assert swept.stderr == ""  # no bar where there is no terminal


def test_what_is_exported_is_all_there_is(swept: Done, folder: Path) -> None:
    data = json.loads((folder / "out.json").read_text())
    timing = from_data(Timing, data["timings"][0])
    assert [dict(point.sizes) for point in timing.points] == [{"batch": 1}, {"batch": 64}]
    assert all(len(point.measurements) == 3 for point in timing.points)
    assert compile_inspect.load(folder / "old.inspection").timings == (timing,)
    assert compile_inspect.load(folder / "old.inspection").notes == ("recorded before",)


def test_show_reads_it_again_without_torch(swept: Done, folder: Path) -> None:
    poison = folder / "poison" / "torch"
    poison.mkdir(parents=True)
    (poison / "__init__.py").write_text("raise ImportError('torch was imported')")
    done = in_a_process("show", "old.inspection", "timing", cwd=folder, PYTHONPATH=f"{poison.parent}:{ROOT / 'src'}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rpartition("Next:")[0] == swept.stdout.rpartition("Wrote")[0]
    data = json.loads(invoke("show", "old.inspection", "timing", "--json", cwd=folder).stdout)
    assert data["processes"][0]["timing"][0]["target"] == "mine.py:double"


@pytest.mark.exhaustive
def test_a_capture_is_made_and_the_format_can_be_named(folder: Path) -> None:
    options = ["--variants", "eager", "--export", "out.txt", "--format", "csv", "--capture", "new file.inspection"]
    done = in_a_process(*BENCH, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Next: compile-inspect show 'new file.inspection' timing\n")
    (row,) = csv.DictReader((folder / "out.txt").open())
    assert (row["target"], row["variant"], row["gradients"]) == ("mine.py:double", "eager", "False")
    assert float(row["low_seconds"]) <= float(row["median_seconds"]) <= float(row["high_seconds"])
    made = compile_inspect.load(folder / "new file.inspection")
    assert len(made.timings) == 1
    assert made.environment.torch and made.process.pid


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--export", "out.xyz"], "end the file name in .json, .csv or .md, or add --format"),
        (["--export", "out.txt", "--format", "xml"], "--format xml is not one of json, csv and md"),
        (["--export", "mine.py", "--format", "csv"], "mine.py exists already"),
        (["--export", "no/such/out.csv"], "does not exist"),
        (["--capture", "mine.py"], "mine.py is not a capture"),
        (["--seconds", "0"], "--seconds is 0.0: it must be greater than 0"),
        (["--variants", ","], "--variants is empty"),
        (["--variants", "inductr"], "'inductr' is not a variant"),
        (["--sweep", "batch"], "has no sizes"),
        (["--sweep", "tokens=1,2"], "does not specify where 'tokens' is in the inputs"),
    ],
)
def test_mistakes_get_one_sentence_and_status_2(arguments: list[str], sentence: str, folder: Path) -> None:
    done = invoke(*BENCH, *arguments, cwd=folder)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stdout == ""


@pytest.mark.exhaustive
def test_a_target_that_no_variant_can_run_ends_with_status_1(folder: Path) -> None:
    done = in_a_process("bench", "mine.py:fails", "--inputs", "mine.py:inputs", "--variants", "eager", cwd=folder)
    assert done.returncode == 1
    assert "eager cannot run: ValueError: not today" in done.stdout


def test_a_mistake_ends_the_process_with_status_2(folder: Path) -> None:
    done = in_a_process(*BENCH, "--export", "out.xyz", cwd=folder)
    assert done.returncode == 2 and done.stderr.startswith("compile-inspect: ") and done.stdout == ""


@pytest.mark.slow
def test_builds_are_cold_and_labeled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = invoke(*BENCH, "--variants", "eager-backend", "--export", "cold.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "s cold, " in done.stdout and "s warm" in done.stdout and "order-dependent" not in done.stdout
    assert "- cold: a build in a separate process with an empty cache folder" in done.stdout
    build = json.loads((folder / "cold.json").read_text())["timings"][0]["points"][0]["measurements"][1]["build"]
    assert build["cold_seconds"] > 0 and build["warm_seconds"] > 0 and "reason" not in build


@pytest.mark.exhaustive
def test_inductor_and_gradients(folder: Path) -> None:
    (folder / "training.py").write_text(
        "import torch\n\nmodel = torch.nn.Linear(16, 16)\ninputs = (torch.randn(8, 16, requires_grad=True),)\n"
    )
    options = ["--inputs", "training.py:inputs", "--variants", "inductor,aot-inductor,torchscript/trace", "--seconds", "0.3"]
    done = in_a_process("bench", "training.py:model", *options, "--gradients", "--export", "train.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "forward and backward" in done.stdout
    rows = list(csv.DictReader((folder / "train.csv").open()))
    assert [row["variant"] for row in rows] == ["eager", "inductor", "aot-inductor", "torchscript/trace"]
    assert all(row["gradients"] == "True" and float(row["median_seconds"]) > 0 for row in rows)
    assert all(float(row["build_cold_seconds"]) > 0 and float(row["payback_low"] or 1) > 0 for row in rows[1:])
