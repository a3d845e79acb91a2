"""Torch's configuration: statements that change it, and putting it back."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def preserved_configuration() -> Iterator[None]:
    """Whatever is switched meanwhile in the configuration of Dynamo or Inductor is put back."""
    import torch._dynamo.config
    import torch._inductor.config

    configurations = (torch._dynamo.config, torch._inductor.config)
    saved = [item.get_config_copy() for item in configurations]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for item, before in zip(configurations, saved, strict=True):
            now = item.get_config_copy()  # type: ignore[attr-defined]
            for name, value in before.items():
                if now.get(name) != value:
                    setattr(item, name, value)


def run_setting(code: str) -> None:
    """Run a statement that switches something in torch's configuration."""
    import torch
    import torch._dynamo
    import torch._inductor.config

    exec(code, {"torch": torch, "warnings": warnings, "logging": logging})  # from tables of this package


def forget_compiled_code() -> None:
    """Let everything be compiled anew in this process: code of libraries too, which copies of a program share."""
    import torch._dynamo

    torch._dynamo.reset()
