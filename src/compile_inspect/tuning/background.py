"""Tune while the program runs: eager from the first call, the verified package once it is ready."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread, current_thread, main_thread

from compile_inspect import torch_private
from compile_inspect.tuning.cache_key import program_key
from compile_inspect.variants import RefusalError, Task
from compile_inspect.variants.base import one_line
from compile_inspect.variants.captured_program import CapturedProgram, DerivedFunction, FlatFunction, trace_task

logger = logging.getLogger("compile_inspect")

_IMPORT_LOCK = Lock()
"""Held while compilers are imported and while a process is forked: a fork during an import would wait for it forever."""
COMPILER_NICENESS = 5
"""Niceness of the compiler process, so that the program itself has priority."""


class Build:
    """A package that another process builds.

    On Linux the process is a fork: it has the function as it is, traces it and compiles it, and this process waits for
    none of that. Elsewhere, and with tensors that are not on the CPU, the graph is traced here and only compiled there.
    """

    def __init__(
        self, task: Task, derive: Callable[[CapturedProgram], DerivedFunction] | None = None, *, idle_priority: bool = False
    ) -> None:
        """`derive` makes what is built from the task's program, where that is not the program itself.

        `idle_priority`: use only idle CPU time, and do not prepare for comparing with torch's compilers.
        """
        self.task, self._derive, self._idle_priority = task, derive, idle_priority
        self._directory = Path(tempfile.mkdtemp(prefix="compile-inspect-"))
        self.package = self._directory / "package.pt2"
        self._key = self._directory / "key"
        self.done = False
        self.error: str | None = None
        self._forked = can_fork(task)
        self._flat: FlatFunction | None = None
        self._wait: Callable[[], int]
        self._owner = os.getpid()
        self._has_ended = False
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        # A thread that sleeps: polling the process at every call would cost a system call each time.
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()
        atexit.register(self.stop)

    def _start(self) -> None:
        if self._forked:
            self._process_id = fork(self._build_in_child, idle_priority=self._idle_priority)
            self._wait = lambda: _status(self._process_id)
            return
        program = self._directory / "program.pt2"
        with torch_private.suppressed_compiler_output():
            _, graph, inputs = trace_task(self.task, self._derive)
            torch_private.save_program(graph, inputs, str(program))
        command = [sys.executable, "-m", "compile_inspect.tuning.build_process", str(program), str(self.package)]
        with (self._directory / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
        self._process_id, self._wait = process.pid, process.wait

    def _build_in_child(self) -> None:
        output = os.open(self._directory / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        with torch_private.suppressed_compiler_output(), torch_private.single_threaded():
            _, graph, inputs = trace_task(self.task, self._derive)
            torch_private.write_package(graph, inputs, str(self.package))
        self._key.write_text(program_key(self.task))

    def _watch(self) -> None:
        status = self._wait()
        self._has_ended = True
        if status or not self.package.exists():
            self.error = self._last_output_line() or f"the compiler ended with status {status}"
        else:
            try:
                if not self._idle_priority:
                    with _IMPORT_LOCK:  # in this thread, because comparing needs them, and they take seconds
                        torch_private.import_compilers()
                self._flat = torch_private.load_package(str(self.package))
            except Exception as error:
                self.error = one_line(error)
        self.done = True

    def _last_output_line(self) -> str:
        try:
            lines = (self._directory / "output").read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""

    def load(self) -> FlatFunction:
        """The compiled function; raises `RefusalError` if there is none, or if it was built from a different program."""
        if self._flat is None:
            raise RefusalError(self.error or "it was stopped")
        if self._forked and self._key.read_text() != program_key(self.task):
            raise RefusalError("what the function reads has changed since the build began")
        return self._flat

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the other process has ended; returns whether it has."""
        self._watcher.join(seconds)
        return self.done

    def stop(self) -> None:
        """End the other process and remove its files."""
        if os.getpid() != self._owner:
            return  # in a fork of the program, which does not own the build
        if not self._has_ended:
            with contextlib.suppress(OSError):  # it may have just ended
                if self._forked and hasattr(os, "killpg"):
                    os.killpg(self._process_id, signal.SIGKILL)  # with the compilers it has started
                else:
                    os.kill(self._process_id, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        shutil.rmtree(self._directory, ignore_errors=True)
        atexit.unregister(self.stop)


def can_fork(task: Task) -> bool:
    """Whether a forked process could trace the task: on Linux, with no tensors on a device that does not survive a fork."""
    leaves = torch_private.flatten((task.args, dict(task.kwargs)))[0]
    tensors = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] + [item.now() for item in task.held_tensors]
    on_cpu = all(tensor.device.type == "cpu" for tensor in tensors)
    return sys.platform == "linux" and on_cpu and not torch_private.forbids_forks()


def fork(work: Callable[[], None], *, idle_priority: bool = False) -> int:
    """Run a function in a forked process that ends with it; returns the process id.

    The forked process flushes, closes and calls nothing else before it exits. With `idle_priority` it runs only while a core is
    idle: it never takes a core from this process's threads, and may take long.
    """
    outlives_child = current_thread() is main_thread()  # Linux goes by the thread that forks, which may end long before
    with warnings.catch_warnings(), _IMPORT_LOCK:
        # Python warns about threads that hold locks; the child only calls torch, with one thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        process_id = os.fork()
        if process_id:
            with contextlib.suppress(OSError):  # parent and child both set it
                os.setpgid(process_id, process_id)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return process_id
    status = 1
    try:
        # Ctrl-C goes to the program, which ends this process and its children. It gets no session of its own, because
        # Linux divides time among sessions first, and niceness counts only within them.
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        if outlives_child:
            torch_private.die_with_parent()
        os.nice(COMPILER_NICENESS)
        if idle_priority:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        work()
        status = 0
    except BaseException as error:
        os.write(2, one_line(error).encode(errors="replace"))
    finally:
        os._exit(status)


def _status(process_id: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
    except ChildProcessError:  # someone else waited for it; whether there is a package shows the outcome
        return 0
