"""Cache lookups and CUDA graphs."""

from __future__ import annotations

from typing import Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Hooks, decode_payload, trace_compile_id


class CacheCollector(Collector):
    """Lookups in the FX graph and AOTAutograd caches."""

    name = "caches"
    trace_names: ClassVar[frozenset[str]] = frozenset(
        f"{cache}_{outcome}"
        for cache in ("fx_graph_cache", "aotautograd_cache", "fx_graph_bundled_cache")
        for outcome in ("hit", "miss", "bypass", "guard_miss")
    )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record outcome, key and reason, but not the components of the key, which repeat the whole graph."""
        facts = decode_payload(payload) if payload else {}
        cache, _, outcome = name.partition("_cache_")
        data = {
            "cache": cache,
            "outcome": outcome,
            "key": str(facts.get("key") or ""),
            "reason": str(facts.get("cache_bypass_reason") or facts.get("cache_status_detailed") or ""),
            "saved": facts.get("time_saved_ns"),
        }
        self.tap.emit("cache", data, compilation=trace_compile_id(metadata))


class CudaGraphCollector(Collector):
    """Whether compiled graphs run as CUDA graphs, and if not, why."""

    name = "cuda graphs"

    def hooks(self) -> Hooks:
        """Hook the decision after a compilation, each skip, and each recording at run time."""
        return (
            (torch_private.SKIP_CUDA_GRAPH, self._on_skip, True),
            (torch_private.FINISH_GRAPH, self._on_finish, False),
            (torch_private.RECORD_CUDA_GRAPH, self._on_record, False),
        )

    def _on_skip(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self.tap.emit("cuda graph", {"outcome": "SKIPPED", "reason": str(args[0] if args else kwargs.get("msg", ""))})

    def _on_record(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self.tap.emit("cuda graph", {"outcome": "RECORDED", "reason": ""})

    def _on_finish(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        compiled, options = args[0], kwargs.get("graph_kwargs", args[3] if len(args) > 3 else {})
        is_enabled = bool(options.get("cudagraphs"))
        if not (is_enabled or torch_private.cuda_graphs_requested()):
            return
        devices = sorted(getattr(compiled, "device_types", ()) or ())
        reason = getattr(compiled, "disabled_cudagraphs_reason", None)
        on_gpu = "cuda" in devices
        outcome = "USED" if is_enabled and on_gpu else ("DISABLED" if on_gpu else "NO_EFFECT")
        data = {"outcome": outcome, "reason": str(reason or ""), "backward": options.get("is_backward"), "devices": devices}
        self.tap.emit("cuda graph", data)
