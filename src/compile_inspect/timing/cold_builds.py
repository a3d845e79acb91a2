"""Builds in separate processes: cold, with an empty cache folder, and warm, with what the last cold build left in it.

In a process that has built other variants, the cost of a build depends on their order: compilers are already imported, kernels
compiled and C++ headers cached. Here every build starts from the same state. The process imports torch's compilers as part of
the build, as a program does on its first compilation.
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

_MAX_BUILD_SECONDS = 900
_POLL_SECONDS = 0.25
_SERVE_SCRIPT = "import sys; from compile_inspect.timing.cold_builds import serve; serve(*sys.argv[1:])"

OnWait = Callable[[str], object]


@dataclass(frozen=True)
class TargetOrigin:
    """The target as it was named on the command line, so that another process can load it."""

    specification: str
    inputs: str | None = None


@dataclass(frozen=True)
class FreshBuilds:
    """Durations of builds in separate processes, cold and warm, or the reason why there are none."""

    cold_seconds: tuple[float, ...] = ()
    warm_seconds: float | None = None
    reason: str = ""
    cold_cpu_seconds: tuple[float, ...] = ()
    """CPU time of each cold build."""

    def added_to(self, build: Build) -> Build:
        """`build`, which was measured in this process, with these figures added."""
        return replace(
            build,
            cold_seconds=median(self.cold_seconds) if self.cold_seconds else None,
            cold_samples=self.cold_seconds,
            cold_cpu_seconds=median(self.cold_cpu_seconds) if self.cold_cpu_seconds else None,
            warm_seconds=self.warm_seconds,
            reason=self.reason,
        )


@dataclass(frozen=True)
class TaskSource:
    """How another process gets the task at one point of a sweep: the target's origin, the sweep, and the index of the point."""

    origin: TargetOrigin | None = None
    sweep: Sweep | None = None
    index: int = 0


def measure_fresh_builds(
    task: Task,
    build_variant: str | Variant,
    *,
    source: TaskSource | None = None,
    builds: int = 1,
    warm: bool = True,
    on_wait: OnWait = lambda state: None,
) -> FreshBuilds:
    """Build a variant of a task `builds` times cold and then once warm, each time in a separate process.

    The other process loads a target with an origin by name; any other target is pickled, by value if it cannot be imported.
    `on_wait` is called four times per second with the current state. Ctrl-C ends the process and is raised.
    """
    source = source or TaskSource()
    with tempfile.TemporaryDirectory(prefix="compile-inspect-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            (folder / "request").write_bytes(pickling.dumps(_request(task, build_variant, source)))
        except Exception as error:  # an object may raise anything when it is pickled
            message = str(error) if isinstance(error, TargetError) else one_line(error)
            return FreshBuilds(reason=f"it cannot be sent to another process: {message}")
        seconds: list[float] = []
        cpu: list[float] = []
        caches = [folder / f"cache-{number}" for number in range(builds)]
        for cache in [*caches, *(caches[-1:] if warm else [])]:
            state = "warm" if len(seconds) == builds else "cold"
            answer = _run(folder, cache, lambda state=state: on_wait(state))  # type: ignore[misc]
            if "seconds" not in answer:
                return FreshBuilds(tuple(seconds), reason=str(answer["reason"]))
            seconds.append(float(answer["seconds"]))
            cpu.append(float(answer["cpu"]))
    return FreshBuilds(tuple(seconds[:builds]), seconds[builds] if warm else None, cold_cpu_seconds=tuple(cpu[:builds]))


def _request(task: Task, build_variant: str | Variant, source: TaskSource) -> dict[str, Any]:
    import torch

    request: dict[str, Any] = {
        "variant": build_variant,
        "gradients": task.gradients,
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
        "sweep": None,
        "index": 0,
    }
    if source.origin is None:
        return {**request, "function": task.function, "args": task.args, "kwargs": dict(task.kwargs)}
    sweep = dict(source.sweep) if isinstance(source.sweep, Mapping) else source.sweep
    origin = {"specification": source.origin.specification, "inputs": source.origin.inputs}
    return {**request, **origin, "sweep": sweep, "index": source.index}


def _run(folder: Path, cache: Path, on_wait: Callable[[], object]) -> dict[str, Any]:
    """Run one build in a separate process; return its answer, or the reason why there is none."""
    answer, errors = folder / "answer", folder / "errors"
    answer.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path),
    }
    command = [sys.executable, "-c", _SERVE_SCRIPT, str(folder / "request"), str(answer)]
    started = monotonic()
    with errors.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file, stdin=subprocess.DEVNULL)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                    break
                on_wait()
                if monotonic() - started > _MAX_BUILD_SECONDS:
                    return {"reason": f"a build in a separate process did not finish within {_MAX_BUILD_SECONDS} s"}
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if answer.exists():
        result: dict[str, Any] = pickling.loads(answer.read_bytes())
        return result
    lines = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "it printed no error"
    return {"reason": f"the build process ended with status {process.returncode}: {last}"}


def serve(request: str, result: str) -> None:
    """The main function of the build process: read a request, build, write the answer."""
    try:
        loaded_request = pickling.loads(Path(request).read_bytes())
    except Exception as error:  # for example, a class that cannot be imported
        response = {"reason": f"it cannot be loaded in another process: {one_line(error)}"}
    else:
        response = answer(loaded_request)
    partial = Path(result).with_suffix(".partial")
    partial.write_bytes(pickling.dumps(response))
    partial.rename(result)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Build what a request asks for; return how long it took, or why it failed."""
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
        requested = request["variant"]
        with torch.set_grad_enabled(task.gradients):
            before = _cpu_seconds()
            prepared = (variant(requested) if isinstance(requested, str) else requested).prepare(task)
            return {"seconds": prepared.build_seconds, "cpu": _cpu_seconds() - before}
    except InspectError as error:
        return {"reason": str(error)}
    except Exception as error:  # for example, a module that cannot be imported there
        return {"reason": one_line(error)}


def _cpu_seconds() -> float:
    """CPU time of this process and of the processes it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
