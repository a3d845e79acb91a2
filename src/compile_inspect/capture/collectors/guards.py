"""Guards, failed guards, and the limit on recompiles."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations, rows_of_summary, trace_compile_id
from compile_inspect.capture.variables import actual_values

# Torch lists the failed guard of every earlier version; with hundreds of versions that grows with the square.
_MOST_REASONS = 16


class GuardCollector(Collector):
    """The guard tree of every compiled frame, and the user's stack behind every guard."""

    name = "guards"
    trace_names: ClassVar[frozenset[str]] = frozenset({"dynamo_cpp_guards_str"})

    def observations(self) -> Observations:
        """Observe the building of a frame's guards."""
        return ((torch_private.BUILD_GUARDS, self._on_build, False),)

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Keep the guard tree as torch prints it."""
        if payload:
            self.tap.emit("guard tree", {"text": payload}, compilation=trace_compile_id(metadata))

    def _on_build(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        output = kwargs.get("output_graph", args[2] if len(args) > 2 else None)
        rows: list[list[Any]] = []
        # Many guards share one stack summary, and turning it into rows reads source files.
        seen: dict[int, int | None] = {}
        for guard in getattr(output, "guards", ()) or ():
            key = id(guard.user_stack)
            if key not in seen:
                summary = rows_of_summary(guard.user_stack or ())
                seen[key] = self.tap.intern(summary) if summary else None
            if seen[key] is not None:
                rows.append([guard.name, guard.create_fn_name(), seen[key]])
        self.tap.emit("guard stacks", {"rows": rows}, stacks=sorted({row[2] for row in rows}))


class RecompileCollector(Collector):
    """Why a frame was compiled again, and when torch gave up on it."""

    name = "recompiles"
    trace_names: ClassVar[frozenset[str]] = frozenset({"recompile_reasons"})

    def observations(self) -> Observations:
        """Observe the check of the guards before a recompile, and of the recompile limits."""
        return (
            (torch_private.EXCEEDS_LIMIT, self._on_limit_check, False),
            (torch_private.RECOMPILE_REASONS, self._on_reasons, False),
        )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Keep the failed guards; torch writes a single reason as bare text and several as a JSON list."""
        reasons = [payload or ""]
        if isinstance(payload, list):
            reasons = [str(item) for item in payload]
        elif payload and payload.startswith("["):
            try:
                reasons = [str(item) for item in json.loads(payload)]
            except ValueError:
                reasons = [payload]
        data = {"reasons": reasons[:_MOST_REASONS], "beyond": max(0, len(reasons) - _MOST_REASONS)}
        self.tap.emit("recompile", data, compilation=trace_compile_id(metadata))

    def _on_reasons(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        frame = kwargs.get("frame", args[1] if len(args) > 1 else None)
        values = actual_values((result or [])[:_MOST_REASONS], frame.f_locals, frame.f_globals) if frame is not None else {}
        if values:
            self.tap.emit("actual values", {"values": values})

    def _on_limit_check(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        exceeded, limit = result
        if exceeded:
            data = {"limit": limit, "value": torch_private.recompile_limit(limit)}
            self.tap.emit("limit", data, compilation=str(args[1]) if len(args) > 1 else None)
