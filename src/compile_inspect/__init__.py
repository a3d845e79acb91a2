"""What torch.compile did, whether it is right, whether and when it pays, and what to change.

    import compile_inspect

    with compile_inspect.record("step.inspection") as recording:
        model(x).sum().backward()          # the program compiles as it always does
    print(recording.inspection.breaks)

The names below are the whole public interface; they are loaded when first used, so that reading a capture
never imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "inspect": "compile_inspect.capture.inspecting",
    "record": "compile_inspect.capture.recorder",
    "Recording": "compile_inspect.capture.recorder",
    "Target": "compile_inspect.target",
    "load": "compile_inspect.capture_file",
    "Inspection": "compile_inspect.records",
    "InspectError": "compile_inspect.errors",
    "TargetError": "compile_inspect.errors",
    "CaptureError": "compile_inspect.errors",
    "UnsupportedTorch": "compile_inspect.errors",
}

__all__ = [
    "CaptureError",
    "InspectError",
    "Inspection",
    "Recording",
    "Target",
    "TargetError",
    "UnsupportedTorch",
    "__version__",
    "inspect",
    "load",
    "record",
]

if TYPE_CHECKING:
    from compile_inspect.capture.inspecting import inspect
    from compile_inspect.capture.recorder import Recording, record
    from compile_inspect.capture_file import load
    from compile_inspect.errors import CaptureError, InspectError, TargetError, UnsupportedTorch
    from compile_inspect.records import Inspection
    from compile_inspect.target import Target


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'compile_inspect' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
