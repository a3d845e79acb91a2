"""Programs with several processes, and programs that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import compile_inspect
from compile_inspect.capture_file import load_together
from compile_inspect.records import CompilationOutcome
from conftest import PROGRAMS, environment, run_plain, run_recorded

Workers = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Workers:
    """The captures of a program with several processes, and its output."""
    output = tmp_path_factory.mktemp("workers") / "workers.inspection"
    return output, run_recorded(PROGRAMS / "workers.py", output=output, cache=output.with_name("cache"))


@pytest.mark.slow
def test_workers_and_spawned_processes_have_captures_of_their_own(workers: Workers, quick_cache: Path) -> None:
    output, seen = workers
    plain = run_plain(PROGRAMS / "workers.py", cache=quick_cache)
    assert (seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.stdout == "4.0\n20.0\n6.0\n"
    captures = load_together([output])
    assert len(captures) == 4
    assert len({inspection.process.pid for _, inspection in captures}) == 4
    assert all(inspection.complete for _, inspection in captures)
    for path, inspection in captures:
        assert path == output or path.name == f"workers.pid{inspection.process.pid}.inspection"
        (compilation,) = inspection.compilations
        assert compilation.function == "double"


@pytest.mark.slow
def test_show_takes_the_processes_together(workers: Workers, quick_cache: Path) -> None:
    output, _ = workers
    command = [sys.executable, "-m", "compile_inspect", "show", str(output), "summary", "--json"]
    shown = subprocess.run(command, env=environment(quick_cache), capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(shown.stdout)["processes"]) == 4


@pytest.mark.slow
def test_ranks_of_torchrun(tmp_path: Path, quick_cache: Path) -> None:
    output = tmp_path / "job.inspection"
    # A port that is free: two runs of the tests may share a machine.
    arguments = ["--nproc-per-node=2", "--standalone", str(PROGRAMS / "ranks.py")]
    command = [sys.executable, "-m", "compile_inspect", "run", "-o", str(output), "-m", "torch.distributed.run", *arguments]
    job = subprocess.run(command, env=environment(quick_cache), capture_output=True, text=True, timeout=300)
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["rank 0 [2.0, 2.0]", "rank 1 [2.0, 2.0]"]
    captures = load_together([output])
    assert sorted(path.name for path, _ in captures) == ["job.inspection", "job.rank0.inspection", "job.rank1.inspection"]
    ranks = {inspection.process.rank: len(inspection.compilations) for _, inspection in captures}
    assert ranks == {None: 0, 0: 1, 1: 1}


def test_a_killed_program_leaves_what_was_seen(tmp_path: Path, quick_cache: Path) -> None:
    output = tmp_path / "killed.inspection"
    seen = run_recorded(PROGRAMS / "killed_while_compiling.py", output=output, cache=quick_cache)
    assert seen.returncode == -9
    inspection = compile_inspect.load(output)
    assert not inspection.complete
    assert [(item.function, item.outcome) for item in inspection.compilations] == [
        ("first", CompilationOutcome.COMPILED),
        ("second", CompilationOutcome.COMPILED),
        ("torch_dynamo_resume_in_second_at_20", CompilationOutcome.UNFINISHED),
    ]
    (cause,) = inspection.breaks
    assert cause.location is not None and "a break before the end" in cause.location.code
    command = [sys.executable, "-m", "compile_inspect", "show", str(output)]
    shown = subprocess.run(command, env=environment(quick_cache), capture_output=True, text=True)
    assert shown.returncode == 0
    assert "This capture is incomplete" in shown.stdout


@pytest.mark.exhaustive
def test_inductors_own_helpers_are_not_recorded(tmp_path: Path, quick_cache: Path) -> None:
    output = tmp_path / "mlp.inspection"
    run_recorded(PROGRAMS / "mlp.py", output=output, cache=quick_cache, TORCHINDUCTOR_COMPILE_THREADS="2")
    assert [path.name for path in tmp_path.glob("*.inspection")] == ["mlp.inspection"]
