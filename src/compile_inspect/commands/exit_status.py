"""The exit status of commands that compile a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compile_inspect.records import Inspection


def exit_status(inspections: Sequence[Inspection]) -> int:
    """1 if something failed, or if nothing was compiled and no graph break explains why; otherwise 0."""
    failed = any(inspection.failures for inspection in inspections)
    unexplained = all(inspection.nothing_compiled and not inspection.breaks for inspection in inspections)
    return int(failed or unexplained)
