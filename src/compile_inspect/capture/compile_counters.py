"""How much torch has compiled so far, by its own counters."""

from __future__ import annotations

import sys
from typing import Any


def compilation_counts() -> dict[str, int]:
    """Torch's counters of frames, graphs and cache look-ups, such as `inductor.fxgraph_cache_miss`.

    They only grow, until torch is told to forget everything; before torch has compiled anything there are none. Nothing
    is imported for it: where Dynamo was never imported, nothing was compiled.
    """
    module: Any = sys.modules.get("torch._dynamo.utils")
    counters = getattr(module, "counters", {})
    return {f"{group}.{name}": int(number) for group, members in counters.items() for name, number in members.items()}
