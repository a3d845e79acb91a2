"""A guide that shows nothing, machines that lack something, and the state of the process before and after a lesson.

Not a conftest: tests import helpers from the one of the whole suite by that name. A test module makes fixtures of these.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.config
import torch._inductor.config
from torch._dynamo import eval_frame
from torch._dynamo.backends import registry

from compile_inspect.tour.guide import Guide

MISSING = "Inductor writes C++ and finds no compiler for it on this machine: install one"

SET_BY_OTHERS = {
    "PYTEST_CURRENT_TEST",
    "TRITON_CACHE_DIR",  # Inductor, beside its own folder
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",  # Inductor, with its first kernel
    "KMP_DUPLICATE_LIB_OK",  # threadpoolctl, when it is imported
}


def state() -> dict[str, Any]:
    registry._lazy_import()
    return {
        "stance": eval_frame._stance.stance,
        "examples": eval_frame._EXAMPLE_INPUTS,
        "backends": sorted(torch._dynamo.list_backends(None)),
        "dynamo": torch._dynamo.config.get_config_copy(),
        "inductor": torch._inductor.config.get_config_copy(),
        "random": torch.get_rng_state().tolist(),
        # torch 2.11 imports pkg_resources for its first kernel, which adds a filter for its own warnings.
        "warnings": [item for item in warnings.filters if item[2].__module__ != "pkg_resources"],
        "gradients": torch.is_grad_enabled(),
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        # Inductor imports setuptools for its first kernel, which adds a folder of its own.
        "path": [folder for folder in sys.path if not folder.endswith("_vendor")],
        "loggers": {
            name: (logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in ("torch", "torch._dynamo")
        },
        "threads": torch.get_num_threads(),
    }


def unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a lesson does, the process is as it was afterwards."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "caches"))  # torch sets it itself where it is missing
    monkeypatch.delenv("COMPILE_INSPECT_CACHE", raising=False)
    before = state()
    yield
    after = state()
    for held in (before, after):
        held["environment"] = {name: value for name, value in held["environment"].items() if name not in SET_BY_OTHERS}
    for name, value in before.items():
        assert after[name] == value, f"{name} was changed: {_difference(after[name], value)}"


def quiet_guide() -> Guide:
    """A guide for this machine's CPU, so that a GPU does not change what the tests say."""
    found = Guide.silent()
    found.machine = replace(found.machine, gpu="", missing_requirement="" if found.machine.compiler else MISSING)
    return found


def guide_without_compiler() -> Guide:
    """A guide on a machine that has no C++ compiler."""
    guide = quiet_guide()
    guide.machine = replace(guide.machine, compiler="", missing_requirement=MISSING)
    return guide


def guide_with_compiler() -> Guide:
    """A guide on a machine that has one, which Inductor needs."""
    guide = quiet_guide()
    if not guide.machine.inductor:
        pytest.skip("no C++ compiler")
    return guide


def _difference(after: Any, before: Any) -> Any:
    """What one of two mappings or lists has and the other has not."""
    if not isinstance(before, dict | list):
        return f"{before} -> {after}"
    items = [list(held.items()) if isinstance(held, dict) else held for held in (after, before)]
    return [item for item in items[0] if item not in items[1]] + [item for item in items[1] if item not in items[0]]
