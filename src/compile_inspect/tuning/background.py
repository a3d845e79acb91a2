"""Tuning while the program goes on: eager from the first call, the verified package from some later one."""

from __future__ import annotations

import atexit
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.variants import Refused, Task
from compile_inspect.variants.base import one_line
from compile_inspect.variants.functional import Functional, traced

logger = logging.getLogger("compile_inspect")


class Build:
    """A package being built by another process.

    The graph is traced here, which takes about as long as a few calls; the compiler, which takes seconds, runs there.
    """

    def __init__(self, task: Task) -> None:
        with torch_private.suppressed_compiler_output():
            self.functional: Functional
            self.functional, graph, inputs = traced(task)
            self._directory = Path(tempfile.mkdtemp(prefix="compile-inspect-"))
            self.package = self._directory / "package.pt2"
            program = self._directory / "program.pt2"
            torch_private.save_program(graph, inputs, str(program))
        command = [sys.executable, "-m", "compile_inspect.tuning.builder", str(program), str(self.package)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.done = False
        self.error: str | None = None
        self._flat: Callable[[list[Any]], list[Any]] | None = None
        # A thread that sleeps: asking the process at every call would cost a system call each time.
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()
        atexit.register(self.stop)

    def _watch(self) -> None:
        _, said = self._process.communicate()
        if self._process.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            self.error = lines[-1] if lines else f"the compiler ended with status {self._process.returncode}"
        else:
            try:  # here, where nobody waits: torch first finds out what the CPU can do
                self._flat = torch_private.load_package(str(self.package))
            except Exception as error:
                self.error = one_line(error)
        self.done = True

    def load(self) -> Callable[[list[Any]], list[Any]]:
        """The compiled function; raises `Refused` where there is none."""
        if self._flat is None:
            raise Refused(self.error or "it was stopped")
        return self._flat

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the other process has ended; whether it has."""
        self._watcher.join(seconds)
        return self.done

    def stop(self) -> None:
        """End the other process and remove its files."""
        if self._process.poll() is None:
            self._process.kill()
        shutil.rmtree(self._directory, ignore_errors=True)
        atexit.unregister(self.stop)
