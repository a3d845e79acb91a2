"""Results that join a capture: timings, comparisons with eager, fixes that were tried."""

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
    Path | None, typer.Option("--capture", metavar="FILE", help="Add the results to a capture, made if there is none.")
]


def known_capture(path: Path) -> Inspection | None:
    """The capture that results will join, None where there is none yet; raises where they cannot."""
    from compile_inspect.capture_file import load, refuse_to_overwrite

    if path.is_file():
        known = load(path)
        if not known.complete:
            raise CaptureError(f"{path} is partial or still being recorded; name another capture")
        return known
    refuse_to_overwrite(path, force=False)
    return None


def join(path: Path, change: Callable[[Inspection], Inspection], target: NamedTarget) -> None:
    """Change a capture as it is now: another program may have added to it meanwhile. A new one keeps what it is about."""
    import os
    import time

    from compile_inspect import __version__
    from compile_inspect.capture.collectors.environment import describe_environment
    from compile_inspect.capture_file import save
    from compile_inspect.records import Environment, Inspection, Process
    from compile_inspect.serialization import from_data

    known = known_capture(path)
    if known is None:
        known = Inspection(
            environment=from_data(Environment, describe_environment()),
            process=Process(pid=os.getpid(), command=tuple(sys.argv), ended=time.time(), recorder=__version__),
            target=target,
        )
    save(change(known), path, force=True)
