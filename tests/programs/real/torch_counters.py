"""What torch itself has counted, written to a file at the end of a program."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write(rank: int | None = None) -> None:
    """Write torch's counters to `$TORCH_COUNTERS`; of one process of several, under its rank."""
    from torch._dynamo.utils import counters

    file = os.environ.get("TORCH_COUNTERS")
    if file:
        name = file if rank is None else f"{file}.{rank}"
        counts = {group: {str(key): value for key, value in items.items()} for group, items in counters.items()}
        Path(name).write_text(json.dumps(counts))
