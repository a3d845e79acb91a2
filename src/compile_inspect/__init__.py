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
    "time_variants": "compile_inspect.timing.measuring",
    "verify": "compile_inspect.agreement.verifying",
    "Recording": "compile_inspect.capture.recorder",
    "Target": "compile_inspect.target",
    "tune": "compile_inspect.tuning.front",
    "Tuned": "compile_inspect.tuning.tuned",
    "load": "compile_inspect.capture_file",
    "Inspection": "compile_inspect.records",
    "Agreement": "compile_inspect.records",
    "InspectError": "compile_inspect.errors",
    "TargetError": "compile_inspect.errors",
    "CaptureError": "compile_inspect.errors",
    "UnsupportedTorch": "compile_inspect.errors",
}

__all__ = [
    "Agreement",
    "CaptureError",
    "InspectError",
    "Inspection",
    "Recording",
    "Target",
    "TargetError",
    "Tuned",
    "UnsupportedTorch",
    "__version__",
    "inspect",
    "load",
    "record",
    "time_variants",
    "tune",
    "verify",
]

if TYPE_CHECKING:
    from compile_inspect.agreement.verifying import verify
    from compile_inspect.capture.inspecting import inspect
    from compile_inspect.capture.recorder import Recording, record
    from compile_inspect.capture_file import load
    from compile_inspect.errors import CaptureError, InspectError, TargetError, UnsupportedTorch
    from compile_inspect.records import Agreement, Inspection
    from compile_inspect.target import Target
    from compile_inspect.timing.measuring import time_variants
    from compile_inspect.tuning.front import tune
    from compile_inspect.tuning.tuned import Tuned


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'compile_inspect' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
