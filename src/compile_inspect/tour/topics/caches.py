"""A topic of the tour: the compiler's caches, cold and warm, each in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compile_inspect.errors import InspectError
from compile_inspect.wording.quantities import count, seconds, size

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

PROGRAM = '''\
"""One compiled function: its first call, a later call, and the first call after torch.compiler.reset()."""

import json
import sys
from time import perf_counter

import torch

from compile_inspect.capture.counting import compilation_counts


def score(x, weight):
    return torch.softmax(torch.relu(x @ weight), dim=-1)


def timed():
    started = perf_counter()
    compiled(x, weight)
    if x.is_cuda:
        torch.cuda.synchronize()
    return perf_counter() - started


torch.manual_seed(0)
x, weight = torch.randn(32, 64, device=sys.argv[1]), torch.randn(64, 16, device=sys.argv[1])
compiled = torch.compile(score)
with torch.no_grad():
    seconds = [timed(), timed()]
    counts = [compilation_counts()]
    torch.compiler.reset()
    seconds.append(timed())
    counts.append(compilation_counts())
artifacts = torch.compiler.save_cache_artifacts()
saved = {} if artifacts is None else {kind: len(keys) for kind, keys in artifacts[1].artifacts.items()}
size = 0 if artifacts is None else len(artifacts[0])
print(json.dumps({"seconds": seconds, "counts": counts, "bytes": size, "saved": saved}))
'''
_CHOICES = ("at least half as long as with an empty cache", "less than half as long")
_TIMEOUT_SECONDS = 120.0
_FOLDER_PREFIX = "compile-inspect-caches-"
"""The prefix of the cache folders that the tour creates."""


@dataclass(frozen=True)
class CacheRun:
    """One process: the times of its calls, and its lookups in the on-disk caches before and after a reset."""

    name: str
    first_seconds: float
    later_seconds: float
    after_reset_seconds: float
    hits: int
    misses: int
    hits_after_reset: int
    misses_after_reset: int
    artifact_bytes: int = 0
    """The size of the result of torch.compiler.save_cache_artifacts, which another machine can load."""
    artifacts: int = 0


@dataclass(frozen=True)
class CacheComparison:
    """The measurements of `run_cache_comparison`."""

    runs: tuple[CacheRun, ...]
    user_folder: str
    files: int = 0
    folder_bytes: int = 0

    def answer(self) -> tuple[str, ...]:
        """What a warm cache saves and what a reset clears, with the numbers of this run."""
        if len(self.runs) < 2:
            return ()
        cold, warm = self.runs[0], self.runs[1]
        return (
            f"With an empty cache, the first call took {seconds(cold.first_seconds)} "
            f"({count(cold.misses, 'miss', 'misses')}, {count(cold.hits, 'hit')}); in a new process with the same folder it "
            "took "
            f"{seconds(warm.first_seconds)} ({count(warm.misses, 'miss', 'misses')}, {count(warm.hits, 'hit')}). "
            f"A later call took {seconds(warm.later_seconds)}.",
            f"After torch.compiler.reset(), the next call took {seconds(cold.after_reset_seconds)}, with "
            f"{count(cold.hits_after_reset, 'hit')} and {count(cold.misses_after_reset, 'miss', 'misses')}: this process had "
            "to "
            "compile again, and "
            + ("the cache on disk was still there." if cold.hits_after_reset else "nothing was found on disk."),
            f"The folder contained {count(self.files, 'file')} ({size(self.folder_bytes)}). "
            "torch.compiler.save_cache_artifacts() "
            f"returned {count(cold.artifacts, 'entry', 'entries')} ({size(cold.artifact_bytes)}). This lesson uses a temporary "
            "folder; "
            f"your own cache folder, from TORCHINDUCTOR_CACHE_DIR or by default, is {self.user_folder}.",
        )


def run_cache_comparison(target: Target | None = None, *, guide: Guide | None = None) -> CacheComparison:
    """Compile the same function in two processes that share one folder, which is empty at first.

    The program is always the tour's own, because it must start in a fresh process.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    user_folder = _user_folder(guide)
    if not guide.machine.inductor:
        guide.note(guide.machine.missing_requirement)
        return CacheComparison((), user_folder)
    guide.ask("In a new process with a filled cache, how long does the first call take compared with an empty cache?", _CHOICES)
    program = guide.folder.write("first_call.py", PROGRAM)
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX, ignore_cleanup_errors=True) as folder:
        runs = []
        for name in ("empty", "filled"):
            with guide.working(f"running a new process with the cache {name}"):
                runs.append(_run(name, program, guide.machine.device, folder))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        result = CacheComparison(tuple(runs), user_folder, len(files), sum(path.stat().st_size for path in files))
    _show(result, program, guide)
    return result


def _user_folder(guide: Guide) -> str:
    """The cache folder of the user's programs, not the temporary one of a tour."""
    from compile_inspect import torch_private
    from compile_inspect.torch_private.tour import default_cache_folder

    folder = guide.user_cache_folder or torch_private.cache_folder()
    return default_cache_folder() if Path(folder).name.startswith(_FOLDER_PREFIX) else folder


def _run(name: str, program: Path, device: str, folder: str) -> CacheRun:
    command = [sys.executable, str(program), device]
    try:
        process = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise InspectError(f"{program} did not finish within {_TIMEOUT_SECONDS:.0f} s: run it by itself") from None
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or ["it printed no error"])[-1]
        raise InspectError(f"{program} exited with status {process.returncode}: {last_line}")
    report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    before, after = (_lookups(counts) for counts in report["counts"])
    first, later, after_reset = report["seconds"]
    return CacheRun(
        name,
        first_seconds=first,
        later_seconds=later,
        after_reset_seconds=after_reset,
        hits=before[0],
        misses=before[1],
        hits_after_reset=after[0] - before[0],
        misses_after_reset=after[1] - before[1],
        artifact_bytes=report["bytes"],
        artifacts=sum(report["saved"].values()),
    )


def _environment(folder: str) -> dict[str, str]:
    """The variables of a process that inherits none of torch's settings from this one."""
    import torch

    import compile_inspect

    package_folders = dict.fromkeys(str(Path(file or ".").parent.parent) for file in (compile_inspect.__file__, torch.__file__))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCH", "TRITON_CACHE", "PYTORCH", "INDUCTOR", "COMPILE_INSPECT", "PYTHON"))
    }
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(package_folders),
        "TORCHINDUCTOR_CACHE_DIR": folder,
        # Inductor tests which vector instructions the compiler supports, once per folder. That takes seconds and is skipped.
        "TORCHINDUCTOR_VEC_ISA_OK": "0",
    }


def _lookups(counts: dict[str, int]) -> tuple[int, int]:
    """Hits and misses of the caches of AOTAutograd and of Inductor's graphs.

    >>> _lookups({"inductor.fxgraph_cache_hit": 1, "aot_autograd.autograd_cache_miss": 2, "frames.ok": 3})
    (1, 2)
    """
    names = ("inductor.fxgraph_cache", "aot_autograd.autograd_cache")
    hits, misses = (sum(counts.get(f"{name}_{what}", 0) for name in names) for what in ("hit", "miss"))
    return hits, misses


def _show(result: CacheComparison, program: Path, guide: Guide) -> None:
    columns = ["Cache", ">First call", ">Hits", ">Misses", ">Later call", ">Call after reset", ">Hits", ">Misses"]
    rows = [
        [
            run.name,
            *(seconds(run.first_seconds), str(run.hits), str(run.misses), seconds(run.later_seconds)),
            *(seconds(run.after_reset_seconds), str(run.hits_after_reset), str(run.misses_after_reset)),
        ]
        for run in result.runs
    ]
    guide.table("The same program, run twice, each time in a new process", columns, rows)
    guide.remark(
        (f"The program is {program.name} in the tour's folder. " if guide.folder.permanent else "")
        + "On a CPU, its kernels do not use vector instructions. That skips the tests by which Inductor "
        "determines which vector instructions the compiler supports, once per cache folder."
    )
    cold, warm = result.runs
    guide.reveal(1 if warm.first_seconds < cold.first_seconds / 2 else 0)
