"""Recording a program from inside, started by the environment.

`bootstrap/sitecustomize.py` calls `prepare` at the start of every Python process of the program; the recorder itself
starts when the process has imported torch. Nothing here may disturb the program: failures are kept silent, and no module is
imported early that a program might have its own version of.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from compile_inspect.capture.recorder import Recording

OUTPUT = "COMPILE_INSPECT_OUTPUT"
SESSION = "COMPILE_INSPECT_SESSION"
ROLE = "COMPILE_INSPECT_ROLE"

# Inductor's own helpers, which compile kernels for a process that is recorded already.
_HELPERS = ("torch._inductor.compile_worker", "torch/_inductor/compile_worker/__main__.py", "torch._inductor.autotune_process")


def prepare() -> None:
    """Have this process recorded from the moment it imports torch, if the environment asks for it."""
    main = os.environ.pop(ROLE, None) == "main"
    output = os.environ.get(OUTPUT)
    if not output or (not main and _is_helper()):
        return
    own_process = os.getpid()

    def start() -> None:
        # A process that was forked before torch was imported is not the one that was started here.
        _start(output, main=main and os.getpid() == own_process, forked=os.getpid() != own_process)

    sys.meta_path.insert(0, _TorchFinder(start))


class _TorchFinder:
    """Stands first among the finders until torch is imported, and calls `start` right after that."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._start = start

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        found: Any = importlib.util.find_spec(name)
        if found is not None and found.loader is not None:
            found.loader = _TorchLoader(found.loader, self._start)
        return found


class _TorchLoader:
    """Loads torch with its own loader, which takes this one's place before anybody sees it."""

    def __init__(self, loader: Any, start: Callable[[], None]) -> None:
        self._loader = loader
        self._start = start

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._start()
        except Exception:  # the program comes first: a recorder that cannot start stays out of it
            return


def own_rank() -> int | None:
    """The rank that torchrun gave this process, if it did."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def _is_helper() -> bool:
    started = [argument.replace(os.sep, "/") for argument in sys.orig_argv]
    return any(argument.startswith(helper) or argument.endswith(helper) for argument in started for helper in _HELPERS)


def _start(output: str, *, main: bool, forked: bool) -> None:
    from pathlib import Path

    from compile_inspect.capture.recorder import Recording

    path, rank = Path(output), own_rank()
    # The launcher made sure that the first process may write its file.
    recording = Recording(path if main else _free_path(path, rank), force=main, session=os.environ.get(SESSION, ""), rank=rank)
    if main:
        recording.start()
    else:
        recording.start_quietly()
    # Handlers registered first run last, and this one is registered before the program's own.
    atexit.register(_stop, recording)
    if forked:
        _finalize_with_multiprocessing(recording)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _after_fork(recording, path))


def _after_fork(recording: Recording, path: Path) -> None:
    try:
        recording.after_fork(_free_path(path, None), None)
    except Exception:  # a child without a recording is better than no child
        return
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # A worker empties its list of finalizers after the fork, and then calls what is registered here.
        util.register_after_fork(recording, _finalize_with_multiprocessing)


def _finalize_with_multiprocessing(recording: Recording) -> None:
    """A forked worker of `multiprocessing` ends without atexit; it runs its own finalizers instead."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(recording, _stop, args=(recording,), exitpriority=-1000)


def _ended_by() -> Exception | None:
    """The exception that the interpreter ends with. Shells and test runners leave ones that they handled in the same place."""
    error = getattr(sys, "last_value", None)
    trace = getattr(error, "__traceback__", None)
    if not isinstance(error, Exception) or trace is None:
        return None
    frame, main = trace.tb_frame, sys.modules.get("__main__")
    outermost = frame.f_globals is vars(main) if main is not None else False
    return error if outermost or frame.f_code.co_filename == "<frozen runpy>" else None


def _stop(recording: Recording) -> None:
    try:
        error = _ended_by()
        if error is not None:
            recording.failed(error)
        recording.stop()
    except Exception:  # the journal stays behind as a partial capture
        return


def _free_path(path: Path, rank: int | None) -> Path:
    from compile_inspect.capture_file import process_path

    candidate = process_path(path, rank=rank, pid=os.getpid())
    # A restarted rank, or a child forked by one, must not replace the earlier capture.
    return candidate if not candidate.exists() else process_path(candidate, rank=None, pid=os.getpid())
