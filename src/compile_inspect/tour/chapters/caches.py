"""A chapter of the tour: the caches of the compiler, cold and warm, each in a process of its own."""

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
"""One compiled function: its first call, a later one, and the first after torch.compiler.reset()."""

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
held = 0 if artifacts is None else len(artifacts[0])
print(json.dumps({"seconds": seconds, "counts": counts, "bytes": held, "saved": saved}))
'''
_CHOICES = ("as long as the first time", "less than half as long")
_MOST_SECONDS = 120.0
_OWN_FOLDERS = "compile-inspect-caches-"
"""How the names of folders begin that the tour makes for caches."""


@dataclass(frozen=True)
class CacheRun:
    """One process: seconds of its calls, and look-ups in the caches on disk, before and after a reset."""

    name: str
    first_seconds: float
    later_seconds: float
    after_reset_seconds: float
    hits: int
    misses: int
    hits_after_reset: int
    misses_after_reset: int
    artifact_bytes: int = 0
    """What torch.compiler.save_cache_artifacts gives to take along to another machine."""
    artifacts: int = 0


@dataclass(frozen=True)
class CacheComparison:
    """What `run_cache_comparison` has measured."""

    runs: tuple[CacheRun, ...]
    usual_folder: str
    files: int = 0
    folder_bytes: int = 0

    def answer(self) -> tuple[str, ...]:
        """What a warm cache saves, and what a reset clears, in figures of this run."""
        if len(self.runs) < 2:
            return ()
        cold, warm = self.runs[0], self.runs[1]
        return (
            f"With an empty cache the first call took {seconds(cold.first_seconds)} "
            f"({count(cold.misses, 'miss', 'misses')}, {count(cold.hits, 'hit')}); in a new process with the same folder "
            f"{seconds(warm.first_seconds)} ({count(warm.misses, 'miss', 'misses')}, {count(warm.hits, 'hit')}). "
            f"A later call took {seconds(warm.later_seconds)}.",
            f"After torch.compiler.reset() the next call took {seconds(cold.after_reset_seconds)}, with "
            f"{count(cold.hits_after_reset, 'hit')} and {count(cold.misses_after_reset, 'miss', 'misses')}: it had to be "
            "compiled for again in this process, and "
            + ("what was on disk was still there." if cold.hits_after_reset else "nothing was found on disk."),
            f"The folder held {count(self.files, 'file')}, {size(self.folder_bytes)}; torch.compiler.save_cache_artifacts() "
            f"gave {count(cold.artifacts, 'entry', 'entries')} in {size(cold.artifact_bytes)}. That was a folder of "
            f"this chapter's own; outside the tour it is {self.usual_folder}, by TORCHINDUCTOR_CACHE_DIR or by default.",
        )


def run_cache_comparison(target: Target | None = None, *, guide: Guide | None = None) -> CacheComparison:
    """Compile the same function in two processes that share one folder, empty at first.

    The program is the tour's own, whatever the target: it must start in a process where nothing is loaded.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    usual = _usual_folder(guide)
    if not guide.machine.inductor:
        guide.note(guide.machine.lacking)
        return CacheComparison((), usual)
    guide.guess("In a new process with a filled cache, how long does the first call take?", _CHOICES)
    program = guide.workshop.write("first_call.py", PROGRAM)
    with tempfile.TemporaryDirectory(prefix=_OWN_FOLDERS, ignore_cleanup_errors=True) as folder:
        runs = []
        for name in ("empty", "filled"):
            with guide.working(f"a new process, with the cache {name}"):
                runs.append(_run(name, program, guide.machine.device, folder))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        found = CacheComparison(tuple(runs), usual, len(files), sum(path.stat().st_size for path in files))
    _show(found, program, guide)
    return found


def _usual_folder(guide: Guide) -> str:
    """The folder that programs of this user have: not the one that a tour makes for itself."""
    from compile_inspect import torch_private
    from compile_inspect.torch_private.tour import default_cache_folder

    named = guide.usual_cache or torch_private.cache_folder()
    return default_cache_folder() if Path(named).name.startswith(_OWN_FOLDERS) else named


def _run(name: str, program: Path, device: str, folder: str) -> CacheRun:
    command = [sys.executable, str(program), device]
    try:
        process = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise InspectError(f"{program} has not ended after {_MOST_SECONDS:.0f} s: run it by itself") from None
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise InspectError(f"{program} ended with status {process.returncode}: {last}")
    told: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    before, after = (_looked_up(counts) for counts in told["counts"])
    first, later, after_reset = told["seconds"]
    return CacheRun(
        name,
        first_seconds=first,
        later_seconds=later,
        after_reset_seconds=after_reset,
        hits=before[0],
        misses=before[1],
        hits_after_reset=after[0] - before[0],
        misses_after_reset=after[1] - before[1],
        artifact_bytes=told["bytes"],
        artifacts=sum(told["saved"].values()),
    )


def _environment(folder: str) -> dict[str, str]:
    """The variables of a process that takes nothing of torch's settings over from this one."""
    import torch

    import compile_inspect

    homes = dict.fromkeys(str(Path(file or ".").parent.parent) for file in (compile_inspect.__file__, torch.__file__))
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCH", "TRITON_CACHE", "PYTORCH", "INDUCTOR", "COMPILE_INSPECT", "PYTHON"))
    }
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(homes),
        "TORCHINDUCTOR_CACHE_DIR": folder,
        # What vectors the compiler can do is found out by compiling, once for a folder: several seconds, and not the point.
        "TORCHINDUCTOR_VEC_ISA_OK": "0",
    }


def _looked_up(counts: dict[str, int]) -> tuple[int, int]:
    """Hits and misses of the caches of AOTAutograd and of Inductor's graphs.

    >>> _looked_up({"inductor.fxgraph_cache_hit": 1, "aot_autograd.autograd_cache_miss": 2, "frames.ok": 3})
    (1, 2)
    """
    names = ("inductor.fxgraph_cache", "aot_autograd.autograd_cache")
    hits, misses = (sum(counts.get(f"{name}_{what}", 0) for name in names) for what in ("hit", "miss"))
    return hits, misses


def _show(found: CacheComparison, program: Path, guide: Guide) -> None:
    columns = ["Cache", ">First call", ">Hits", ">Misses", ">Later call", ">After a reset", ">Hits", ">Misses"]
    rows = [
        [
            run.name,
            *(seconds(run.first_seconds), str(run.hits), str(run.misses), seconds(run.later_seconds)),
            *(seconds(run.after_reset_seconds), str(run.hits_after_reset), str(run.misses_after_reset)),
        ]
        for run in found.runs
    ]
    guide.table("The same program twice, each time in a new process", columns, rows)
    guide.say(
        (f"The program is {program.name} in the tour's folder. " if guide.workshop.lasting else "")
        + "On a CPU its kernels were written without vector instructions, "
        "to leave out the trials by which Inductor finds out, once for every folder, which of them the compiler knows."
    )
    cold, warm = found.runs
    guide.settle(1 if warm.first_seconds < cold.first_seconds / 2 else 0)
