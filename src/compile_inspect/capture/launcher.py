"""Run a program under the recorder, as if it had been started without it.

The program runs in a new interpreter, with the same `sys.argv`, `__main__` and tracebacks. The recorder is loaded by a
`sitecustomize` module on PYTHONPATH, so it is also loaded in Python processes that the program starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from compile_inspect import __version__, torch_private
from compile_inspect.capture.autostart import OUTPUT, ROLE, SESSION, own_rank
from compile_inspect.capture_file import SUFFIX, load_together, process_path, refuse_to_overwrite, replaceable, save
from compile_inspect.errors import CaptureError, TargetError
from compile_inspect.journal import FileJournal, read_header
from compile_inspect.records import SCHEMA_VERSION, Inspection, Process
from compile_inspect.serialization import to_data

BOOTSTRAP = Path(__file__).parent / "bootstrap"
_PR_SET_PDEATHSIG = 1


def launch(
    program: str,
    arguments: list[str],
    *,
    module: bool,
    output: Path | None,
    force: bool,
    fresh: bool = False,
    quiet: bool = False,
) -> int:
    """Run the program, wait for it, and return its exit status.

    Without `output`, the capture has a default name and replaces the capture of an earlier run.
    """
    if not module and not Path(program).exists():
        raise TargetError(f"there is no file {program}{_hint(program)}")
    try:
        path = (output or Path(_default_name(program, module))).absolute()
    except FileNotFoundError:
        raise CaptureError(
            "the working directory no longer exists; name the capture file with -o and an absolute path"
        ) from None
    rank = own_rank()
    if rank is not None:  # one of several launchers with the same output name
        path = process_path(path, rank=rank, pid=os.getpid())
    refuse_to_overwrite(path, force=force or (output is None and replaceable(path)))
    command = [sys.executable, *(["-m"] if module else []), program, *arguments]
    environment = program_environment(path)
    if fresh:
        environment.update(torch_private.WITHOUT_GRAPH_CACHES)
    process = Process(os.getpid(), rank, environment[SESSION], tuple(command), time.time(), recorder=__version__)
    _create(path, process)
    status = _run(command, environment)
    with contextlib.suppress(Exception):  # errors here must not change the exit status
        _complete(path, process, status)
        if not quiet:
            _print_capture(path)
    if status < 0:
        _exit_with_signal(-status)
    return status


def program_environment(path: Path) -> dict[str, str]:
    """The environment in which a program records itself to `path`."""
    environment = dict(os.environ)
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *([inherited] if inherited else [])])
    environment[OUTPUT] = str(path)
    environment[SESSION] = uuid.uuid4().hex
    environment[ROLE] = "main"
    return environment


def _create(path: Path, process: Process) -> None:
    """Check that the capture can be written before the program runs."""
    header = {"schema": SCHEMA_VERSION, "launched": True, **to_data(process)}
    journal = FileJournal(path, header)
    try:
        journal.create()
    except OSError as error:
        raise CaptureError(f"{path} cannot be written: {error.strerror or error}") from error
    journal.close()


def _complete(path: Path, process: Process, status: int) -> None:
    """Write an empty capture for a program that ended by itself and did not import torch: its journal is still empty."""
    header = read_header(path) if status >= 0 else None
    if header is not None and header.get("launched"):
        save(Inspection(process=replace(process, ended=time.time())), path, force=True)


def _hint(program: str) -> str:
    """A suggestion for a program name that is not a file.

    >>> _hint("package.train"), _hint("nosuch.py"), _hint("--epochs")
    ('; to run a module, use: compile-inspect run -m package.train', '', ": put the program's options after its name")
    """
    if program.startswith("-"):
        return ": put the program's options after its name"
    is_module = all(part.isidentifier() for part in program.split(".")) and not program.endswith(".py")
    return f"; to run a module, use: compile-inspect run -m {program}" if is_module else ""


def _default_name(program: str, module: bool) -> str:
    return (program.rpartition(".")[2] if module else Path(program).stem) + SUFFIX


def _run(command: list[str], environment: dict[str, str]) -> int:
    # Descriptors that the shell opened for the program, as for <(…), must stay open.
    process = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=_end_with_launcher(os.getpid()))
    with _forwarded_signals(process):
        return process.wait()


def _end_with_launcher(launcher: int) -> Callable[[], None] | None:
    """A function for the new process that ends it when the launcher is killed with SIGKILL; only on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:  # the launcher was already killed
            os._exit(128 + signal.SIGKILL)

    return set_death_signal


@contextlib.contextmanager
def _forwarded_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals to the program, unless the terminal sends them to both processes anyway."""

    def forward(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    def forward_unless_typed(number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            process.send_signal(number)

    typed_signals = ("SIGINT", "SIGQUIT", "SIGWINCH")
    other_signals = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
    previous: dict[int, Any] = {}
    for name in (*typed_signals, *other_signals):
        number = getattr(signal, name, None)
        if number is not None:
            previous[number] = signal.signal(number, forward_unless_typed if name in typed_signals else forward)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether a key pressed on the terminal sends a signal to both this process and the program."""
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError, AttributeError):
            return os.tcgetpgrp(stream) == os.getpgrp()
    return False


def _print_capture(path: Path) -> None:
    """Print where the capture is, after all output of the program."""
    if sys.stderr is None:
        return
    relative_path = os.path.relpath(path)
    try:
        captures = load_together([path])
    except CaptureError as error:
        print(f"\ncompile-inspect: {error}", file=sys.stderr)
        return
    count = sum(len(inspection.compilations) for _, inspection in captures)
    state = (
        ""
        if all(inspection.complete for _, inspection in captures)
        else "; the program was interrupted, so the capture is partial"
    )
    processes = f" in {len(captures)} processes" if len(captures) > 1 else ""
    compilations = "1 compilation" if count == 1 else f"{count} compilations"
    print(
        f"\nRecorded {compilations}{processes}{state}.\nNext: compile-inspect show {shlex.quote(relative_path)}",
        file=sys.stderr,
    )


def _exit_with_signal(number: int) -> None:
    """End with the signal that ended the program, so that a shell or a supervisor gets the same status."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
