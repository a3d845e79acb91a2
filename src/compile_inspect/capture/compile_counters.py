"""Torch's own counters of compilations."""

from __future__ import annotations

import sys
from typing import Any


def compilation_counts() -> dict[str, int]:
    """Torch's counters of frames, graphs and cache lookups, such as `inductor.fxgraph_cache_miss`.

    They increase until torch is reset, and are empty before the first compilation. This function imports nothing: if Dynamo was
    not imported, nothing was compiled.
    """
    module: Any = sys.modules.get("torch._dynamo.utils")
    counters = getattr(module, "counters", {})
    return {f"{group}.{name}": int(number) for group, members in counters.items() for name, number in members.items()}
