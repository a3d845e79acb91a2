"""Builds in fresh processes: with empty caches, then with the caches that the first left.

    python -m compile_inspect.timing.cold REQUEST RESULT      # what the fresh process runs

The process imports torch's compilers as part of the build, as any program does that compiles something first.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compile_inspect.errors import InspectError, TargetError
from compile_inspect.target import Target, find_target
from compile_inspect.variants import Task, variant
from compile_inspect.variants.base import one_line

_MOST_SECONDS = 900
_NOT_AGAIN = (
    "it is defined in the running program (__main__), which a fresh process would have to run again; "
    "move it to a module, or name it on the command line: compile-inspect bench FILE.py:NAME --cold"
)


@dataclass(frozen=True)
class Origin:
    """Where a target came from on the command line, so that another process can find it again."""

    specification: str
    inputs: str | None = None


@dataclass(frozen=True)
class FreshBuilds:
    """Build seconds with empty and with filled caches, or why there are none."""

    cold_seconds: float | None = None
    warm_seconds: float | None = None
    reason: str = ""


def build_afresh(task: Task, name: str, *, origin: Origin | None, sweep: dict[str, list[int]] | None = None) -> FreshBuilds:
    """Build a variant of a task twice, each time in a process of its own.

    With an `origin` the process finds the target by its name and resizes its inputs by `sweep`, one size for each axis;
    otherwise function and inputs are pickled into a temporary file that only this user can read.
    """
    with tempfile.TemporaryDirectory(prefix="compile-inspect-") as folder:
        request = {"variant": name, "gradients": task.gradients, "sweep": sweep}
        if origin is not None:
            request |= {"specification": origin.specification, "inputs": origin.inputs}
        else:
            try:
                request["pickle"] = _pickled(task, Path(folder) / "task.pickle")
            except Exception as error:  # whatever an object raises when it is pickled
                return FreshBuilds(reason=str(error) if isinstance(error, TargetError) else f"not picklable: {one_line(error)}")
        seconds: list[float] = []
        for _ in ("cold", "warm"):
            answer = _run(request, Path(folder))
            if "seconds" not in answer:
                return FreshBuilds(seconds[0] if seconds else None, reason=str(answer["reason"]))
            seconds.append(float(answer["seconds"]))
    return FreshBuilds(seconds[0], seconds[1])


def _pickled(task: Task, path: Path) -> str:
    home = getattr(task.function, "__module__", None)
    if not isinstance(home, str) or home == "__main__" or type(task.function).__module__ == "__main__":
        raise TargetError(_NOT_AGAIN)
    path.write_bytes(pickle.dumps((task.function, task.args, dict(task.kwargs))))
    return str(path)


def _run(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    asked, answered = folder / "request.json", folder / "answer.json"
    asked.write_text(json.dumps(request))
    answered.unlink(missing_ok=True)
    cache = folder / "cache"
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path),
    }
    command = [sys.executable, "-m", "compile_inspect.timing.cold", str(asked), str(answered)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"reason": f"a build in a fresh process did not end within {_MOST_SECONDS} s"}
    if answered.exists():
        answer: dict[str, Any] = json.loads(answered.read_text())
        return answer
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return {"reason": f"a fresh process ended with status {done.returncode}: {lines[-1] if lines else 'it says nothing'}"}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Build what a request asks for and say how long it took, or why it cannot be."""
    from compile_inspect.timing.sweep import points

    try:
        if "pickle" in request:
            # Written by the process that started this one, into a folder of its own.
            function, args, kwargs = pickle.loads(Path(request["pickle"]).read_bytes())
            target = Target(function, args, kwargs)
        else:
            target = find_target(request["specification"], request["inputs"])
        task = Task(target.function, target.args, target.kwargs, request["gradients"])
        _, task = next(points(task, request["sweep"]))
        return {"seconds": variant(request["variant"]).prepare(task).build_seconds}
    except InspectError as error:
        return {"reason": str(error)}
    except Exception as error:  # a class that cannot be found again, say
        return {"reason": one_line(error)}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(answer(json.loads(Path(sys.argv[1]).read_text()))))
