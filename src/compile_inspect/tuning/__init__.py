"""Find the fastest version of a function that agrees with eager, with the evidence for it.

`tune` and `Tuned` are imported on first use, so that code that needs only one part, such as the solver, starts faster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compile_inspect.tuning.api import tune as tune
    from compile_inspect.tuning.tuned import Tuned as Tuned

__all__ = ["Tuned", "tune"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module("compile_inspect.tuning.api" if name == "tune" else "compile_inspect.tuning.tuned")
    value = globals()[name] = getattr(home, name)
    return value
