"""Whether looking for packages of earlier runs can find any, known without importing what looks for them.

For every package that a run has kept there is an empty file, named by the size of its problem. Looking for one takes a
tenth of a second where it has to be imported first, and this a fraction of a millisecond.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FOLDER = "of-the-solver"


def note(size: int, constraints: int, equalities: int) -> None:
    """Packages for a problem of this size are kept from now on. Where that cannot be written they will not be found."""
    with contextlib.suppress(OSError, RuntimeError):
        place = _place(size, constraints, equalities)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def noted(size: int, constraints: int, equalities: int) -> bool:
    """Whether packages for a problem of this size may be kept."""
    try:
        return _place(size, constraints, equalities).exists()
    except (OSError, RuntimeError):  # nobody may look there, or nobody knows where home is
        return False


def _place(size: int, constraints: int, equalities: int) -> Path:
    """In the folder of `compile_inspect.tuning.decision_cache`."""
    chosen = os.environ.get("COMPILE_INSPECT_CACHE")
    folder = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "compile-inspect" / "tune"
    return folder.expanduser() / FOLDER / f"{size}-{constraints}-{equalities}"
