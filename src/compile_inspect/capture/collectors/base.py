"""The base class of collectors, and helpers for stacks and ids."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from compile_inspect import torch_private

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap

Rows = tuple[tuple[str, int, str, str], ...]
Hooks = Iterable[tuple[torch_private.HookPoint, torch_private.Observer, bool]]


class Collector:
    """Collects one kind of evidence.

    A collector names the trace events it uses, the functions of torch it hooks, or both, and converts what it receives into its
    own events. It may raise anywhere: the tap catches exceptions.
    """

    name: ClassVar[str]
    trace_names: ClassVar[frozenset[str]] = frozenset()
    failure_hooks: ClassVar[frozenset[torch_private.HookPoint]] = frozenset()

    def __init__(self, tap: Tap) -> None:
        self.tap = tap

    def hooks(self) -> Hooks:
        """The functions to hook: (hook point, observer, whether the observer runs before the call instead of after it)."""
        return ()

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Handle an event named in `trace_names`; its payload is text, or data that torch would write as JSON."""

    def on_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> None:
        """Handle an exception in a function named in `failure_hooks`; the exception then propagates as without the recorder."""

    def on_listener(self) -> None:
        """Another recording has started during this one; it needs the events that are written only once."""

    def flush(self) -> None:
        """Write pending events; the recording is about to end."""


def trace_compile_id(metadata: dict[str, Any]) -> str | None:
    """The compile id of a structured event, in torch's format."""
    if "compile_id" in metadata:
        identifier = metadata["compile_id"]
        return None if identifier is None else str(identifier)
    frame, attempt = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    in_frame = None if frame is None else f"{frame}/{attempt}"
    if autograd is None:
        return in_frame
    return f"!{autograd}" if in_frame is None else f"!{autograd}/{in_frame}"


def decode_payload(payload: Any) -> Any:
    """A payload as data: torch may pass either the data or its JSON."""
    return json.loads(payload) if isinstance(payload, str) else payload


def rows_of_summary(summary: Iterable[Any]) -> Rows:
    """A `traceback.StackSummary` as plain rows."""
    return tuple((frame.filename, frame.lineno or 0, frame.name, (frame.line or "").strip()) for frame in summary)


def rows_of_trace(frames: Iterable[dict[str, Any]], file_names: dict[int, str]) -> Rows:
    """The stack in a structured event, with its numbered file names resolved."""
    rows = []
    for frame in frames:
        file = frame.get("filename", "")
        name = file_names.get(file, str(file)) if isinstance(file, int) else str(file)
        rows.append((name, int(frame.get("line") or 0), str(frame.get("name", "")), str(frame.get("loc") or "").strip()))
    return tuple(rows)
