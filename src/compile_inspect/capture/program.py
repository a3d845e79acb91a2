"""Running a program under the recorder, as if it had been started without it.

The program gets a fresh interpreter of its own: same `sys.argv`, same `__main__`, same tracebacks. The recorder
enters through a `sitecustomize` on PYTHONPATH, which also reaches the Python processes the program starts.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.capture.autostart import FORCE, OUTPUT, ROLE, SESSION, own_rank
from compile_inspect.capture_file import SUFFIX, load_together, process_path, refuse_to_overwrite
from compile_inspect.errors import CaptureError, TargetError

BOOTSTRAP = Path(__file__).parent / "bootstrap"


def launch(program: str, arguments: list[str], *, module: bool, output: Path | None, force: bool, fresh: bool = False) -> int:
    """Run the program, wait for it, and return its exit status."""
    if not module and not Path(program).exists():
        raise TargetError(f"there is no file {program}; to run a module write: compile-inspect run -m {program}")
    path = (output or Path(_default_name(program, module))).absolute()
    rank = own_rank()
    if rank is not None:  # one of several launchers that were given the same name
        path = process_path(path, rank=rank, pid=os.getpid())
    refuse_to_overwrite(path, force=force)
    command = [sys.executable, *(["-m"] if module else []), program, *arguments]
    environment = program_environment(path, force=force)
    if fresh:
        environment.update(torch_private.WITHOUT_GRAPH_CACHES)
    status = _run(command, environment)
    _tell(path)
    if status < 0:
        _die_of_the_same_signal(-status)
    return status


def program_environment(path: Path, *, force: bool) -> dict[str, str]:
    """The environment in which a program records itself to `path`."""
    environment = dict(os.environ)
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *([inherited] if inherited else [])])
    environment[OUTPUT] = str(path)
    environment[SESSION] = uuid.uuid4().hex
    environment[ROLE] = "main"
    if force:
        environment[FORCE] = "1"
    return environment


def _default_name(program: str, module: bool) -> str:
    return (program.rpartition(".")[2] if module else Path(program).stem) + SUFFIX


def _run(command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    with _signals_left_to(process):
        return process.wait()


@contextlib.contextmanager
def _signals_left_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the program by itself; a request to terminate is passed on; neither ends us first."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    wanted: dict[signal.Signals, Any] = {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: pass_on}
    if hasattr(signal, "SIGHUP"):
        wanted[signal.SIGHUP] = pass_on
    previous = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _tell(path: Path) -> None:
    """Say where the capture is, on a terminal only: redirected output belongs to the program."""
    if not sys.stderr.isatty():
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
    print(
        f"\nRecorded {count} compilations{processes}{state}.\nNext: compile-inspect show {shlex.quote(shown)}", file=sys.stderr
    )


def _die_of_the_same_signal(number: int) -> None:
    """End as the program did, so that a shell or a supervisor sees the same status."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
