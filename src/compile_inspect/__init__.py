"""Find out what torch.compile did, whether the result is correct, when it pays back, and what to change.

    import compile_inspect

    with compile_inspect.record("step.inspection") as recording:
        model(x).sum().backward()          # the program compiles as it always does
    print(recording.inspection.breaks)

The names below are the complete public interface. They are loaded on first use, so that reading a capture does not import
torch.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from compile_inspect import rendering

__version__ = "0.1.0"

_MODULES = {
    "inspect": "compile_inspect.capture.api",
    "record": "compile_inspect.capture.recorder",
    "time_variants": "compile_inspect.timing.api",
    "verify": "compile_inspect.agreement.api",
    "Recording": "compile_inspect.capture.recorder",
    "Target": "compile_inspect.target",
    "tune": "compile_inspect.tuning.api",
    "Tuned": "compile_inspect.tuning.tuned",
    "breaks": "compile_inspect.fixes.api",
    "fix": "compile_inspect.fixes.api",
    "predict_recompiles": "compile_inspect.recompiles.api",
    "predict_payback": "compile_inspect.timing.payback",
    "variant_names": "compile_inspect.variants",
    "BreakReport": "compile_inspect.records.break_reports",
    "FixReport": "compile_inspect.records.break_reports",
    "RecompileForecast": "compile_inspect.records.recompile_forecast",
    "load": "compile_inspect.capture_file",
    "Inspection": "compile_inspect.records",
    "Agreement": "compile_inspect.records",
    "InspectError": "compile_inspect.errors",
    "TargetError": "compile_inspect.errors",
    "CaptureError": "compile_inspect.errors",
}

__all__ = [
    "Agreement",
    "BreakReport",
    "CaptureError",
    "FixReport",
    "InspectError",
    "Inspection",
    "RecompileForecast",
    "Recording",
    "Target",
    "TargetError",
    "Tuned",
    "__version__",
    "breaks",
    "fix",
    "inspect",
    "load",
    "predict_payback",
    "predict_recompiles",
    "record",
    "time_variants",
    "tune",
    "variant_names",
    "verify",
]

if TYPE_CHECKING:
    from compile_inspect.agreement.api import verify
    from compile_inspect.capture.api import inspect
    from compile_inspect.capture.recorder import Recording, record
    from compile_inspect.capture_file import load
    from compile_inspect.errors import CaptureError, InspectError, TargetError
    from compile_inspect.fixes.api import breaks, fix
    from compile_inspect.recompiles.api import predict_recompiles
    from compile_inspect.records import Agreement, Inspection
    from compile_inspect.records.break_reports import BreakReport, FixReport
    from compile_inspect.records.recompile_forecast import RecompileForecast
    from compile_inspect.target import Target
    from compile_inspect.timing.api import time_variants
    from compile_inspect.timing.payback import predict_payback
    from compile_inspect.tuning.api import tune
    from compile_inspect.tuning.tuned import Tuned
    from compile_inspect.variants import variant_names


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'compile_inspect' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _from_report(name: str, *arguments: object, **options: object) -> str:
    """Call a function of `compile_inspect.report`, which is imported on first use."""
    text: str = getattr(importlib.import_module("compile_inspect.report"), name)(*arguments, **options)
    return text


rendering.register(rendering.Format.SUMMARY, partial(_from_report, "summary_text"))
rendering.register(rendering.Format.TIMING, partial(_from_report, "timing_text"))
rendering.register(rendering.Format.PAGE, partial(_from_report, "html"))
rendering.register(rendering.Format.BREAKS, partial(_from_report, "breaks_text"))
rendering.register(rendering.Format.FIX, partial(_from_report, "fix_text"))
rendering.register(rendering.Format.FORECAST, partial(_from_report, "forecast_text"))
