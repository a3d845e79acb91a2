"""Compilations, their bytecode and their phases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compile_inspect.assemble.names import readable_name
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Bytecode, Compilation, CompilationOutcome, Phase
from compile_inspect.records.compilations import first_compilation_id

# What makes Dynamo give up on a frame; anything else is an error.
_SOFT_FAILURES = ("Unsupported", "UserError", "SkipFrame", "FailOnRecompileLimitHit")
_KEPT_METRICS = (
    "entire_frame_compile_time_s",
    "backend_compile_time_s",
    "inductor_compile_time_s",
    "code_gen_time_s",
    "dynamo_cumulative_compile_time_us",
    "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us",
    "inductor_code_gen_cumulative_compile_time_us",
    "triton_compile_time_us",
    "triton_kernel_compile_times_us",
    "structured_logging_overhead_us",
    "guard_count",
    "shape_env_guard_count",
    "graph_input_count",
    "cache_size",
    "accumulated_cache_size",
    "num_graph_breaks",
    "recompile_reason",
    "is_forward",
    "cudagraph_skip_reason",
)


def assemble_compilations(events: Iterable[Event], stacks: StackTable) -> list[Compilation]:
    """Every compilation in the order they started; one without metrics was still under way at the end."""
    facts: dict[str, dict[str, Any]] = {}
    for event in events:
        identifier = event.get("compilation")
        if identifier is None or event["kind"] not in _READERS:
            continue
        _READERS[event["kind"]](facts.setdefault(identifier, {"symbols": {}}), event, stacks)
    for identifier, known in facts.items():
        # Where torch gave up before it began (the recompile limit), the frame's first compilation knows its place.
        earlier = facts.get(first_compilation_id(identifier), {})
        for key in ("function", "file", "line", "backend"):
            if known.get(key) is None and key in earlier:
                known[key] = earlier[key]
    return [
        _compilation(identifier, known, stacks)
        for identifier, known in facts.items()
        if "started" in known or known.get("file")
    ]


def _read_start(known: dict[str, Any], event: Event, stacks: StackTable) -> None:
    known["call_stack"] = stacks.define_call(event["stack"])
    known.setdefault("started", event["time"])


def _read_frame(known: dict[str, Any], event: Event, stacks: StackTable) -> None:
    known.update({key: event[key] for key in ("function", "file", "line", "backend", "fullgraph")})
    known.setdefault("started", event["time"])


def _read_symbol(known: dict[str, Any], event: Event, stacks: StackTable) -> None:
    facts = event["facts"]
    if event["event"].startswith("create") and "symbol" in facts:
        known["symbols"][facts["symbol"]] = readable_name(facts.get("source", ""))


def _read_metrics(known: dict[str, Any], event: Event, stacks: StackTable) -> None:
    metrics = event["metrics"]
    if event["backward"] or metrics.get("is_forward") is False:
        known["backward_seconds"] = known.get("backward_seconds", 0.0) + _seconds(metrics)
        return
    known["metrics"] = metrics
    for name, key in (("function", "co_name"), ("file", "co_filename"), ("line", "co_firstlineno")):
        known.setdefault(name, metrics.get(key))


def _read_interrupt(known: dict[str, Any], event: Event, stacks: StackTable) -> None:
    known["interrupted"] = event["reason"]


_READERS = {
    "interrupted": _read_interrupt,
    "start": _read_start,
    "frame": _read_frame,
    "symbol": _read_symbol,
    "metrics": _read_metrics,
}


def _compilation(identifier: str, known: dict[str, Any], stacks: StackTable) -> Compilation:
    metrics: dict[str, Any] = known.get("metrics", {})
    stack = stacks.stack(known.get("call_stack"))
    innermost = stack.innermost if stack is not None else None
    restarts = metrics.get("restart_reasons") or ()
    failure = metrics.get("fail_reason") or known.get("interrupted")
    return Compilation(
        id=identifier,
        function=known.get("function") or (innermost.function if innermost else ""),
        file=known.get("file") or (innermost.file if innermost else ""),
        line=known.get("line") or (innermost.line if innermost else 0),
        outcome=_outcome(known),
        backend=known.get("backend"),
        attempts=len(restarts) + 1,
        restart_reasons=tuple(str(reason).splitlines()[0] if reason else "" for reason in restarts),
        call_stack=known.get("call_stack"),
        started=known.get("started"),
        seconds=_seconds(metrics) if metrics else None,
        backward_seconds=known.get("backward_seconds"),
        graph_nodes=int(metrics.get("graph_node_count") or 0),
        graph_calls=int(metrics.get("graph_op_count") or 0),
        guard_count=int(metrics.get("guard_count") or 0),
        dynamic_symbols=known["symbols"],
        failure=None if not failure else f"{metrics.get('fail_type', '')}: {failure}".removeprefix(": "),
        metrics={key: metrics[key] for key in _KEPT_METRICS if key in metrics},
    )


def is_soft_failure(kind: str) -> bool:
    """Whether an exception of this type sends the frame back to eager mode instead of reaching the program."""
    return any(name in kind for name in _SOFT_FAILURES)


def _outcome(known: dict[str, Any]) -> CompilationOutcome:
    metrics = known.get("metrics")
    if known.get("interrupted"):
        return CompilationOutcome.FAILED
    if metrics is None:
        return CompilationOutcome.UNFINISHED
    kind = str(metrics.get("fail_type") or "")
    if kind:
        # With suppress_errors the program does not see a failure, and it is one all the same.
        return CompilationOutcome.SKIPPED if is_soft_failure(kind) and not known.get("fullgraph") else CompilationOutcome.FAILED
    if metrics.get("has_guarded_code") is False:
        return CompilationOutcome.NOTHING_TO_COMPILE
    return CompilationOutcome.COMPILED


def _seconds(metrics: dict[str, Any]) -> float:
    if "duration_us" in metrics:
        return float(metrics["duration_us"]) / 1e6
    return float(metrics.get("entire_frame_compile_time_s") or metrics.get("inductor_compile_time_s") or 0.0)


def assemble_bytecode(events: Iterable[Event]) -> list[Bytecode]:
    """The bytecode of each rewritten frame."""
    return [
        Bytecode(event["compilation"], event["function"], event["file"], event["line"], event["original"], event["rewritten"])
        for event in events
        if event["kind"] == "bytecode"
    ]


def assemble_phases(events: Iterable[Event]) -> list[Phase]:
    """Phases from their begin and end marks; one that never ended is left out."""
    phases: list[tuple[int, Phase]] = []
    running: dict[int, list[dict[str, Any]]] = {}
    order = 0
    threads: dict[int, int] = {}
    for event in events:
        if event["kind"] != "phase" or event.get("at") is None:
            continue
        thread = threads.setdefault(event["thread"], len(threads))
        stack = running.setdefault(thread, [])
        if event["mark"] == "B":
            stack.append({"event": event, "order": order, "inner": 0.0})
            order += 1
            continue
        index = next((i for i in range(len(stack) - 1, -1, -1) if stack[i]["event"]["phase"] == event["phase"]), None)
        if index is None:
            continue
        opening = stack[index]
        del stack[index:]
        seconds = max(0.0, (event["at"] - opening["event"]["at"]) / 1e6)
        if stack:
            stack[-1]["inner"] += seconds
        details = {**opening["event"]["arguments"], **event["arguments"]}
        details.pop("compile_id", None)
        compilation = event["compilation"] or opening["event"]["compilation"]
        start = opening["event"]["at"] / 1e6
        own = max(0.0, seconds - opening["inner"])
        phases.append((opening["order"], Phase(compilation, str(event["phase"]), start, seconds, index, own, thread, details)))
    return [phase for _, phase in sorted(phases, key=lambda item: item[0])]
