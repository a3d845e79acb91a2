"""An inspected program behaves exactly as without us."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compile_inspect
from conftest import PROGRAMS, environment, run_plain, run_recorded


def generated_files(cache: Path) -> set[str]:
    """Names of generated modules and kernels; Inductor names each after a hash of its contents."""
    return {path.name for path in cache.rglob("*") if path.suffix in (".py", ".cpp") and len(path.stem) > 40}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory):
    """The same program without and with the recorder, each with an empty cache."""
    folder = tmp_path_factory.mktemp("both")
    script, program = PROGRAMS / "counting.py", str(PROGRAMS / "compared.py")
    plain = run_plain(script, str(folder / "plain.json"), program, cache=folder / "plain")
    seen = run_recorded(script, str(folder / "seen.json"), program, output=folder / "seen.inspection", cache=folder / "seen")
    assert plain.returncode == seen.returncode == 0, seen.stderr
    return folder, plain, seen


@pytest.mark.slow
def test_same_number_of_compilations_and_same_counters(both) -> None:
    folder, _, _ = both
    plain, seen = (json.loads((folder / f"{name}.json").read_text()) for name in ("plain", "seen"))
    assert plain == seen
    assert plain["compilations"] > 0 and len(plain["counters"]["graph_break"]) == 2
    inspection = compile_inspect.load(folder / "seen.inspection")
    forward = len(inspection.compilations)
    backward = sum(item.backward_seconds is not None for item in inspection.compilations)
    assert forward + backward == plain["compilations"]


@pytest.mark.slow
def test_same_generated_code(both) -> None:
    folder, _, _ = both
    plain = generated_files(folder / "plain")
    assert len(plain) > 5
    assert plain == generated_files(folder / "seen")


@pytest.mark.slow
def test_same_output(both) -> None:
    _, plain, seen = both
    assert plain.stdout == seen.stdout
    assert len(plain.stderr.splitlines()) == len(seen.stderr.splitlines())


@pytest.mark.slow
def test_cache_filled_without_the_recorder_is_hit_with_it(both, tmp_path: Path) -> None:
    folder, _, _ = both
    output = tmp_path / "warm.inspection"
    assert run_recorded(PROGRAMS / "compared.py", output=output, cache=folder / "plain").returncode == 0
    inspection = compile_inspect.load(output)
    assert {event.outcome.name for event in inspection.caches if event.cache == "FX graph"} == {"HIT"}
    assert inspection.missing_evidence == ()
    # The scheduler did not run, and the capture says so instead of inventing anything.
    cached = [lowering for lowering in inspection.lowerings if lowering.from_cache]
    assert cached
    for lowering in cached:
        assert lowering.code and lowering.unfused_pairs == () and lowering.unplaced_nodes == ()
        graph = inspection.graph(lowering.graph)
        assert graph is not None and graph.nodes and graph.from_text
        assert all(kernel.call_line for kernel in lowering.kernels)


@pytest.mark.parametrize(
    "ending", ["signal", *(pytest.param(ending, marks=pytest.mark.slow) for ending in ("raise", "exit", "fullgraph"))]
)
def test_same_ending(ending: str, tmp_path: Path, quick_cache: Path) -> None:
    script = PROGRAMS / "endings.py"
    plain = run_plain(script, ending, "two words", cache=quick_cache)
    seen = run_recorded(script, ending, "two words", output=tmp_path / "a.inspection", cache=quick_cache)
    assert seen.returncode == plain.returncode != 0
    assert seen.stdout == plain.stdout
    assert "two words" in plain.stdout
    assert seen.stderr == plain.stderr
    inspection = compile_inspect.load(tmp_path / "a.inspection")
    assert inspection.complete is (ending != "signal")
    assert inspection.compilations


@pytest.mark.slow
def test_torch_logs_still_work(tmp_path: Path, quick_cache: Path) -> None:
    script = PROGRAMS / "user_hooks.py"
    plain = run_plain(script, cache=quick_cache, TORCH_LOGS="recompiles,graph_breaks")
    seen = run_recorded(script, output=tmp_path / "a.inspection", cache=quick_cache, TORCH_LOGS="recompiles,graph_breaks")
    assert plain.returncode == seen.returncode == 0, seen.stderr
    assert plain.stdout == seen.stdout
    assert "callbacks" in plain.stdout and "bytecode hook" in plain.stdout

    def tidy(text: str) -> str:
        return re.sub(r"^[A-Z]\d{4} \d{2}:\d{2}:\d{2}\.\d+ \d+ ", "", text, flags=re.MULTILINE)

    assert "[__recompiles]" in plain.stderr and "[__graph_breaks]" in plain.stderr
    assert tidy(seen.stderr) == tidy(plain.stderr)
    inspection = compile_inspect.load(tmp_path / "a.inspection")
    # Recorded before and after the program called set_logs, which rebuilds torch's handlers.
    assert [item.function for item in inspection.compilations] == [
        "first",
        "first",
        "torch_dynamo_resume_in_first_at_25",
        "second",
    ]


@pytest.mark.slow
def test_torch_trace_still_works(tmp_path: Path, quick_cache: Path) -> None:
    trace = tmp_path / "trace"
    seen = run_recorded(PROGRAMS / "user_hooks.py", output=tmp_path / "a.inspection", cache=quick_cache, TORCH_TRACE=str(trace))
    assert seen.returncode == 0
    (log,) = trace.glob("*.log")
    assert '"dynamo_start"' in log.read_text()
    assert compile_inspect.load(tmp_path / "a.inspection").compilations


@pytest.mark.slow
def test_fresh_watches_the_scheduler_although_the_cache_is_warm(both, tmp_path: Path) -> None:
    folder, _, _ = both
    command = [sys.executable, "-m", "compile_inspect", "run", "--quiet", "--fresh", "-o", str(tmp_path / "a.inspection")]
    process = subprocess.run(
        [*command, str(PROGRAMS / "compared.py")], env=environment(folder / "plain"), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    inspection = compile_inspect.load(tmp_path / "a.inspection")
    assert not any(lowering.from_cache for lowering in inspection.lowerings)
    assert all(kernel.nodes and inspection.kernel_lines(kernel) for _, kernel in inspection.kernels())
