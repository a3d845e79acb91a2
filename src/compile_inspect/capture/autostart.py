"""Recording a program from inside, started by the environment.

Called by `bootstrap/sitecustomize.py` at the start of every Python process of the program, before torch or
anything of the program's own is imported. Nothing here may disturb the program: failures are kept silent.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from pathlib import Path

OUTPUT = "COMPILE_INSPECT_OUTPUT"
SESSION = "COMPILE_INSPECT_SESSION"
ROLE = "COMPILE_INSPECT_ROLE"
FORCE = "COMPILE_INSPECT_FORCE"

# Inductor's own helpers, which compile kernels for the process that is recorded already.
_HELPERS = ("compile_worker", "torch._inductor.autotune_process", "triton.tools")


def start_from_environment() -> None:
    """Start recording this process if the environment asks for it."""
    output = os.environ.get(OUTPUT)
    if not output or any(helper in argument for argument in sys.orig_argv for helper in _HELPERS):
        return
    from compile_inspect.capture.recorder import Recording

    first = os.environ.pop(ROLE, None) == "main"
    force = os.environ.pop(FORCE, None) == "1"
    path, rank = Path(output), own_rank()
    if not first:
        path = _free_path(path, rank)
    recording = Recording(path, force=force, session=os.environ.get(SESSION, ""), rank=rank)
    if first:
        recording.start()
    else:
        recording.start_quietly()
    _stop_at_exit(recording)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _after_fork(recording, Path(output)))


def _after_fork(recording: object, path: Path) -> None:
    from compile_inspect.capture.recorder import Recording

    assert isinstance(recording, Recording)
    try:
        recording.after_fork(_free_path(path, None), None)
    except Exception:  # a child without a recording is better than no child
        return
    _stop_with_multiprocessing(recording)


def _stop_at_exit(recording: object) -> None:
    """Stop at the very end: handlers registered first run last."""
    atexit.register(_stop, recording)


def _stop_with_multiprocessing(recording: object) -> None:
    """A forked worker of `multiprocessing` ends without atexit; it runs its own finalizers instead."""
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    # Registered now it would be cleared: the worker empties the list after the fork and then calls these.
    util.register_after_fork(recording, lambda kept: util.Finalize(kept, _stop, args=(kept,), exitpriority=-1000))


def _stop(recording: object) -> None:
    from compile_inspect.capture.recorder import Recording

    assert isinstance(recording, Recording)
    # If it cannot be finished, the journal stays behind as a partial capture.
    with contextlib.suppress(Exception):
        recording.stop()


def own_rank() -> int | None:
    """The rank that torchrun gave this process, if it did."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def _free_path(path: Path, rank: int | None) -> Path:
    from compile_inspect.capture_file import process_path

    candidate = process_path(path, rank=rank, pid=os.getpid())
    # A restarted rank, or a child forked by one, must not replace the earlier capture.
    return candidate if not candidate.exists() else process_path(candidate, rank=None, pid=os.getpid())
