"""Inductor's output for a traced task, called without guards: directly, or from a package compiled ahead of time."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.base import Prepared, RefusalError, Step, Variant
from compile_inspect.variants.captured_program import CapturedProgram, FlatFunction, trace_task
from compile_inspect.variants.loops import with_loops
from compile_inspect.variants.task import Task

FROZEN_ASSUMPTIONS = (
    "Shapes, dtypes, devices and layouts of inputs stay as in the example.",
    "Python values that the function reads stay as they were, and every branch takes the same path.",
)


@dataclass(frozen=True)
class InductorCallable(Variant):
    """The task traced, and the graph compiled by Inductor."""

    @property
    def name(self) -> str:
        """`inductor-callable`."""
        return "inductor-callable"

    @property
    def assumes(self) -> tuple[str, ...]:
        """Everything except tensors is frozen."""
        return FROZEN_ASSUMPTIONS

    def build(self, task: Task) -> Prepared:
        """Trace, compile, call once."""
        with torch_private.suppressed_compiler_output():
            program, graph, inputs = trace_task(task)
            compiled = torch_private.compile_graph(graph, inputs)

        def flat(tensors: list[Any]) -> list[Any]:
            return compiled(*tensors)  # type: ignore[no-any-return]

        return prepare_flat(self, program, flat)


@dataclass(frozen=True)
class AotInductor(Variant):
    """The task traced, exported, compiled into a package, and called through the package's loader."""

    path: str | None = None
    """Where to write the package; by default, a temporary file."""
    loops: str | None = None
    """Which matrix-vector products become loops instead of library calls: none, `all`, or those `across` memory."""

    @property
    def name(self) -> str:
        """`aot-inductor`, `aot-inductor/loops` or `aot-inductor/loops-across`."""
        return "aot-inductor" + {None: "", "all": "/loops", "across": "/loops-across"}[self.loops]

    @property
    def assumes(self) -> tuple[str, ...]:
        """Everything except tensors is frozen."""
        return FROZEN_ASSUMPTIONS

    def build(self, task: Task) -> Prepared:
        """Trace, export, compile, load, call once."""
        with torch_private.suppressed_compiler_output():
            program, graph, inputs = trace_task(task)
            if self.loops is not None:
                graph = with_loops(graph, inputs, self.loops)
            path = self.path or _temporary_path()
            torch_private.write_package(graph, inputs, path)
        if task.device != "cpu":
            check_loading(path)
        return prepare_flat(self, program, torch_private.load_package(path), package=path)


def _temporary_path() -> str:
    """A path for a package that is removed when the process ends."""
    directory = tempfile.mkdtemp(prefix="compile-inspect-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return str(Path(directory) / "package.pt2")


def check_loading(path: str) -> None:
    """Refuse a package that crashes the process that loads it, as some do on CUDA, by loading it in another process first."""
    process = subprocess.run([sys.executable, "-c", torch_private.LOAD_PACKAGE, path], capture_output=True, check=False)
    if process.returncode < 0:
        raise RefusalError(f"loading the package ends a process with signal {-process.returncode}")
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        raise RefusalError(f"the package cannot be loaded: {lines[-1] if lines else 'no reason given'}")


def prepare_flat(variant: Variant, program: CapturedProgram, flat: FlatFunction, *, package: str | None = None) -> Prepared:
    """Make a prepared variant from a compiled function of tensors."""
    task = program.task

    def run(*args: Any, **kwargs: Any) -> Step:
        return program.run(flat, args, kwargs)

    run(*task.args, **task.kwargs)
    call = None if task.gradients else program.unguarded_call(flat)
    return Prepared(variant, run, call, 0.0, flat, program, package)
