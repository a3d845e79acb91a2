"""The exit status of commands that compile a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compile_inspect.records import Inspection


def status_of(inspections: Sequence[Inspection]) -> int:
    """1 where something failed, or where nothing was compiled and no graph break says why; otherwise 0."""
    failed = any(inspection.failures for inspection in inspections)
    silent = all(inspection.nothing_compiled and not inspection.breaks for inspection in inspections)
    return int(failed or silent)
