"""Print the tables of docs/reference/capture-file.md: every record of a capture, from the dataclasses themselves.

    python docs/generate_schema.py             # print the tables
    python docs/generate_schema.py --update    # put them into docs/reference/capture-file.md

Names, types and defaults come from `compile_inspect.records`. What a field means is written below, in `MEANINGS`; a
field without a meaning, or a meaning without a field, is an error. tests/docs/test_schema_is_current.py runs this.
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
        "missing_evidence": "Evidence that could not be collected.",
        "notes": "Sentences for the reader.",
        "target": "What was inspected, as it was named on the command line; empty for a whole program.",
        "failures": "Compilations that failed, and the exception that ended the run.",
        "compiled_share": "How much of what torch traced runs compiled; null where that is not known.",
        "compilations": "Every compilation, in the order they started.",
        "graphs": "Every graph at every stage.",
        "breaks": "Causes of graph breaks, in the order they were met.",
        "guards": "Guards of every compiled frame.",
        "specializations": "Sizes that were symbols and were pinned to a number.",
        "recompiles": "Frames compiled again, and why.",
        "limits": "Frames that torch gave up recompiling.",
        "lowerings": "What Inductor made of each graph.",
        "phases": "Stretches of compile time, in the order they began.",
        "caches": "Look-ups in torch's compile caches.",
        "cuda_graphs": "What became of CUDA graphs.",
        "bytecode": "Bytecode before and after Dynamo.",
        "timings": "Results of `compile-inspect bench`, in the order they were added.",
        "agreements": "Comparisons with eager, where they were added.",
        "findings": "Causes of graph breaks with fixes that were tried, where they were added.",
        "stacks": "Every stack once; other records point here by index.",
        "library_sources": "Text of files of installed packages, other than torch, that operations come from; by file name.",
        "sources": "The text of the user's own files that the evidence points into, by file name.",
    },
    "Environment": {
        "python": "Version of Python.",
        "platform": "Operating system, as `platform.platform()` says it.",
        "torch": "Version of torch.",
        "torch_supported": "Whether the recorder was tested with this torch.",
        "packages": "Versions of packages that matter to a compilation and were imported.",
        "devices": "Names of the CUDA devices, if the program had started CUDA.",
        "cpu": "Vector instructions that torch uses on the CPU.",
        "threads": "Number of threads torch uses for one operation.",
        "variables": "Environment variables that steer the compiler; others are not recorded.",
        "configuration": "Settings of Dynamo, AOTAutograd and Inductor that were not at their default.",
    },
    "Process": {
        "pid": "Process id.",
        "rank": "The environment variable `RANK` of a process started by a distributed launcher.",
        "session": "The same for all processes of one recorded program.",
        "command": "The command line, the interpreter first.",
        "started": "When the recording began, in seconds since 1970.",
        "ended": "When it ended.",
        "recorder": "Version of compile-inspect that recorded.",
    },
    "NamedTarget": {
        "specification": "`module:attribute` or `file.py:attribute`.",
        "inputs": "The value of `--inputs`.",
        "folder": "The folder in which the command was typed.",
        "no_grad": "Whether it ran without gradients.",
    },
    "MissingEvidence": {
        "collector": "Which kind of evidence.",
        "reason": "What went wrong.",
        "times": "How often it was reported; after three reports of one collector no more are kept.",
    },
    "Compilation": {
        "id": "Torch's id: frame number / number of the compilation of this frame.",
        "function": "Name of the compiled function. The rest of a function after a graph break has a name of torch's.",
        "file": "File of the function.",
        "line": "First line of the function, its decorators included.",
        "outcome": "How it ended.",
        "backend": "Name of the backend.",
        "attempts": "How often tracing was begun; a graph break restarts it.",
        "restart_reasons": "Why tracing was restarted.",
        "call_stack": "Index of the stack of the call, as torch tells it.",
        "started": "When it began, in seconds since 1970.",
        "seconds": "Time for the frame: tracing, the backend, guards.",
        "backward_seconds": "Time for a backward that was compiled later, when it first ran.",
        "graph_nodes": "Nodes in Dynamo's graph, by torch's count.",
        "graph_calls": "Calls in Dynamo's graph, by torch's count.",
        "guard_count": "Guards, by torch's count.",
        "dynamic_symbols": "Symbolic sizes and numbers: name of the symbol, and what it stands for.",
        "failure": "Type and message of the exception that ended it.",
        "metrics": "Some of torch's own metrics for the compilation, under torch's names.",
    },
    "Phase": {
        "compilation": "Id of the compilation; null for work outside any, such as a thread that builds a kernel.",
        "name": "Torch's name for the phase.",
        "start": "When it began, in seconds since 1970.",
        "seconds": "How long it took.",
        "depth": "Number of phases around it in the same thread.",
        "own_seconds": "The time that no inner phase accounts for.",
        "thread": "Number of the thread, counted from 0 in order of appearance.",
        "details": "What torch attached to the phase.",
    },
    "Bytecode": {
        "compilation": "Id of the compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "original": "Disassembly of the bytecode as Python compiled it.",
        "rewritten": "Disassembly of what Dynamo put in its place.",
    },
    "Graph": {
        "id": "Unique in the capture.",
        "compilation": "Id of the compilation.",
        "stage": "Where in the pipeline it was seen.",
        "direction": "Which way it computes.",
        "nodes": "The nodes in topological order.",
        "text": "The graph as torch prints it.",
        "from_text": "Whether the nodes were read from `text`, as for a cache hit.",
    },
    "Node": {
        "name": "Unique in the graph; nodes of a nested graph have its path in front.",
        "operation": "FX opcode: placeholder, get_attr, call_function, call_method, call_module or output.",
        "target": "What is called or fetched.",
        "inputs": "Names of the nodes it takes values from.",
        "arguments": "All arguments as short text; a tensor appears by the name of its node.",
        "value": "The tensors it gives; several where it gives several, none where it gives no tensor.",
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
        "location": "Where it happened: the innermost line outside torch, or torch's own where only the user's code called it.",
        "own_location": "Innermost line inside compiled code that is in no installed package; null where there is none.",
        "effect": "What it did to the frame.",
        "identifier": "Torch's `GB…` id.",
        "link": "Torch's page about it.",
        "explanation": "Torch's explanation.",
        "hints": "Torch's hints.",
        "context": "Torch's debug context.",
        "traced_instruction": "The bytecode instruction Dynamo was tracing.",
        "stack": "Index of the whole stack.",
        "compilations": "Ids of the compilations that ran into it.",
        "hits": "How many compilations did.",
        "parent": "Place in `breaks` of the break that led to this one; absent where it stands by itself.",
        "text": "Torch's whole message.",
    },
    "Guard": {
        "compilation": "Id of the compilation.",
        "kind": "Torch's kind, for example `TENSOR_MATCH`.",
        "source": "What is checked, as torch writes it.",
        "variable": "The same as the user would write it.",
        "condition": "The condition in words.",
        "location": "The line that made the guard necessary.",
        "stack": "Index of its stack.",
        "is_internal": "Whether it is one that no user can act on.",
    },
    "Recompile": {
        "compilation": "Id of the new compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "failures": "For each earlier version the guard that failed, the latest version first; 16 at most.",
    },
    "Specialization": {
        "compilation": "The compilation in which it happened.",
        "variable": "The size, as the user would write it.",
        "value": "The number it was pinned to.",
        "reason": "Why, in a few words.",
        "location": "The line that pinned it.",
        "stack": "The number of its stack.",
    },
    "GuardFailure": {
        "earlier_version": "Id of the earlier version.",
        "variable": "What changed.",
        "reason": "The guard that failed.",
        "expected": "What the earlier version was compiled for.",
        "actual": "What the call brought; null where it could not be read without running code of the program.",
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
        "unplaced_nodes": "Nodes of the graph that no kernel computes.",
        "unfused_pairs": "Pairs the scheduler kept apart; 4,000 distinct answers at most for one graph.",
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
        "outcome": "What became of it.",
    },
    "UnfusedPair": {
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
        "outcome": "What the look-up gave.",
        "reason": "Why it missed or was bypassed.",
        "key": "The key that was looked up.",
        "seconds_saved": "Compile time saved by a hit, where torch says it.",
    },
    "CudaGraphEvent": {
        "compilation": "Id of the compilation.",
        "outcome": "What became of it.",
        "reason": "Why it was skipped, in torch's words.",
        "direction": "Which way the graph computes.",
        "location": "The line torch blames.",
        "times": "How often the same was seen.",
    },
    "Timing": {
        "target": "What was timed: the name on the command line, or that of the function.",
        "device": "Type of device.",
        "hardware": "Name of the GPU or of the processor.",
        "torch": "Version of torch.",
        "threads": "Number of threads torch uses for one operation.",
        "gradients": "Whether a call is one forward and one backward.",
        "seconds": "How long every point was sampled.",
        "points": "One for every size of a sweep; one where there was none.",
        "interrupted_during": "What was being done when Ctrl-C ended the run; empty where it ran to its end.",
    },
    "TimingPoint": {
        "sizes": "The value of every axis of the sweep.",
        "inputs": "Every input tensor in short.",
        "measurements": "One for every variant, eager first.",
    },
    "Measurement": {
        "variant": "Name of the variant.",
        "refusal": "Why it cannot run; then there is nothing else.",
        "samples": "Seconds per call, one for every round, as measured; on a GPU synchronization is part of it.",
        "device_samples": "Seconds between device events around one call in every round; on a GPU only.",
        "calls_per_sample": "How many calls one sample is the mean of.",
        "summary": "What the samples say.",
        "speedup": "How many times faster than eager.",
        "build": "What it took to get ready.",
        "payback": "When the build has paid back.",
        "memory": "What one call needs.",
        "first_call_seconds": "The first call after the build.",
        "warm_up_calls": "Calls made before the samples.",
        "warnings": "Reasons not to trust it too far.",
        "assumptions": "What the variant takes for granted.",
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
    "Speedup": {
        "ratio": "Median of eager's sample divided by the variant's, round by round.",
        "low": "Lower end of its 95 % interval.",
        "high": "Its upper end.",
    },
    "Build": {
        "seconds": "What it took in the measuring process, first calls included: warm, and dependent on the order of variants.",
        "cache_use": "What torch's caches on disk did for that.",
        "cold_seconds": "What it took in a process of its own with an empty cache folder: the median of `cold_samples`.",
        "warm_seconds": "What it took in a process of its own with the caches that the last cold build left.",
        "reason": "Why there is no cold or no warm build; empty where there are both.",
        "cold_samples": "Seconds of every cold build.",
        "cold_cpu_seconds": "CPU time of a cold build and of the compilers it runs, the median.",
    },
    "Payback": {
        "calls": "Calls until eager has taken longer than the build and the variant; null for never.",
        "low": "Lower end of its 95 % interval; null for never.",
        "high": "Its upper end; null for never.",
        "build_seconds": "The cold build that is paid back.",
        "gain_seconds": "What one call gains.",
    },
    "Memory": {
        "peak_bytes": "The most that one call held beyond what was held before it; null where that is not known.",
        "method": "How it was seen, or why it is not known.",
    },
    "Agreement": {
        "function": "What was compared.",
        "gradients": "Whether gradients were compared too.",
        "points": "The inputs compared at, in words.",
        "variants": "One for every variant.",
        "has_reference": "Whether there is a float64 reference for at least one of the points.",
        "notes": "Sentences for the reader.",
    },
    "VariantAgreement": {
        "name": "Name of the variant.",
        "verdict": "What came of it.",
        "reason": "Why, in a sentence.",
        "differences": "Values that differ.",
        "assumptions": "What has to stay as it was for the variant to be right.",
        "measured_errors": "The largest error of every value.",
        "notes": "Sentences for the reader.",
        "blame": "What made it wrong, where that was found.",
        "not_probed": "What the comparison did not look at, each with the reason where there is one.",
        "eager_reason": "Why the variant runs in eager mode, in whole or in part; null where it does not.",
    },
    "Difference": {
        "point": "At which inputs.",
        "name": "Of which value.",
        "kind": "In what way.",
        "message": "In a sentence.",
        "error": "Distance of the variant from eager, the float64 reference, and all between them.",
        "eager_error": "Distance of eager from the reference, or the spread that rounding gives it where that is larger.",
        "tolerance": "What the distance of the variant may be.",
        "index": "The worst place.",
        "eager": "Eager's value there.",
        "variant": "The variant's value there.",
        "reference": "The reference there.",
    },
    "MeasuredError": {
        "name": "Which value.",
        "error": "Largest error of the variant over all inputs.",
        "eager_error": "Largest error of eager.",
        "tolerance": "What was allowed there.",
    },
    "Blame": {
        "stage": "The part of torch that made the difference.",
        "message": "In a sentence.",
        "node": "Name of the node in the graph that was searched.",
        "operation": "Its operation.",
        "location": "The line it came from.",
        "graph": "The graph that was searched, as text.",
        "evidence": "Every run that this rests on, and what came of it.",
    },
    "CompiledShare": {
        "compiled_operations": "Operations in compiled graphs: calls in Dynamo's graph of the newest version of each frame.",
        "eager_operations": "Operations that torch had traced of frames that it gave up, and that no compiled graph holds.",
    },
    "Failure": {
        "error": "The type of the exception.",
        "message": "Its text.",
        "cause": "Type and first line of the innermost exception, where another was raised from it.",
        "compilation": "Which compilation it ended; null for one that ended the run.",
        "stack": "Number of its stack.",
    },
    "Finding": {
        "cause": "The cause of graph breaks.",
        "advice": "What is known about it.",
        "trials": "Proposals that were tried, each with its proof.",
        "cost": "What the break costs.",
    },
    "Advice": {
        "reason": "The reason in plain words.",
        "proposals": "What to try, the best first.",
        "hints": "What else helps.",
    },
    "Proposal": {
        "fixer": "The kind of fix.",
        "title": "What it does, as an instruction.",
        "replacements": "Lines to write otherwise.",
        "settings": "Statements to run before anything is compiled.",
        "behavior_change": "What the program does otherwise afterwards.",
        "applicability": "When it is the right choice.",
    },
    "Replacement": {
        "file": "The file to change.",
        "start": "Line (from 1) and column (from 0, in characters) where the change begins.",
        "end": "Where it ends.",
        "old": "What stands there.",
        "new": "What to write.",
    },
    "Setting": {
        "code": "The statement.",
    },
    "Proof": {
        "status": "How far it was proven.",
        "reason": "For what is withdrawn: which break, which difference, or which exception.",
        "breaks": "Causes of graph breaks before and after.",
        "graphs": "Graphs before and after.",
        "seconds": "Median seconds of a call before and after.",
        "unreached_lines": "Changed lines that no input reaches.",
        "remaining_breaks": "Causes that were to be removed and are still there.",
        "new_breaks": "Causes that came with the change.",
        "revealed_breaks": "Causes that tracing did not come to before.",
        "inputs": "Inputs at which results were compared.",
        "values": "Results and effects compared at each.",
        "gradients": "Gradients compared at each.",
        "largest_error": "The largest difference from the original in eager mode; null where there is none to be taken.",
        "nondeterministic_results": "Results that differ between two runs of the unchanged program, and were not compared.",
    },
    "BreakCost": {
        "before": "Operations in graphs that end at it.",
        "after": "Operations in graphs that begin behind it.",
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
    before, found, rest = page.partition(BEGIN + "\n")
    current, found_end, after = rest.partition(END)
    if not found or not found_end:
        raise SystemExit(f"{PAGE} has lost the line {BEGIN!r} or {END!r}")
    return before + found, current, found_end + after


def tables() -> str:
    """Every record reachable from an inspection, each followed by the enums that it is the first to use."""
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
    told = {name: set(meanings) for name, meanings in MEANINGS.items()}
    flat = {(name, item) for name, items in names.items() for item in items}
    flat_told = {(name, item) for name, items in told.items() for item in items}
    for name, item in sorted(flat - flat_told):
        raise SystemExit(f"say in MEANINGS of docs/generate_schema.py what {name}.{item} is")
    for name, item in sorted(flat_told - flat):
        raise SystemExit(f"there is no {name}.{item} any more: take it out of MEANINGS in docs/generate_schema.py")


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
