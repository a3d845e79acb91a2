"""Add results to a capture with `--capture`: timings, comparisons with eager, checked fixes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.errors import CaptureError

if TYPE_CHECKING:
    from compile_inspect.records import Inspection, NamedTarget

CaptureOption = Annotated[
    Path | None,
    typer.Option("--capture", metavar="FILE", help="Add the results to this capture; it is created if it does not exist."),
]


def existing_capture(path: Path) -> Inspection | None:
    """The capture to add results to; None if it does not exist yet. Raises if nothing can be added to it."""
    from compile_inspect.capture_file import load, refuse_to_overwrite

    if path.is_file():
        capture = load(path)
        if not capture.complete:
            raise CaptureError(f"{path} is incomplete or still being recorded; name another capture")
        return capture
    refuse_to_overwrite(path, force=False)
    return None


def update_capture(path: Path, change: Callable[[Inspection], Inspection], target: NamedTarget) -> None:
    """Apply a change to the current file, which another program may have changed meanwhile; a new capture records `target`."""
    import os
    import time

    from compile_inspect import __version__
    from compile_inspect.capture.collectors.environment import describe_environment
    from compile_inspect.capture_file import save
    from compile_inspect.records import Environment, Inspection, Process
    from compile_inspect.serialization import from_data

    capture = existing_capture(path)
    if capture is None:
        capture = Inspection(
            environment=from_data(Environment, describe_environment()),
            process=Process(pid=os.getpid(), command=tuple(sys.argv), ended=time.time(), recorder=__version__),
            target=target,
        )
    save(change(capture), path, force=True)
