"""Captures of real programs, recorded once and shared by all tests.

Each program of tests/programs runs in a process of its own under `compile-inspect run`, with an empty cache directory,
so that Inductor's scheduler really runs. The plain run that results are compared with comes afterwards and finds the
caches filled, which is quick and at the same time shows that the recorder changes no cache key.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from filelock import FileLock

import compile_inspect
from browser_pages import breaking, browser, gpt2, opening, training  # noqa: F401 - fixtures
from compile_inspect.records import Inspection

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"

sys.path.append(str(ROOT / "benchmarks"))  # its modules are scripts that import each other


@dataclass(frozen=True)
class Recorded:
    """A program that was run under the recorder."""

    process: subprocess.CompletedProcess[str]
    path: Path
    inspection: Inspection
    cache: Path


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that need a CUDA device are skipped where there is none, and guards are not timed."""
    leave_guards_untimed()
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")


def leave_guards_untimed() -> None:
    """Torch empties the processor's caches to time the guards of every compilation, 30 ms for a line of a log."""
    guards = sys.modules.get("torch._dynamo.guards")
    if guards is not None and hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = lambda *_: 0.0


@pytest.fixture
def always_shortcuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every change a guard finds a shortcut again, and takes it however quick it is and however slow the machine."""
    from compile_inspect.variants import guard

    monkeypatch.setattr(guard, "MAX_RECAPTURE_SECONDS", 600.0)
    monkeypatch.setattr(guard, "MAX_HARMLESS_ASSIGNMENTS", 10**9)
    monkeypatch.setattr(guard, "SHORTCUT_DELAY_GROWTH", 0)
    monkeypatch.setattr(guard, "is_quicker", lambda one, other: True)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a variant is compared at does not depend on how long a slow or busy machine takes to build and to call it."""
    for module, limit in (
        ("reference", "MAX_PROBE_SECONDS"),
        ("comparison", "MAX_REBUILD_SECONDS"),
        ("repetition", "MAX_CALL_SECONDS"),
    ):
        monkeypatch.setattr(importlib.import_module(f"compile_inspect.agreement.{module}"), limit, 300.0)


def quick_first(items: Iterable[Any], count: int) -> list[Any]:
    """Parameters of a test: the first `count` for every run, the others marked `slow`."""
    return [item if index < count else pytest.param(item, marks=pytest.mark.slow) for index, item in enumerate(items)]


def environment(cache: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "COMPILE_INSPECT"))}
    source = str(ROOT / "src")
    return {**kept, "PYTHONPATH": source, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TERM": "dumb", **more}


def run_plain(script: Path, *arguments: str, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, env=environment(cache, **more), capture_output=True, text=True, timeout=500)


def run_recorded(script: Path, *arguments: str, output: Path, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compile_inspect", "run", "--quiet", "-o", str(output), str(script), *arguments]
    return subprocess.run(command, env=environment(cache, **more), capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """`recorded("gpt2")`: the capture of that program, made when it is first asked for, by whichever process that is."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "recorded"
    shared.mkdir(exist_ok=True)
    made: dict[str, Recorded] = {}

    def get(name: str) -> Recorded:
        if name not in made:
            folder = shared / name
            path, cache, said = folder / f"{name}.inspection", folder / "cache", folder / "said.json"
            with FileLock(f"{folder}.lock"):
                if not said.exists():
                    folder.mkdir(exist_ok=True)
                    process = run_recorded(PROGRAMS / f"{name}.py", output=path, cache=cache)
                    said.write_text(json.dumps([process.args, process.returncode, process.stdout, process.stderr]))
            process = subprocess.CompletedProcess(*json.loads(said.read_text()))
            assert process.returncode == 0, process.stderr
            made[name] = Recorded(process, path, compile_inspect.load(path), cache)
        return made[name]

    return get


@pytest.fixture
def quick_cache(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A cache directory shared by programs whose own kernels do not matter."""
    root = tmp_path_factory.getbasetemp() / "quick-cache"
    root.mkdir(exist_ok=True)
    return root


_numbers = itertools.count()
_folder = tempfile.TemporaryDirectory(prefix="compile-inspect-tests-")


def fresh_function(body: str, **names: object) -> Callable[..., Any]:
    """A function of `x` that torch has never seen: new code in a new file every time.

    Torch remembers by file and line which sizes varied before, and 2.11 counts all functions without a file as one.
    """
    name = f"program_{next(_numbers)}"
    source = f"def {name}(x):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    file = Path(_folder.name) / f"{name}.py"
    file.write_text(source)
    exec(compile(source, str(file), "exec"), names)
    return cast(Callable[..., Any], names[name])
