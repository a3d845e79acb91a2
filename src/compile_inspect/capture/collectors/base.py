"""What every collector has in common."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from compile_inspect import torch_private

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap

Rows = tuple[tuple[str, int, str, str], ...]
Observations = Iterable[tuple[torch_private.HookPoint, torch_private.Observer, bool]]


class Collector:
    """Collects one kind of evidence.

    A collector names the trace events it wants, the functions of torch it observes, or both, and turns what it
    sees into events of its own. It may raise anywhere: the tap catches it.
    """

    name: ClassVar[str]
    trace_names: ClassVar[frozenset[str]] = frozenset()
    failures: ClassVar[frozenset[torch_private.HookPoint]] = frozenset()

    def __init__(self, tap: Tap) -> None:
        self.tap = tap

    def observations(self) -> Observations:
        """The functions to observe: (place, observer, before the call instead of after)."""
        return ()

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """One of `trace_names` arrived; its payload is text, or what torch would write as JSON."""

    def on_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> None:
        """One of the places in `failures` raised; the exception goes on to where it would go without us."""

    def on_listener(self) -> None:
        """Another recording began while this one runs; it needs what was told once."""

    def flush(self) -> None:
        """Write what was held back; the recording is about to end."""


def trace_compile_id(metadata: dict[str, Any]) -> str | None:
    """The compile id of a structured event, written as torch writes it."""
    if "compile_id" in metadata:
        given = metadata["compile_id"]
        return None if given is None else str(given)
    frame, attempt = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    place = None if frame is None else f"{frame}/{attempt}"
    if autograd is None:
        return place
    return f"!{autograd}" if place is None else f"!{autograd}/{place}"


def decoded(payload: Any) -> Any:
    """A payload as data: torch may hand over the data itself, or its JSON."""
    return json.loads(payload) if isinstance(payload, str) else payload


def rows_of_summary(summary: Iterable[Any]) -> Rows:
    """A `traceback.StackSummary` as plain rows."""
    return tuple((frame.filename, frame.lineno or 0, frame.name, (frame.line or "").strip()) for frame in summary)


def rows_of_trace(frames: Iterable[dict[str, Any]], file_names: dict[int, str]) -> Rows:
    """The stack inside a structured event, its numbered file names resolved."""
    rows = []
    for frame in frames:
        file = frame.get("filename", "")
        name = file_names.get(file, str(file)) if isinstance(file, int) else str(file)
        rows.append((name, int(frame.get("line") or 0), str(frame.get("name", "")), str(frame.get("loc") or "").strip()))
    return tuple(rows)
