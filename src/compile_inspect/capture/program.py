"""Running a program under the recorder, as if it had been started without it.

The program gets a fresh interpreter of its own: same `sys.argv`, same `__main__`, same tracebacks. The recorder
enters through a `sitecustomize` on PYTHONPATH, which also reaches the Python processes the program starts.
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
_SIGNAL_AT_DEATH_OF_PARENT = 1


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

    Under the name that nobody chose, the capture of an earlier run is replaced.
    """
    if not module and not Path(program).exists():
        raise TargetError(f"there is no file {program}{_hint(program)}")
    try:
        path = (output or Path(_default_name(program, module))).absolute()
    except FileNotFoundError:
        raise CaptureError("the working directory is gone; name the capture file with -o and its whole path") from None
    rank = own_rank()
    if rank is not None:  # one of several launchers that were given the same name
        path = process_path(path, rank=rank, pid=os.getpid())
    refuse_to_overwrite(path, force=force or (output is None and replaceable(path)))
    command = [sys.executable, *(["-m"] if module else []), program, *arguments]
    environment = program_environment(path)
    if fresh:
        environment.update(torch_private.WITHOUT_GRAPH_CACHES)
    process = Process(os.getpid(), rank, environment[SESSION], tuple(command), time.time(), recorder=__version__)
    _create(path, process)
    status = _run(command, environment)
    with contextlib.suppress(Exception):  # what follows must not change how the program ended
        _complete(path, process, status)
        if not quiet:
            _tell(path)
    if status < 0:
        _die_of_the_same_signal(-status)
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
    """Make sure before the program runs that its capture can be written."""
    header = {"schema": SCHEMA_VERSION, "launched": True, **to_data(process)}
    journal = FileJournal(path, header)
    try:
        journal.create()
    except OSError as error:
        raise CaptureError(f"{path} cannot be written: {error.strerror or error}") from error
    journal.close()


def _complete(path: Path, process: Process, status: int) -> None:
    """A program that ended by itself without importing torch left our empty journal: that is all there is."""
    header = read_header(path) if status >= 0 else None
    if header is not None and header.get("launched"):
        save(Inspection(process=replace(process, ended=time.time())), path, force=True)


def _hint(program: str) -> str:
    """What may have been meant by the name of a program that is no file.

    >>> _hint("package.train"), _hint("nosuch.py"), _hint("--epochs")
    ('; to run a module write: compile-inspect run -m package.train', '', ': options of the program come after its name')
    """
    if program.startswith("-"):
        return ": options of the program come after its name"
    is_module = all(part.isidentifier() for part in program.split(".")) and not program.endswith(".py")
    return f"; to run a module write: compile-inspect run -m {program}" if is_module else ""


def _default_name(program: str, module: bool) -> str:
    return (program.rpartition(".")[2] if module else Path(program).stem) + SUFFIX


def _run(command: list[str], environment: dict[str, str]) -> int:
    # Descriptors that the shell opened for the program, as for <(…), are its own.
    process = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=_tied_to(os.getpid()))
    with _signals_left_to(process):
        return process.wait()


def _tied_to(launcher: int) -> Callable[[], None] | None:
    """What a new process does first: it ends when the launcher is killed, which cannot pass that on; on Linux only."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(_SIGNAL_AT_DEATH_OF_PARENT, signal.SIGKILL)
        if os.getppid() != launcher:  # it was killed before this
            os._exit(128 + signal.SIGKILL)

    return tie


@contextlib.contextmanager
def _signals_left_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals are the program's: passed on to it, unless the terminal sends them to both of us anyway."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    def pass_on_unless_typed(number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            process.send_signal(number)

    typed = ("SIGINT", "SIGQUIT", "SIGWINCH")
    sent = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
    previous: dict[int, Any] = {}
    for name in (*typed, *sent):
        number = getattr(signal, name, None)
        if number is not None:
            previous[number] = signal.signal(number, pass_on_unless_typed if name in typed else pass_on)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether a key pressed on the terminal reaches this process and the program alike."""
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError, AttributeError):
            return os.tcgetpgrp(stream) == os.getpgrp()
    return False


def _tell(path: Path) -> None:
    """Say where the capture is, after all that the program itself has said."""
    if sys.stderr is None:
        return
    shown = os.path.relpath(path)
    try:
        captures = load_together([path])
    except CaptureError as error:
        print(f"\ncompile-inspect: {error}", file=sys.stderr)
        return
    count = sum(len(inspection.compilations) for _, inspection in captures)
    state = (
        "" if all(inspection.complete for _, inspection in captures) else "; the program was cut short, the capture is partial"
    )
    processes = f" in {len(captures)} processes" if len(captures) > 1 else ""
    compilations = "1 compilation" if count == 1 else f"{count} compilations"
    print(f"\nRecorded {compilations}{processes}{state}.\nNext: compile-inspect show {shlex.quote(shown)}", file=sys.stderr)


def _die_of_the_same_signal(number: int) -> None:
    """End as the program did, so that a shell or a supervisor sees the same status."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
