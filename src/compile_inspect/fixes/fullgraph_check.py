"""Check whether `fullgraph=True` works, in this process or in a new one where nothing was loaded or compiled before."""

from __future__ import annotations

import json
import os
import pickle
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
from compile_inspect.fixes.program import Program
from compile_inspect.silence import silence
from compile_inspect.target import Target
from compile_inspect.torch_private.compilation_watch import CompilationWatch
from compile_inspect.variants.base import one_line

_TIMEOUT_SECONDS = 600
_INPUTS_SUFFIX = ".inputs"
_SERVE_CODE = "import sys; from compile_inspect.fixes.fullgraph_check import serve; serve(*sys.argv[1:])"


def fullgraph_failure(target: Target, backend: str, settings: Sequence[str] = ()) -> str | None:
    """The error of torch.compile with `fullgraph=True` for a target; None if it works."""
    with torch_private.preserve_configuration(), silence(), torch_private.suppressed_compiler_output():
        for code in settings:
            torch_private.run_setting(code)
        torch_private.forget_compiled_code()
        try:
            inspection = inspect(
                replace(target, gradients=False if target.gradients is False else None), backend=backend, fullgraph=True
            )
        except Exception as error:
            return one_line(error)
        return (
            _failure_of_later_calls(target, backend)
            if inspection.uncaught_failure is None
            else inspection.uncaught_failure.summary
        )


def _failure_of_later_calls(target: Target, backend: str) -> str | None:
    """The error if repeated calls recompile until torch's limit is reached; stop at the first call that compiles nothing."""
    import torch

    compiled = torch.compile(target.function, backend=backend, fullgraph=True)
    max_calls = 1 + (torch_private.recompile_limit("recompile_limit") or 0)
    with CompilationWatch() as watch, torch.no_grad() if target.gradients is False else nullcontext():
        for number in range(2, max_calls + 2):
            frames, (args, kwargs) = watch.frames, clone_inputs((target.args, target.kwargs))
            try:
                compiled(*args, **kwargs)
            except Exception as error:  # an exception of the program itself at a later call is not the compiler's fault
                return f"call {number} reaches the recompile limit: {one_line(error)}" if watch.reached_limit else None
            if watch.frames == frames:
                return None
    return None


def fullgraph_failure_in_new_process(
    specification: str,
    inputs: str | None,
    texts: Mapping[str, str],
    settings: Sequence[str],
    backend: str,
    *,
    no_grad: bool = False,
    example: bytes | None = None,
) -> str | None:
    """Like `fullgraph_failure`, for a target that a new process loads, with `texts` in place of some files.

    `example` are inputs that were not named but passed as objects, as `pickled_inputs` returns them.
    """
    with tempfile.TemporaryDirectory(prefix="compile-inspect-") as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        options = {"specification": specification, "inputs": inputs, "texts": dict(texts), "no_grad": no_grad}
        request.write_text(json.dumps({**options, "settings": list(settings), "backend": backend}))
        if example is not None:
            request.with_suffix(_INPUTS_SUFFIX).write_bytes(example)
        path = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
        command = [sys.executable, "-c", _SERVE_CODE, str(request), str(answer)]
        try:
            process = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"it did not finish within {_TIMEOUT_SECONDS} s"
        if not answer.exists():
            return f"the process that tried it exited with status {process.returncode}"
        failure = json.loads(answer.read_text())["failure"]
        return None if failure is None else str(failure)


def pickled_inputs(target: Target) -> bytes | None:
    """The inputs of a target for another process; None if they cannot be pickled."""
    try:
        return pickle.dumps((target.args, dict(target.kwargs), target.further, target.gradients))
    except (pickle.PicklingError, TypeError, AttributeError, RuntimeError):
        return None


def _unpickled(data: bytes) -> Target:
    args, kwargs, further, gradients = pickle.loads(data)
    return Target(_replaced_on_loading, args, kwargs, further, gradients)


def _replaced_on_loading() -> None:
    """The function of a target that has not been loaded yet."""


def serve(request: str, answer: str) -> None:
    """The entry point of the new process: read a request file and write an answer file."""
    options = json.loads(Path(request).read_text())
    try:
        saved = Path(request).with_suffix(_INPUTS_SUFFIX)
        example = _unpickled(saved.read_bytes()) if saved.exists() else None
        program = Program.load(
            options["specification"], options["inputs"], texts=options["texts"], no_grad=options["no_grad"], example=example
        )
        with program.installed():
            failure = fullgraph_failure(program.target, options["backend"], options["settings"])
    except Exception as error:
        failure = one_line(error)
    Path(answer).write_text(json.dumps({"failure": failure}))
