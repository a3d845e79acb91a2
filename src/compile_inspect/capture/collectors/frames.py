"""Which frames were compiled, when, with what outcome, and where the time went."""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations, decoded, rows_of_trace, trace_compile_id
from compile_inspect.capture.collectors.call_stack import call_stack
from compile_inspect.capture.collectors.exceptions import facts_of, rows_of

# Settings dumped into every metrics record; `environment` has what differs from the defaults.
_BULKY_METRICS = frozenset(
    {"dynamo_config", "functorch_config", "inductor_config", "graph_node_shapes", "stack_trace", "exception_stack_trace"}
)


class FrameCollector(Collector):
    """Start and end of every compilation, with torch's own metrics."""

    name = "frames"
    trace_names: ClassVar[frozenset[str]] = frozenset({"dynamo_start", "compilation_metrics", "bwd_compilation_metrics"})
    failures: ClassVar[frozenset[torch_private.HookPoint]] = frozenset({torch_private.COMPILE_FRAME})

    def observations(self) -> Observations:
        """Observe the compile of a frame for its backend and `fullgraph`."""
        return ((torch_private.COMPILE_FRAME, self._on_compile_frame, True),)

    def on_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> None:
        """Note what ended a compilation; torch's metrics know neither the innermost cause nor an interrupt."""
        if not isinstance(error, Exception):
            self.tap.emit("interrupted", {"reason": type(error).__name__})
            return
        rows = rows_of(error)
        stack = self.tap.intern(rows) if rows else None
        self.tap.emit("failure", {**facts_of(error), "stack": stack}, stacks=() if stack is None else (stack,))

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Note the start or the metrics of a compilation."""
        compilation = trace_compile_id(metadata)
        if name == "dynamo_start":
            self.tap.begin_compilation(compilation)
            rows = rows_of_trace(metadata[name].get("stack", ()), torch_private.interned_strings())
            called = call_stack(rows[-1]) if rows else None
            stack = self.tap.intern(rows if called is None else called.rows)
            inside = None if called is None else called.inside
            self.tap.emit("start", {"stack": stack, "inside": inside}, compilation=compilation, stacks=(stack,))
            return
        metrics = {key: value for key, value in metadata[name].items() if value is not None and key not in _BULKY_METRICS}
        self.tap.emit("metrics", {"backward": name.startswith("bwd"), "metrics": metrics}, compilation=compilation)

    def _on_compile_frame(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        code, backend, whole_graph = args[0], args[5], args[6]
        function, file, line = _describe_frame(code, args[4])
        self.tap.emit(
            "frame",
            {
                "function": function,
                "file": file,
                "line": line,
                "backend": _backend_name(backend),
                "fullgraph": bool(whole_graph),
            },
        )


class SymbolCollector(Collector):
    """Sizes that became symbols, and where one was pinned to a number again."""

    name = "dynamic shapes"
    trace_names: ClassVar[frozenset[str]] = frozenset(
        {"create_symbol", "create_unbacked_symbol", "symbolic_shape_specialization", "guard_added", "guard_added_fast"}
    )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Note one symbol or one condition on symbols."""
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
    """Begin and end of every timed phase."""

    name = "phases"
    trace_names: ClassVar[frozenset[str]] = frozenset({"chromium_event"})

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Note the begin, the end or the mark of a phase; bulky arguments (cache keys) are left out."""
        if payload is None:
            return
        event = decoded(payload)
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
            compilation=trace_compile_id(metadata) or _given(arguments.get("compile_id")),
        )


def _given(identifier: Any) -> str | None:
    """A compile id, where torch knew one: it writes the word None where it did not."""
    return str(identifier) if identifier not in (None, "None", "") else None


def _describe_frame(code: CodeType, closure: tuple[Any, ...] | None) -> tuple[str, str, int]:
    """Name and place of a frame.

    Around a module whose `forward` is torch's own (`nn.Sequential`, say) Dynamo puts a function called `inner`;
    the user knows the module, so that is what is named.
    """
    if code.co_filename.endswith("external_utils.py") and "fn" in code.co_freevars and closure:
        wrapped = closure[code.co_freevars.index("fn")].cell_contents
        # Only the type is asked for attributes: an object of the user's may do anything when asked.
        module = wrapped.__self__ if isinstance(wrapped, MethodType) else wrapped
        forward = module if isinstance(module, FunctionType) else getattr(type(module), "forward", None)
        if isinstance(forward, FunctionType):
            inner = forward.__code__
            if forward is module:
                return inner.co_name, inner.co_filename, inner.co_firstlineno
            return f"{type(module).__name__}.{inner.co_name}", inner.co_filename, inner.co_firstlineno
    return code.co_name, code.co_filename, code.co_firstlineno


def _backend_name(backend: Any) -> str:
    """The name a user would have given the backend."""
    for _ in range(8):
        inner = _attribute(backend, "_torchdynamo_orig_backend") or _attribute(backend, "_torchdynamo_orig_callable")
        if inner is None:
            break
        backend = inner
    name = _attribute(backend, "compiler_name") or _attribute(backend, "__name__") or type(backend).__name__
    mode = _attribute(backend, "config")
    if name == "inductor" and isinstance(mode, dict) and mode.get("triton.cudagraphs"):
        return "inductor (CUDA graphs asked for)"
    return str(name)


def _attribute(value: Any, name: str) -> Any:
    """An attribute without calling a `__getattr__` of the user's."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None
