"""Builds in processes of their own: cold, with an empty cache folder, and warm, with what the last cold build left in it.

What a build costs in a process that has built other variants depends on their order: it finds imported compilers, compiled
kernels and warmed C++ headers. Here every build starts from the same nothing. The process imports torch's compilers as part of
the build, as any program does that compiles something first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from compile_inspect.errors import InspectError, TargetError
from compile_inspect.records.timing import Build
from compile_inspect.target import Target, find_target
from compile_inspect.timing import pickling
from compile_inspect.timing.sweep import Sweep, points
from compile_inspect.variants import Task, Variant, variant
from compile_inspect.variants.base import one_line

_MOST_SECONDS = 900
_POLL_SECONDS = 0.25
_SERVE = "import sys; from compile_inspect.timing.cold_builds import serve; serve(*sys.argv[1:])"

Waiting = Callable[[str], object]


@dataclass(frozen=True)
class Origin:
    """Where a target came from on the command line, so that another process can find it again."""

    specification: str
    inputs: str | None = None


@dataclass(frozen=True)
class FreshBuilds:
    """Seconds of builds in processes of their own: cold ones, a warm one; or the reason why there are none."""

    cold: tuple[float, ...] = ()
    warm_seconds: float | None = None
    reason: str = ""
    cold_cpu: tuple[float, ...] = ()
    """CPU time of every cold build."""

    def added_to(self, build: Build) -> Build:
        """A build with these figures beside the one seen in the measuring process."""
        cold = median(self.cold) if self.cold else None
        return replace(
            build,
            cold_seconds=cold,
            cold_samples=self.cold,
            cold_cpu_seconds=median(self.cold_cpu) if self.cold_cpu else None,
            warm_seconds=self.warm_seconds,
            reason=self.reason,
        )


@dataclass(frozen=True)
class Place:
    """How another process gets at the inputs of one point of a sweep: the target's name, the sweep, and which point of it."""

    origin: Origin | None = None
    sweep: Sweep | None = None
    index: int = 0


def build_afresh(
    task: Task,
    chosen: str | Variant,
    *,
    place: Place | None = None,
    builds: int = 1,
    warm: bool = True,
    waiting: Waiting = lambda told: None,
) -> FreshBuilds:
    """Build a variant of a task `builds` times cold and then once warm, each time in a process of its own.

    A target with an origin is found by its name, any other is sent there, by value if it has no name. `waiting` is called
    four times a second with what is being done. Ctrl-C ends the process and is passed on.
    """
    place = place or Place()
    with tempfile.TemporaryDirectory(prefix="compile-inspect-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            (folder / "request").write_bytes(pickling.dumps(_request(task, chosen, place)))
        except Exception as error:  # whatever an object raises when it is pickled
            told = str(error) if isinstance(error, TargetError) else one_line(error)
            return FreshBuilds(reason=f"it cannot be sent to another process: {told}")
        seconds: list[float] = []
        cpu: list[float] = []
        caches = [folder / f"cache-{number}" for number in range(builds)]
        for cache in [*caches, *(caches[-1:] if warm else [])]:
            state = "warm" if len(seconds) == builds else "cold"
            answer = _run(folder, cache, lambda state=state: waiting(state))  # type: ignore[misc]
            if "seconds" not in answer:
                return FreshBuilds(tuple(seconds), reason=str(answer["reason"]))
            seconds.append(float(answer["seconds"]))
            cpu.append(float(answer["cpu"]))
    return FreshBuilds(tuple(seconds[:builds]), seconds[builds] if warm else None, cold_cpu=tuple(cpu[:builds]))


def _request(task: Task, chosen: str | Variant, place: Place) -> dict[str, Any]:
    import torch

    request: dict[str, Any] = {
        "variant": chosen,
        "gradients": task.gradients,
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
        "sweep": None,
        "index": 0,
    }
    if place.origin is None:
        return {**request, "function": task.function, "args": task.args, "kwargs": dict(task.kwargs)}
    sweep = dict(place.sweep) if isinstance(place.sweep, Mapping) else place.sweep
    named = {"specification": place.origin.specification, "inputs": place.origin.inputs}
    return {**request, **named, "sweep": sweep, "index": place.index}


def _run(folder: Path, cache: Path, waiting: Callable[[], object]) -> dict[str, Any]:
    """One build in a process of its own: its answer, or the reason why there is none."""
    answer, errors = folder / "answer", folder / "errors"
    answer.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path),
    }
    command = [sys.executable, "-c", _SERVE, str(folder / "request"), str(answer)]
    started = monotonic()
    with errors.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file, stdin=subprocess.DEVNULL)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                    break
                waiting()
                if monotonic() - started > _MOST_SECONDS:
                    return {"reason": f"a build in a process of its own did not end within {_MOST_SECONDS} s"}
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if answer.exists():
        found: dict[str, Any] = pickling.loads(answer.read_bytes())
        return found
    lines = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "it says nothing"
    return {"reason": f"the process of the build ended with status {process.returncode}: {last}"}


def serve(request: str, result: str) -> None:
    """What the new process runs: read a request, build, write the answer."""
    try:
        read = pickling.loads(Path(request).read_bytes())
    except Exception as error:  # a class that cannot be found again, say
        found = {"reason": f"it cannot be read in another process: {one_line(error)}"}
    else:
        found = answer(read)
    partial = Path(result).with_suffix(".partial")
    partial.write_bytes(pickling.dumps(found))
    partial.rename(result)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Build what a request asks for and say how long it took, or why it cannot be."""
    import torch

    try:
        torch.set_num_threads(request.get("threads") or torch.get_num_threads())
        torch.set_float32_matmul_precision(request.get("precision") or torch.get_float32_matmul_precision())
        if "function" in request:
            target = Target(request["function"], request["args"], request["kwargs"])
        else:
            target = find_target(request["specification"], request["inputs"])
        task = Task(target.function, target.args, target.kwargs, request["gradients"], target.further)
        _, task = next(islice(points(task, request.get("sweep")), request.get("index", 0), None))
        chosen = request["variant"]
        with torch.set_grad_enabled(task.gradients):
            before = _cpu_seconds()
            prepared = (variant(chosen) if isinstance(chosen, str) else chosen).prepare(task)
            return {"seconds": prepared.build_seconds, "cpu": _cpu_seconds() - before}
    except InspectError as error:
        return {"reason": str(error)}
    except Exception as error:  # a module that cannot be imported there, say
        return {"reason": one_line(error)}


def _cpu_seconds() -> float:
    """CPU time of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
