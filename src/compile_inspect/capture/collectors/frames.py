"""Compiled frames: when, with what outcome, and the time of each phase."""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Hooks, decode_payload, rows_of_trace, trace_compile_id
from compile_inspect.capture.collectors.call_stack import call_stack
from compile_inspect.capture.collectors.exceptions import exception_facts, program_rows

# Settings in every metrics record; `environment` has those that differ from the defaults.
_BULKY_METRICS = frozenset(
    {"dynamo_config", "functorch_config", "inductor_config", "graph_node_shapes", "stack_trace", "exception_stack_trace"}
)


class FrameCollector(Collector):
    """Start and end of every compilation, with torch's own metrics."""

    name = "frames"
    trace_names: ClassVar[frozenset[str]] = frozenset({"dynamo_start", "compilation_metrics", "bwd_compilation_metrics"})
    failure_hooks: ClassVar[frozenset[torch_private.HookPoint]] = frozenset({torch_private.COMPILE_FRAME})

    def hooks(self) -> Hooks:
        """Hook the compilation of a frame for its backend and `fullgraph`."""
        return ((torch_private.COMPILE_FRAME, self._on_compile_frame, True),)

    def on_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> None:
        """Record what ended a compilation; torch's metrics contain neither the innermost cause nor an interrupt."""
        if not isinstance(error, Exception):
            self.tap.emit("interrupted", {"reason": type(error).__name__})
            return
        rows = program_rows(error)
        stack = self.tap.intern(rows) if rows else None
        self.tap.emit("failure", {**exception_facts(error), "stack": stack}, stacks=() if stack is None else (stack,))

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record the start or the metrics of a compilation."""
        compilation = trace_compile_id(metadata)
        if name == "dynamo_start":
            self.tap.begin_compilation(compilation)
            rows = rows_of_trace(metadata[name].get("stack", ()), torch_private.interned_strings())
            call = call_stack(rows[-1]) if rows else None
            stack = self.tap.intern(rows if call is None else call.rows)
            inside = None if call is None else call.inside
            self.tap.emit("start", {"stack": stack, "inside": inside}, compilation=compilation, stacks=(stack,))
            return
        metrics = {key: value for key, value in metadata[name].items() if value is not None and key not in _BULKY_METRICS}
        self.tap.emit("metrics", {"backward": name.startswith("bwd"), "metrics": metrics}, compilation=compilation)

    def _on_compile_frame(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        code, backend, fullgraph = args[0], args[5], args[6]
        function, file, line = _describe_frame(code, args[4])
        self.tap.emit(
            "frame",
            {
                "function": function,
                "file": file,
                "line": line,
                "backend": _backend_name(backend),
                "fullgraph": bool(fullgraph),
            },
        )


class SymbolCollector(Collector):
    """Sizes that became symbols, and symbols that were specialized to a number."""

    name = "dynamic shapes"
    trace_names: ClassVar[frozenset[str]] = frozenset(
        {"create_symbol", "create_unbacked_symbol", "symbolic_shape_specialization", "guard_added", "guard_added_fast"}
    )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record one symbol or one condition on symbols."""
        data = metadata[name]
        rows = rows_of_trace(data.get("user_stack") or (), torch_private.interned_strings())
        stack = self.tap.intern(rows) if rows else None
        facts = {
            key: str(data[key])
            for key in ("symbol", "val", "vr", "source", "sources", "value", "reason", "expr")
            if data.get(key) is not None
        }
        self.tap.emit(
            "symbol",
            {"event": name, "facts": facts, "stack": stack},
            compilation=trace_compile_id(metadata),
            stacks=() if stack is None else (stack,),
        )


class PhaseCollector(Collector):
    """Start and end of each timed phase."""

    name = "phases"
    trace_names: ClassVar[frozenset[str]] = frozenset({"chromium_event"})

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record the start or the end of a phase, without bulky arguments (cache keys)."""
        if payload is None:
            return
        event = decode_payload(payload)
        if event.get("ph") not in ("B", "E"):
            return
        arguments = {
            key: value
            for key, value in (event.get("args") or {}).items()
            if isinstance(value, (int, float, bool)) or (isinstance(value, str) and len(value) < 200)
        }
        self.tap.emit(
            "phase",
            {"phase": event.get("name"), "mark": event["ph"], "at": event.get("ts"), "arguments": arguments},
            compilation=trace_compile_id(metadata) or _known_id(arguments.get("compile_id")),
        )


def _known_id(identifier: Any) -> str | None:
    """A compile id, or None; torch writes the word None for an unknown id."""
    return str(identifier) if identifier not in (None, "None", "") else None


def _describe_frame(code: CodeType, closure: tuple[Any, ...] | None) -> tuple[str, str, int]:
    """Function name, file and line of a frame.

    Dynamo wraps a module whose `forward` is torch's own (such as `nn.Sequential`) in a function called `inner`. The user
    knows the module, so the module is named instead.
    """
    if code.co_filename.endswith("external_utils.py") and "fn" in code.co_freevars and closure:
        wrapped = closure[code.co_freevars.index("fn")].cell_contents
        # Only attributes of the type are read: reading those of a user's object could run any code.
        module = wrapped.__self__ if isinstance(wrapped, MethodType) else wrapped
        forward = module if isinstance(module, FunctionType) else getattr(type(module), "forward", None)
        if isinstance(forward, FunctionType):
            inner = forward.__code__
            if forward is module:
                return inner.co_name, inner.co_filename, inner.co_firstlineno
            return f"{type(module).__name__}.{inner.co_name}", inner.co_filename, inner.co_firstlineno
    return code.co_name, code.co_filename, code.co_firstlineno


def _backend_name(backend: Any) -> str:
    """The name of the backend, as a user would write it."""
    for _ in range(8):
        inner = _attribute(backend, "_torchdynamo_orig_backend") or _attribute(backend, "_torchdynamo_orig_callable")
        if inner is None:
            break
        backend = inner
    name = _attribute(backend, "compiler_name") or _attribute(backend, "__name__") or type(backend).__name__
    mode = _attribute(backend, "config")
    if name == "inductor" and isinstance(mode, dict) and mode.get("triton.cudagraphs"):
        return "inductor (CUDA graphs requested)"
    return str(name)


def _attribute(value: Any, name: str) -> Any:
    """An attribute, without calling the user's `__getattr__`."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None
