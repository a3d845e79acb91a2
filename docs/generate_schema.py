"""Print the tables of docs/reference/capture-file.md: every record of a capture, from the dataclasses themselves.

    python docs/generate_schema.py             # print the tables
    python docs/generate_schema.py --update    # put them into docs/reference/capture-file.md

Names, types and defaults come from `compile_inspect.records`. `MEANINGS` below describes the fields. A field without a
meaning, or a meaning without a field, is an error. tests/docs/test_schema_is_current.py runs this.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from compile_inspect import records

PAGE = Path(__file__).parent / "reference" / "capture-file.md"
BEGIN = "<!-- tables: begin (docs/generate_schema.py) -->"
END = "<!-- tables: end -->"

MEANINGS: dict[str, dict[str, str]] = {
    "Inspection": {
        "environment": "Where the compilation ran.",
        "process": "The recorded process.",
        "complete": "False when the program ended before the recording did.",
        "missing": "Evidence that could not be collected.",
        "notes": "Sentences for the reader.",
        "target": "What was inspected, as named on the command line; empty for a whole program.",
        "failures": "Compilations that failed, and the exception that ended the run.",
        "share": "The share of work that runs compiled; null if it is not known.",
        "compilations": "Every compilation, in the order they started.",
        "graphs": "Every graph at every stage.",
        "breaks": "Causes of graph breaks, in order of appearance.",
        "guards": "Guards of every compiled frame.",
        "specializations": "Sizes that were symbolic and were specialized to a number.",
        "recompiles": "Frames compiled again, and why.",
        "limits": "Frames that torch stopped recompiling.",
        "lowerings": "Inductor's output for each graph.",
        "phases": "Intervals of compile time, in the order they began.",
        "caches": "Look-ups in torch's compile caches.",
        "cuda_graphs": "The outcome of each CUDA graph.",
        "bytecode": "Bytecode before and after Dynamo.",
        "timings": "Results of `compile-inspect bench`, in the order they were added.",
        "agreements": "Comparisons with eager, if they were added.",
        "findings": "Causes of graph breaks with fixes that were tried, if they were added.",
        "stacks": "Every stack once; other records point here by index.",
        "library_sources": "Text of files of installed packages, other than torch, that operations come from; by file name.",
        "sources": "The text of the user's own files that the evidence points into, by file name.",
    },
    "Environment": {
        "python": "Version of Python.",
        "platform": "Operating system, as reported by `platform.platform()`.",
        "torch": "Version of torch.",
        "torch_known": "Whether the recorder was tested with this torch.",
        "packages": "Versions of packages that matter to a compilation and were imported.",
        "devices": "Names of the CUDA devices, if the program had initialized CUDA.",
        "cpu": "Vector instructions that torch uses on the CPU.",
        "threads": "Number of threads torch uses for one operation.",
        "variables": "Environment variables that control the compiler; others are not recorded.",
        "configuration": "Settings of Dynamo, AOTAutograd and Inductor that were not at their default.",
    },
    "Process": {
        "pid": "Process id.",
        "rank": "The environment variable `RANK` of a process started by a distributed launcher.",
        "session": "The same for all processes of one recorded program.",
        "command": "The command line, with the interpreter first.",
        "started": "When the recording began, in seconds since 1970.",
        "ended": "When it ended.",
        "recorder": "Version of compile-inspect that made the recording.",
    },
    "NamedTarget": {
        "specification": "`module:attribute` or `file.py:attribute`.",
        "inputs": "The value of `--inputs`.",
        "folder": "The folder in which the command was run.",
        "no_grad": "Whether it ran without gradients.",
    },
    "Missing": {
        "collector": "Which kind of evidence.",
        "reason": "What went wrong.",
        "times": "How often it was reported; after three reports of one collector no more are stored.",
    },
    "Compilation": {
        "id": "Torch's id: frame number / number of the compilation of this frame.",
        "function": "Name of the compiled function. The rest of a function after a graph break has a name that torch assigns.",
        "file": "File of the function.",
        "line": "First line of the function, its decorators included.",
        "outcome": "How it ended.",
        "backend": "Name of the backend.",
        "attempts": "How often tracing started; a graph break restarts it.",
        "restart_reasons": "Why tracing was restarted.",
        "call_stack": "Index of the stack of the call, as torch reports it.",
        "started": "When it began, in seconds since 1970.",
        "seconds": "Time for the frame: tracing, the backend, guards.",
        "backward_seconds": "Time for a backward that was compiled later, when it first ran.",
        "graph_nodes": "Nodes in Dynamo's graph, by torch's count.",
        "graph_calls": "Calls in Dynamo's graph, by torch's count.",
        "guard_count": "Guards, by torch's count.",
        "dynamic_symbols": "Symbolic sizes and numbers: the name of the symbol and its meaning.",
        "failure": "Type and message of the exception that ended it.",
        "metrics": "Some of torch's own metrics for the compilation, under torch's names.",
    },
    "Phase": {
        "compilation": "Id of the compilation; null for work outside any, such as a thread that builds a kernel.",
        "name": "Torch's name for the phase.",
        "start": "When it began, in seconds since 1970.",
        "seconds": "How long it took.",
        "depth": "Number of phases around it in the same thread.",
        "own_seconds": "The time outside all inner phases.",
        "thread": "Number of the thread, counted from 0 in order of appearance.",
        "details": "What torch attached to the phase.",
    },
    "Bytecode": {
        "compilation": "Id of the compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "original": "Disassembly of the bytecode as Python compiled it.",
        "rewritten": "Disassembly of Dynamo's replacement.",
    },
    "Graph": {
        "id": "Unique in the capture.",
        "compilation": "Id of the compilation.",
        "stage": "The stage of the pipeline at which it was recorded.",
        "direction": "Which way it computes.",
        "nodes": "The nodes in topological order.",
        "text": "The graph as torch prints it.",
        "from_text": "Whether the nodes were read from `text`, as for a cache hit.",
    },
    "Node": {
        "name": "Unique in the graph; names of nodes in a nested graph start with its path.",
        "operation": "FX opcode: placeholder, get_attr, call_function, call_method, call_module or output.",
        "target": "What is called or fetched.",
        "inputs": "Names of the nodes it takes values from.",
        "arguments": "All arguments as short text; a tensor appears by the name of its node.",
        "value": "The tensors it returns; empty if it returns none.",
        "stack": "Index of its stack.",
        "module": "Path of the innermost `nn.Module` around it, as torch writes it.",
    },
    "TensorType": {
        "shape": "Sizes; a symbolic one is text.",
        "dtype": "For example `float32`.",
        "device": "For example `cuda:0`.",
        "strides": "Strides in elements; empty for tensors that have none.",
    },
    "GraphBreak": {
        "kind": "Torch's name for this kind of break.",
        "location": "Where it happened: the innermost line outside torch, or torch's line if only the user's code called it.",
        "own_location": "Innermost line inside compiled code that is not in an installed package; null if there is none.",
        "effect": "Its effect on the frame.",
        "identifier": "Torch's `GB…` id.",
        "link": "Torch's page about it.",
        "explanation": "Torch's explanation.",
        "hints": "Torch's hints.",
        "context": "Torch's debug context.",
        "traced_instruction": "The bytecode instruction Dynamo was tracing.",
        "stack": "Index of the whole stack.",
        "compilations": "Ids of the compilations that ran into it.",
        "hits": "The number of these compilations.",
        "follows": "Index in `breaks` of the break that led to this one; absent if there is none.",
        "text": "Torch's whole message.",
    },
    "Guard": {
        "compilation": "Id of the compilation.",
        "kind": "Torch's kind, for example `TENSOR_MATCH`.",
        "source": "What is checked, as torch writes it.",
        "variable": "The same as the user would write it.",
        "condition": "The condition in plain words.",
        "location": "The line that made the guard necessary.",
        "stack": "Index of its stack.",
        "noise": "Whether users can do nothing about this guard.",
    },
    "Recompile": {
        "compilation": "Id of the new compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "failures": "For each earlier version, the guard that failed, latest version first; at most 16.",
    },
    "Specialization": {
        "compilation": "The compilation in which it happened.",
        "variable": "The size, as the user would write it.",
        "value": "The number it was specialized to.",
        "reason": "Why, in a few words.",
        "location": "The line that specialized it.",
        "stack": "The number of its stack.",
    },
    "GuardFailure": {
        "against": "Id of the earlier version.",
        "variable": "What changed.",
        "reason": "The guard that failed.",
        "expected": "What the earlier version was compiled for.",
        "actual": "The value in the call; null if it could not be read without running code of the program.",
        "location": "The line behind the guard.",
    },
    "LimitHit": {
        "compilation": "Id of the compilation that was refused.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "limit": "Name of the setting of Dynamo.",
        "value": "Its value.",
        "last_reason": "The guard that failed last.",
    },
    "Lowering": {
        "id": "Unique in the capture.",
        "compilation": "Id of the compilation.",
        "direction": "Which way it computes.",
        "graph": "Id of the post-grad graph that was lowered.",
        "code": "The generated module.",
        "code_path": "Where the module was written on the recorded machine.",
        "kernels": "Kernel launches in the order they were emitted.",
        "unplaced": "Nodes of the graph that no kernel computes.",
        "not_fused": "Pairs that the scheduler did not fuse; at most 4,000 distinct answers for one graph.",
        "memory": "Inductor's estimate of the memory needed.",
        "from_cache": "Whether a cache supplied the code, so that the scheduler did not run.",
    },
    "Kernel": {
        "name": "Name in the generated module.",
        "kind": "What it is written in.",
        "nodes": "Names of the post-grad nodes it computes.",
        "stacks": "Indices of the stacks of those nodes.",
        "scheduler_nodes": "The scheduler's names for its parts, for example `op3`.",
        "first_line": "First line of its source in the generated module; null for a library call.",
        "last_line": "Last line of its source.",
        "call_line": "The line of the generated module that launches it.",
    },
    "UnplacedNode": {
        "name": "Name of the post-grad node.",
        "fate": "Its outcome.",
    },
    "NotFused": {
        "first": "The scheduler's name of one neighbor.",
        "second": "The scheduler's name of the other.",
        "reason": "The scheduler's reason.",
        "first_kernel": "The kernel the first ended up in.",
        "second_kernel": "The kernel the second ended up in.",
        "times": "How often the scheduler gave this answer.",
    },
    "MemoryEstimate": {
        "peak_bytes": "The largest amount at any step.",
        "steps": "For each scheduler node, in the final order, the bytes in use.",
    },
    "CacheEvent": {
        "compilation": "Id of the compilation.",
        "cache": "Which cache.",
        "outcome": "The result of the look-up.",
        "reason": "Why it missed or was bypassed.",
        "key": "The key that was looked up.",
        "seconds_saved": "Compile time saved by a hit, if torch reports it.",
    },
    "CudaGraphEvent": {
        "compilation": "Id of the compilation.",
        "outcome": "Its outcome.",
        "reason": "Why it was skipped, in torch's words.",
        "direction": "Which way the graph computes.",
        "location": "The line torch blames.",
        "times": "How often the same event was recorded.",
    },
    "Timing": {
        "target": "What was timed: the name on the command line, or that of the function.",
        "device": "Type of device.",
        "hardware": "Name of the GPU or of the processor.",
        "torch": "Version of torch.",
        "threads": "Number of threads torch uses for one operation.",
        "gradients": "Whether a call is one forward and one backward.",
        "seconds": "How long every point was sampled.",
        "points": "One for every size of a sweep; one if there was no sweep.",
        "interrupted": "The step during which Ctrl-C ended the run; empty if the run was complete.",
    },
    "TimingPoint": {
        "sizes": "The value of every axis of the sweep.",
        "inputs": "A short description of every input tensor.",
        "measurements": "One for every variant, eager first.",
    },
    "Measurement": {
        "variant": "Name of the variant.",
        "refused": "Why it cannot run; the other fields are then empty.",
        "samples": "Seconds per call, one for every round, as measured; on a GPU synchronization is part of it.",
        "device_samples": "Seconds between device events around one call in every round; on a GPU only.",
        "batch": "How many calls one sample is the mean of.",
        "summary": "Statistics of the samples.",
        "speed": "The speedup over eager.",
        "build": "The cost of the build.",
        "payback": "When the build has paid back.",
        "memory": "The memory that one call needs.",
        "first_seconds": "The first call after the build.",
        "warm_ups": "Calls made before the samples.",
        "doubts": "Reasons not to trust it too far.",
        "assumes": "What the variant assumes.",
    },
    "Summary": {
        "count": "Number of samples.",
        "median": "Their median in seconds.",
        "low": "Lower end of the 95 % interval of the median, by order statistics.",
        "high": "Its upper end.",
        "mean": "Their mean.",
        "deviation": "Their standard deviation.",
        "outliers": "Samples over 3.5 scaled median absolute deviations from the median.",
    },
    "Outlier": {
        "position": "Which sample, counted from 0.",
        "seconds": "Its value.",
        "deviations": "How many scaled median absolute deviations it is away.",
    },
    "Speed": {
        "ratio": "Median over the rounds of eager's sample divided by the variant's.",
        "low": "Lower end of its 95 % interval.",
        "high": "Its upper end.",
    },
    "Build": {
        "seconds": "Time in the measuring process, first calls included: warm, and dependent on the order of variants.",
        "caches": "What torch's caches on disk contributed.",
        "cold_seconds": "Time in a separate process with an empty cache folder: the median of `cold_samples`.",
        "warm_seconds": "Time in a separate process with the caches that the last cold build left.",
        "reason": "Why there is no cold or no warm build; empty if there are both.",
        "cold_samples": "Seconds of every cold build.",
        "cold_cpu_seconds": "CPU time of a cold build and of the compilers it runs, the median.",
    },
    "Payback": {
        "calls": "Number of calls after which eager has taken longer than the build and the variant; null for never.",
        "low": "Lower end of its 95 % interval; null for never.",
        "high": "Its upper end; null for never.",
        "build_seconds": "The cold build that is paid back.",
        "gain_seconds": "The gain of one call.",
    },
    "Memory": {
        "peak_bytes": "The largest amount that one call held beyond what was held before it; null if it is not known.",
        "how": "How it was measured, or why it is not known.",
    },
    "Agreement": {
        "function": "What was compared.",
        "gradients": "Whether gradients were compared too.",
        "points": "The inputs at which results were compared, in words.",
        "variants": "One for every variant.",
        "reference": "Whether there is a float64 reference for at least one of the points.",
        "notes": "Sentences for the reader.",
    },
    "VariantAgreement": {
        "name": "Name of the variant.",
        "verdict": "The conclusion.",
        "reason": "Why, in a sentence.",
        "differences": "Values that differ.",
        "assumptions": "What must not change for the variant to be correct.",
        "measured": "The largest error of every value.",
        "notes": "Sentences for the reader.",
        "blame": "What made it wrong, if the search found it.",
        "not_probed": "What the comparison did not cover, each with the reason if there is one.",
        "eager_because": "Why all or part of the variant runs in eager mode; null if none of it does.",
    },
    "Difference": {
        "point": "At which inputs.",
        "name": "Of which value.",
        "kind": "In what way.",
        "message": "In a sentence.",
        "error": "Distance of the variant from eager, the float64 reference, and all between them.",
        "eager_error": "Distance of eager from the reference, or the spread that rounding gives it if that is larger.",
        "allowed": "What the distance of the variant may be.",
        "index": "The index of the largest error.",
        "eager": "Eager's value there.",
        "variant": "The variant's value there.",
        "reference": "The reference there.",
    },
    "Measured": {
        "name": "Which value.",
        "error": "Largest error of the variant over all inputs.",
        "eager_error": "Largest error of eager.",
        "allowed": "What was allowed there.",
    },
    "Blame": {
        "stage": "The part of torch that caused the difference.",
        "message": "In a sentence.",
        "node": "Name of the node in the graph that was searched.",
        "operation": "Its operation.",
        "location": "The line it came from.",
        "graph": "The graph that was searched, as text.",
        "evidence": "Every run that this conclusion is based on, with its outcome.",
    },
    "CompiledShare": {
        "compiled": "Operations in compiled graphs: calls in Dynamo's graph of the newest version of each frame.",
        "eager": "Operations that torch traced in frames that it gave up on, and that are in no compiled graph.",
    },
    "Failure": {
        "error": "The type of the exception.",
        "message": "Its text.",
        "cause": "Type and first line of the innermost exception, if another was raised from it.",
        "compilation": "The compilation that it ended; null for one that ended the run.",
        "stack": "Number of its stack.",
    },
    "Finding": {
        "cause": "The cause of graph breaks.",
        "advice": "What is known about it.",
        "trials": "Proposals that were tried, each with its proof.",
        "cost": "What the break costs.",
    },
    "Advice": {
        "why": "The reason in plain words.",
        "proposals": "What to try, the best first.",
        "hints": "What else helps.",
    },
    "Proposal": {
        "fixer": "The kind of fix.",
        "title": "The change, as an instruction.",
        "replacements": "Lines to replace.",
        "settings": "Statements to run before anything is compiled.",
        "changes": "How the program behaves differently afterwards.",
        "where": "When it is the right choice.",
    },
    "Replacement": {
        "file": "The file to change.",
        "start": "Line (from 1) and column (from 0, in characters) where the change begins.",
        "end": "Where it ends.",
        "old": "The text there now.",
        "new": "The replacement text.",
    },
    "Setting": {
        "code": "The statement.",
    },
    "Proof": {
        "standing": "How far it was proven.",
        "reason": "For what is withdrawn: which break, which difference, or which exception.",
        "breaks": "Causes of graph breaks before and after.",
        "graphs": "Graphs before and after.",
        "seconds": "Median seconds of a call before and after.",
        "unreached": "Changed lines that no input reaches.",
        "remaining": "Causes that were to be removed and are still there.",
        "arrived": "New causes that the change introduced.",
        "revealed": "Causes that tracing did not reach before.",
        "inputs": "Inputs at which results were compared.",
        "values": "Results and effects compared at each.",
        "gradients": "Gradients compared at each.",
        "largest_error": "The largest difference from the original in eager mode; null where there is none to be taken.",
        "unsteady": "Results that differ between two runs of the unchanged program, and were not compared.",
    },
    "BreakCost": {
        "before": "Operations in graphs that end at it.",
        "after": "Operations in graphs that begin after it.",
        "kernels": "Kernel launches of both sides.",
        "frames": "Frames that run without any graph because of it.",
    },
    "Stack": {
        "locations": "Lines, the outermost first.",
    },
    "Location": {
        "file": "File name as Python knows it.",
        "line": "Line number.",
        "function": "Function around the line.",
        "code": "The text of the line.",
    },
}

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Any: "any"}


def main() -> None:
    """Print the tables, or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="rewrite the tables in docs/reference/capture-file.md")
    if parser.parse_args().update:
        before, _, after = split(PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(before + tables() + after, encoding="utf-8")
    else:
        print(tables(), end="")


def split(page: str) -> tuple[str, str, str]:
    """The page before the tables, the tables, and the page after them."""
    before, begin, rest = page.partition(BEGIN + "\n")
    current, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the line {BEGIN!r} or {END!r}")
    return before + begin, current, end + after


def tables() -> str:
    """Every record reachable from an inspection, each followed by the enums that it uses first."""
    kinds = list(dict.fromkeys(_reachable(records.Inspection)))
    _check_meanings({kind for kind in kinds if dataclasses.is_dataclass(kind)})
    parts = [_enum_table(kind) if issubclass(kind, Enum) else _record_table(kind) for kind in kinds]
    return "\n" + "\n".join(parts) + "\n"


def _reachable(kind: type) -> Iterator[type]:
    """A record, the enums among its fields, then the records among them."""
    yield kind
    if not dataclasses.is_dataclass(kind):
        return
    members = [member for hint in _hints(kind).values() for member in _members(hint)]
    yield from (member for member in members if issubclass(member, Enum))
    for member in members:
        if dataclasses.is_dataclass(member):
            yield from _reachable(member)


def _members(hint: Any) -> Iterator[type]:
    """The records and enums inside a type hint."""
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, Enum)):
        yield hint
    for argument in typing.get_args(hint):
        yield from _members(argument)


def _check_meanings(kinds: set[type]) -> None:
    names = {kind.__name__: {item.name for item in dataclasses.fields(kind)} for kind in kinds}
    fields = {(name, item) for name, items in names.items() for item in items}
    described = {(name, item) for name, meanings in MEANINGS.items() for item in meanings}
    for name, item in sorted(fields - described):
        raise SystemExit(f"describe {name}.{item} in MEANINGS of docs/generate_schema.py")
    for name, item in sorted(described - fields):
        raise SystemExit(f"{name}.{item} no longer exists: remove it from MEANINGS in docs/generate_schema.py")


def _record_table(kind: type) -> str:
    lines = [f"### {kind.__name__}", "", _summary(kind), "", "| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    hints = _hints(kind)
    for item in dataclasses.fields(kind):
        meaning = MEANINGS[kind.__name__][item.name]
        lines.append(f"| `{item.name}` | {_type(hints[item.name])} | {_default(item)} | {meaning} |")
    return "\n".join([*lines, ""])


def _enum_table(kind: type[Enum]) -> str:
    lines = [f"### {kind.__name__}", "", _summary(kind), "", "| Name | Meaning |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{member.name}` | {member.value} |" for member in kind), ""])


def _summary(kind: type) -> str:
    """The first paragraph of the docstring."""
    return " ".join(str(kind.__doc__).partition("\n\n")[0].split())


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _type(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {_type(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_type, arguments))}]"
    if origin is Mapping:
        return f"object of {_type(arguments[1])}"
    name: str = hint.__name__
    return f"[{name}](#{name.lower()})"


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default_factory is not dataclasses.MISSING:
        value = item.default_factory()
        # A record whose own fields are all at their defaults is written as an empty object.
        value = {} if dataclasses.is_dataclass(value) else value
    elif item.default is not dataclasses.MISSING:
        value = item.default
    else:
        return "required"
    return f"`{value.name if isinstance(value, Enum) else json.dumps(value)}`"


if __name__ == "__main__":
    main()
