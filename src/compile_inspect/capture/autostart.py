"""Record a program from inside its own process, as the environment requests.

`bootstrap/sitecustomize.py` calls `prepare` at the start of every Python process of the program. The recorder itself starts
after the process has imported torch. Nothing here may disturb the program: failures are ignored, and no module is imported
early that the program might replace with its own version.
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

# Inductor's own helper processes, which compile kernels for a process that is already recorded.
_INDUCTOR_HELPERS = (
    "torch._inductor.compile_worker",
    "torch/_inductor/compile_worker/__main__.py",
    "torch._inductor.autotune_process",
)


def prepare() -> None:
    """Start recording this process as soon as it has imported torch, if the environment requests it."""
    main = os.environ.pop(ROLE, None) == "main"
    output = os.environ.get(OUTPUT)
    if not output or (not main and _is_inductor_helper()):
        return
    own_process = os.getpid()

    def start() -> None:
        # A process that was forked before torch was imported is not the process that called `prepare`.
        _start(output, main=main and os.getpid() == own_process, forked=os.getpid() != own_process)

    sys.meta_path.insert(0, _TorchFinder(start))


class _TorchFinder:
    """The first finder until torch is imported; calls `start` immediately afterward."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._start = start

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec: Any = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _TorchLoader(spec.loader, self._start)
        return spec


class _TorchLoader:
    """Loads torch with torch's own loader, and first puts that loader back in its place."""

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
        except Exception:  # a recorder that cannot start must not disturb the program
            return


def own_rank() -> int | None:
    """The rank that torchrun assigned to this process, if any."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def _is_inductor_helper() -> bool:
    arguments = [argument.replace(os.sep, "/") for argument in sys.orig_argv]
    return any(
        argument.startswith(helper) or argument.endswith(helper) for argument in arguments for helper in _INDUCTOR_HELPERS
    )


def _start(output: str, *, main: bool, forked: bool) -> None:
    from pathlib import Path

    from compile_inspect.capture.recorder import Recording

    path, rank = Path(output), own_rank()
    # The launcher has checked that the first process can write its file.
    recording = Recording(path if main else _free_path(path, rank), force=main, session=os.environ.get(SESSION, ""), rank=rank)
    if main:
        recording.start()
    else:
        recording.start_lazily()
    # Handlers run in reverse order of registration, and this one is registered before the program's own.
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
        # After the fork, a worker clears its finalizers and then calls the functions registered here.
        util.register_after_fork(recording, _finalize_with_multiprocessing)


def _finalize_with_multiprocessing(recording: Recording) -> None:
    """Stop the recording with a finalizer: forked workers of `multiprocessing` do not run atexit handlers."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(recording, _stop, args=(recording,), exitpriority=-1000)


def _fatal_exception() -> Exception | None:
    """The exception that ends the interpreter. Shells and test runners store handled exceptions in the same attribute."""
    error = getattr(sys, "last_value", None)
    trace = getattr(error, "__traceback__", None)
    if not isinstance(error, Exception) or trace is None:
        return None
    frame, main = trace.tb_frame, sys.modules.get("__main__")
    outermost = frame.f_globals is vars(main) if main is not None else False
    return error if outermost or frame.f_code.co_filename == "<frozen runpy>" else None


def _stop(recording: Recording) -> None:
    try:
        error = _fatal_exception()
        if error is not None:
            recording.add_failure(error)
        recording.stop()
    except Exception:  # the journal remains as a partial capture
        return


def _free_path(path: Path, rank: int | None) -> Path:
    from compile_inspect.capture_file import process_path

    candidate = process_path(path, rank=rank, pid=os.getpid())
    # A restarted rank, or a child that a rank forks, must not replace the earlier capture.
    return candidate if not candidate.exists() else process_path(candidate, rank=None, pid=os.getpid())
