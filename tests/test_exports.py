"""The public names, and that each can be had."""

from __future__ import annotations

import compile_inspect
import compile_inspect.records
import nonsmooth


def test_public_names() -> None:
    assert compile_inspect.__all__ == [
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
    for name in compile_inspect.__all__:
        assert getattr(compile_inspect, name) is not None
    assert dir(compile_inspect) == compile_inspect.__all__


def test_every_record_is_exported_and_documented() -> None:
    for name in compile_inspect.records.__all__:
        found = getattr(compile_inspect.records, name)
        assert name == "SCHEMA_VERSION" or found.__doc__


def test_versions_agree() -> None:
    assert nonsmooth.__version__ == compile_inspect.__version__
