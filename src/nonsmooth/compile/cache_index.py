"""An index of the stored packages of earlier runs, which can be read without importing compile_inspect.

Every stored package has an empty file named after the size of its problem. A lookup in the package store takes a tenth of a
second if its code must be imported first; a lookup here takes a fraction of a millisecond.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FOLDER = "of-the-solver"


def add_entry(size: int, constraints: int, equalities: int) -> None:
    """Record that packages for a problem of this size are stored. If this file cannot be written, they will not be found."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(size, constraints, equalities)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def has_entry(size: int, constraints: int, equalities: int) -> bool:
    """Whether packages for a problem of this size may be stored."""
    try:
        return _path(size, constraints, equalities).exists()
    except (OSError, RuntimeError):  # the folder is not readable, or there is no home directory
        return False


def _path(size: int, constraints: int, equalities: int) -> Path:
    """The index file, in the folder of `compile_inspect.tuning.decision_cache`."""
    setting = os.environ.get("COMPILE_INSPECT_CACHE")
    folder = Path(setting) if setting else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "compile-inspect" / "tune"
    return folder.expanduser() / FOLDER / f"{size}-{constraints}-{equalities}"
