"""Guards, failed guards, and the recompile limit."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Hooks, rows_of_summary, trace_compile_id
from compile_inspect.capture.guard_values import actual_values

# Torch lists the failed guard of each earlier version, so the total grows quadratically with the number of versions.
_MAX_REASONS = 16


class GuardCollector(Collector):
    """The guard tree of each compiled frame, and the user's stack for each guard."""

    name = "guards"
    trace_names: ClassVar[frozenset[str]] = frozenset({"dynamo_cpp_guards_str"})

    def hooks(self) -> Hooks:
        """Hook the function that builds the guards of a frame."""
        return ((torch_private.BUILD_GUARDS, self._on_build, False),)

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record the guard tree as torch prints it."""
        if payload:
            self.tap.emit("guard tree", {"text": payload}, compilation=trace_compile_id(metadata))

    def _on_build(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        output = kwargs.get("output_graph", args[2] if len(args) > 2 else None)
        rows: list[list[Any]] = []
        # Many guards share one stack summary, and converting it to rows reads source files.
        indices: dict[int, int | None] = {}
        for guard in getattr(output, "guards", ()) or ():
            key = id(guard.user_stack)
            if key not in indices:
                summary = rows_of_summary(guard.user_stack or ())
                indices[key] = self.tap.intern(summary) if summary else None
            if indices[key] is not None:
                rows.append([guard.name, guard.create_fn_name(), indices[key]])
        self.tap.emit("guard stacks", {"rows": rows}, stacks=sorted({row[2] for row in rows}))


class RecompileCollector(Collector):
    """Why a frame was recompiled, and when torch stopped recompiling it."""

    name = "recompiles"
    trace_names: ClassVar[frozenset[str]] = frozenset({"recompile_reasons"})

    def hooks(self) -> Hooks:
        """Hook the check of the guards before a recompile, and the check of the recompile limits."""
        return (
            (torch_private.EXCEEDS_LIMIT, self._on_limit_check, False),
            (torch_private.RECOMPILE_REASONS, self._on_reasons, False),
        )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record the failed guards; torch writes one reason as plain text and several as a JSON list."""
        reasons = [payload or ""]
        if isinstance(payload, list):
            reasons = [str(item) for item in payload]
        elif payload and payload.startswith("["):
            try:
                reasons = [str(item) for item in json.loads(payload)]
            except ValueError:
                reasons = [payload]
        data = {"reasons": reasons[:_MAX_REASONS], "beyond": max(0, len(reasons) - _MAX_REASONS)}
        self.tap.emit("recompile", data, compilation=trace_compile_id(metadata))

    def _on_reasons(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        frame = kwargs.get("frame", args[1] if len(args) > 1 else None)
        values = actual_values((result or [])[:_MAX_REASONS], frame.f_locals, frame.f_globals) if frame is not None else {}
        if values:
            self.tap.emit("actual values", {"values": values})

    def _on_limit_check(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        exceeded, limit = result
        if exceeded:
            data = {"limit": limit, "value": torch_private.recompile_limit(limit)}
            self.tap.emit("limit", data, compilation=str(args[1]) if len(args) > 1 else None)
