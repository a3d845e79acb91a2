"""Change torch's configuration, and restore it."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def preserve_configuration() -> Iterator[None]:
    """Restore the configuration of Dynamo and Inductor afterward."""
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
    """Run a statement that changes torch's configuration."""
    import torch
    import torch._dynamo
    import torch._inductor.config

    exec(code, {"torch": torch, "warnings": warnings, "logging": logging})  # the code is in tables of this package


def forget_compiled_code() -> None:
    """Make everything compile anew in this process, including library code that copies of a program share."""
    import torch._dynamo

    torch._dynamo.reset()
