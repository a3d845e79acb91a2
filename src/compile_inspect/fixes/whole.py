"""Whether `fullgraph=True` works: in this process, or in one of its own where nothing was loaded or compiled before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.capture.api import inspect
from compile_inspect.fixes.loading import Program
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.torch_private.compilation_watch import CompilationWatch
from compile_inspect.variants.base import one_line

_MOST_SECONDS = 600
_SERVE = "import sys; from compile_inspect.fixes.whole import serve; serve(*sys.argv[1:])"


def fullgraph_failure(target: Target, backend: str, settings: Sequence[str] = ()) -> str | None:
    """What torch.compile with `fullgraph=True` says against a target; None where it works."""
    with torch_private.preserve_configuration(), silence(), torch_private.suppressed_compiler_output():
        for code in settings:
            torch_private.run_setting(code)
        torch_private.forget_compiled_code()
        try:
            found = inspect(
                replace(target, gradients=False if target.gradients is False else None), backend=backend, fullgraph=True
            )
        except Exception as error:
            return one_line(error)
        return _failure_of_later_calls(target, backend) if found.raised is None else found.raised.told


def _failure_of_later_calls(target: Target, backend: str) -> str | None:
    """What is raised where calls are compiled again until torch allows no more; calls that compile nothing end the search."""
    import torch

    compiled = torch.compile(target.function, backend=backend, fullgraph=True)
    most = 1 + (torch_private.recompile_limit("recompile_limit") or 0)
    with CompilationWatch() as watch, torch.no_grad() if target.gradients is False else nullcontext():
        for number in range(2, most + 2):
            frames, (args, kwargs) = watch.frames, clone_inputs((target.args, target.kwargs))
            try:
                compiled(*args, **kwargs)
            except Exception as error:  # what the program raises when it is called again is not the compiler's doing
                return f"call {number} reaches the recompile limit: {one_line(error)}" if watch.reached_limit else None
            if watch.frames == frames:
                return None
    return None


def fullgraph_failure_elsewhere(
    specification: str,
    inputs: str | None,
    texts: Mapping[str, str],
    settings: Sequence[str],
    backend: str,
    *,
    no_grad: bool = False,
) -> str | None:
    """As `fullgraph_failure`, of a target that a process of its own loads, with other texts in the place of some files."""
    with tempfile.TemporaryDirectory(prefix="compile-inspect-") as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked = {"specification": specification, "inputs": inputs, "texts": dict(texts), "no_grad": no_grad}
        request.write_text(json.dumps({**asked, "settings": list(settings), "backend": backend}))
        path = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
        command = [sys.executable, "-c", _SERVE, str(request), str(answer)]
        try:
            done = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=_MOST_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"it did not end within {_MOST_SECONDS} s"
        if not answer.exists():
            return f"the process that tried it ended with status {done.returncode}"
        failure = json.loads(answer.read_text())["failure"]
        return None if failure is None else str(failure)


def serve(request: str, answer: str) -> None:
    """What the other process runs."""
    asked = json.loads(Path(request).read_text())
    try:
        program = Program.load(asked["specification"], asked["inputs"], texts=asked["texts"], no_grad=asked["no_grad"])
        with program.installed():
            failure = fullgraph_failure(program.target, asked["backend"], asked["settings"])
    except Exception as error:
        failure = one_line(error)
    Path(answer).write_text(json.dumps({"failure": failure}))
