"""Programs that get in the way of recorders, each found by an attack on this one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

import compile_inspect
from compile_inspect.errors import CaptureError
from compile_inspect.records import CompilationOutcome, Inspection, Stage
from conftest import PROGRAMS, environment, fresh_function, quick_first, run_plain, run_recorded

ODD = PROGRAMS / "odd"
Process = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Process, Process, Inspection]]:
    """`ran("resets")`: a program without and with the recorder, and what was recorded; each program runs once."""
    folder = tmp_path_factory.mktemp("odd")

    @cache
    def run(name: str) -> tuple[Process, Process, Inspection]:
        plain = run_plain(ODD / f"{name}.py", cache=folder / "cache")
        seen = run_recorded(ODD / f"{name}.py", output=folder / f"{name}.inspection", cache=folder / "cache")
        return plain, seen, compile_inspect.load(folder / f"{name}.inspection")

    return run


FUNCTIONS = {
    "own_log_records": {"<lambda>"},
    "one_after_another": {"first", "second", "torch_dynamo_resume_in_second_at_11", "step", "program"},
    "shadows": set(),
}
"""What each of them compiles."""


@pytest.mark.parametrize("name", quick_first(FUNCTIONS, 1))
def test_the_program_notices_nothing(name: str, ran: Callable[[str], tuple[Process, Process, Inspection]]) -> None:
    plain, seen, inspection = ran(name)
    assert (seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert inspection.complete
    assert {item.function for item in inspection.compilations} >= FUNCTIONS[name]
    assert bool(inspection.compilations) is bool(FUNCTIONS[name])


@pytest.mark.slow
def test_descriptors_are_the_programs(tmp_path: Path, quick_cache: Path) -> None:
    script, own = ODD / "closes_descriptors.py", tmp_path / "own.txt"
    plain = run_plain(script, str(own), cache=quick_cache)
    seen = run_recorded(script, str(own), output=tmp_path / "a.inspection", cache=quick_cache)
    assert seen.stdout == plain.stdout == "3 5\n"
    assert own.read_text() == "mine\n"
    assert len(compile_inspect.load(tmp_path / "a.inspection").compilations) == 2


def test_ids_stay_apart_when_torch_counts_anew(ran: Callable[[str], tuple[Process, Process, Inspection]]) -> None:
    _, _, inspection = ran("one_after_another")
    resets = inspection.compilations[:4]
    assert [(item.id, item.function) for item in resets] == [
        ("0/0", "first"),
        ("0/0@1", "second"),
        ("1/0@1", "torch_dynamo_resume_in_second_at_11"),
        ("1/1@1", "torch_dynamo_resume_in_second_at_11"),
    ]
    assert [item.is_recompile for item in resets] == [False, False, False, True]
    sine = inspection.graphs_at(Stage.DYNAMO)[0]
    assert (sine.compilation, tuple(sine.call_counts)) == ("0/0", ("Tensor.sin",))
    assert all(
        failure.earlier_version.endswith("@1")
        for item in inspection.recompiles
        for failure in item.failures
        if failure.earlier_version
    )


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_descriptors_from_the_shell_reach_the_program(tmp_path: Path) -> None:
    script = tmp_path / "read.py"
    script.write_text("import sys; print(open(sys.argv[1]).read())")
    command = f"{sys.executable} -m compile_inspect run -o {tmp_path / 'a'} {script} <(echo hello)"
    done = subprocess.run(["bash", "-c", command], env=environment(tmp_path), capture_output=True, text=True)
    assert done.stdout == "hello\n\n", done.stderr


def test_a_closed_stderr_changes_nothing(tmp_path: Path) -> None:
    script = tmp_path / "hello.py"
    script.write_text("print('hello')")
    command = f"{sys.executable} -m compile_inspect run -o {tmp_path / 'a'} {script} 2>&-"
    done = subprocess.run(["bash", "-c", command], env=environment(tmp_path), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ties a process to its parent")
def test_a_killed_launcher_takes_the_program_with_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "compile_inspect", "run", "script.py"]
    launcher = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    program = Path("/proc") / launcher.stdout.readline().strip()
    assert program.exists()
    launcher.kill()
    launcher.wait()
    for _ in range(600):
        try:
            if "Z" in (program / "stat").read_text().rpartition(")")[2][:3]:
                break
        except OSError:  # it is gone, perhaps since the file was opened
            break
        time.sleep(0.1)
    else:
        os.kill(int(program.name), signal.SIGKILL)
        pytest.fail("the program went on without its launcher")


def wait_until_signals_are_passed_on(launcher: int) -> None:
    """The launcher takes signals over once the program has been started, which may be ready before that."""
    status, last = Path(f"/proc/{launcher}/status"), int(signal.SIGCONT)
    for _ in range(600):
        if status.exists():
            caught = int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.MULTILINE)[1], 16)  # type: ignore[index]
            if caught >> (last - 1) & 1:
                return
        time.sleep(0.1)
        if not status.exists():
            return
    pytest.fail("the launcher takes no signals over")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1, signal.SIGTERM])
def test_signals_reach_the_program(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "compile_inspect", "run", "-o", str(tmp_path / "a"), str(script)]
    process = subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    wait_until_signals_are_passed_on(process.pid)
    process.send_signal(number)
    assert process.wait(timeout=120) == 7


def test_an_interrupted_compilation_is_no_success() -> None:
    def backend(graph: object, inputs: object) -> None:
        raise KeyboardInterrupt

    with compile_inspect.record() as recording, pytest.raises(KeyboardInterrupt):
        torch.compile(fresh_function("return x + 1"), backend=backend)(torch.ones(2))
    (compilation,) = recording.inspection.compilations
    assert (compilation.outcome, compilation.failure) == (CompilationOutcome.FAILED, "KeyboardInterrupt")


def test_a_global_that_changed_has_its_values() -> None:
    names: dict[str, object] = {"THRESHOLD": 1}
    program = fresh_function("return x * THRESHOLD", **names)
    program.__globals__["THRESHOLD"] = 1
    compiled = torch.compile(program, backend="eager")
    with compile_inspect.record() as recording:
        compiled(torch.ones(2))
        program.__globals__["THRESHOLD"] = 2
        compiled(torch.ones(2))
    (recompile,) = recording.inspection.recompiles
    assert recompile.latest_failure is not None
    assert (recompile.latest_failure.expected, recompile.latest_failure.actual) == ("1", "2")


def test_a_compiled_optimizer_is_placed_where_it_is_called() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with compile_inspect.record() as recording:
        torch.compile(optimizer.step, backend="eager")()
    inspection = recording.inspection
    nodes = [node for graph in inspection.graphs_at(Stage.DYNAMO) for node in graph.nodes if node.is_call]
    lines = {inspection.user_line(node.stack) for node in nodes}
    assert {line.file for line in lines if line} == {__file__}


def test_one_break_seen_twice_is_one_break() -> None:
    from torch._subclasses.fake_tensor import UnsupportedOperatorException

    def backend(graph: object, inputs: object) -> None:
        raise UnsupportedOperatorException("odd")

    with compile_inspect.record() as recording:
        torch.compile(fresh_function("y = x + 1\nreturn y * 2"), backend=backend)(torch.ones(2))
    assert len(recording.inspection.breaks) == 1


def test_the_program_may_change_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with compile_inspect.record("a.inspection"):
        os.chdir("elsewhere")
        torch.compile(fresh_function("return x + 1"), backend="eager")(torch.ones(2))
    assert len(compile_inspect.load(tmp_path / "a.inspection").compilations) == 1


def test_devices_and_links_survive_force(tmp_path: Path) -> None:
    if Path("/dev/null").exists():
        with pytest.raises(CaptureError, match="is a device or a pipe"):
            compile_inspect.record("/dev/null", force=True).start()
    (tmp_path / "link").symlink_to(tmp_path / "real.inspection")
    with compile_inspect.record(tmp_path / "link", force=True):
        pass
    assert (tmp_path / "link").is_symlink()
    assert compile_inspect.load(tmp_path / "real.inspection").complete


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CaptureError, match="is a device or a pipe"):
        compile_inspect.load(tmp_path / "pipe")
