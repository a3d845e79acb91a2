"""Generate the tables of docs/reference/capture-file.md from the dataclasses of a capture.

    python docs/generate_schema.py             # print the tables
    python docs/generate_schema.py --update    # write them to docs/reference/capture-file.md

Names, types and defaults come from `compile_inspect.records`. The meanings of fields are in `MEANINGS` below; a field
without a meaning, or a meaning without a field, is an error. tests/docs/test_schema_is_current.py runs this.
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
        "environment": "The environment of the compilation.",
        "process": "The recorded process.",
        "complete": "False if the program ended before the recording did.",
        "missing_evidence": "Evidence that could not be collected.",
        "notes": "Sentences for the reader.",
        "target": "The inspected target, as it was named on the command line; null for a whole program.",
        "failures": "Compilations that failed, and the exception that ended the run.",
        "compiled_share": "How many of the operations that torch traced run compiled; null if not known.",
        "compilations": "Every compilation, in the order in which they started.",
        "graphs": "Every graph at every stage.",
        "breaks": "Causes of graph breaks, in the order in which they occurred.",
        "guards": "Guards of all compiled frames.",
        "specializations": "Symbolic sizes that were specialized to a number.",
        "recompiles": "Recompilations, with reasons.",
        "limits": "Frames that reached the recompile limit.",
        "lowerings": "What Inductor generated from each graph.",
        "phases": "Phases of compile time, in the order in which they began.",
        "caches": "Lookups in torch's compile caches.",
        "cuda_graphs": "What happened when CUDA graphs were requested.",
        "bytecode": "Bytecode before and after Dynamo.",
        "timings": "Results of `compile-inspect bench`, in the order in which they were added.",
        "agreements": "Comparisons with eager, if they were added.",
        "findings": "Causes of graph breaks with the fixes that were tried, if they were added.",
        "stacks": "Every distinct stack; other records refer to them by index.",
        "library_sources": "Contents of files of installed packages (except torch) that operations come from, by file name.",
        "sources": "Contents of the user's own files that the evidence refers to, by file name.",
    },
    "Environment": {
        "python": "Version of Python.",
        "platform": "Operating system, from `platform.platform()`.",
        "torch": "Version of torch.",
        "torch_supported": "Whether the recorder was tested with this version of torch.",
        "packages": "Versions of imported packages that matter to compilation.",
        "devices": "Names of the CUDA devices, if the program initialized CUDA.",
        "cpu": "Vector instructions that torch uses on the CPU.",
        "threads": "Number of threads that torch uses for one operation.",
        "variables": "Environment variables that control the compiler; others are not recorded.",
        "configuration": "Settings of Dynamo, AOTAutograd and Inductor that differ from their defaults.",
    },
    "Process": {
        "pid": "Process id.",
        "rank": "The environment variable `RANK`, if a distributed launcher set it.",
        "session": "An id that all processes of one recorded program share.",
        "command": "The command line, starting with the interpreter.",
        "started": "When the recording began, in seconds since 1970.",
        "ended": "When the recording ended.",
        "recorder": "Version of compile-inspect that made the recording.",
    },
    "NamedTarget": {
        "specification": "`module:attribute` or `file.py:attribute`.",
        "inputs": "The value of `--inputs`.",
        "folder": "The folder in which the command was run.",
        "no_grad": "Whether it ran without gradients.",
    },
    "MissingEvidence": {
        "collector": "The kind of evidence.",
        "reason": "The problem.",
        "times": "How often it was reported; at most three reports per collector are recorded.",
    },
    "Compilation": {
        "id": "Torch's id: frame number / number of the compilation of this frame.",
        "function": "Name of the compiled function; torch generates one for the remainder of a function after a graph break.",
        "file": "File of the function.",
        "line": "First line of the function, including its decorators.",
        "outcome": "How the compilation ended.",
        "backend": "Name of the backend.",
        "attempts": "How often tracing was started; a graph break restarts it.",
        "restart_reasons": "Why tracing was restarted.",
        "call_stack": "Index of the stack of the call.",
        "started": "When it began, in seconds since 1970.",
        "seconds": "Time for the frame: tracing, the backend, and guards.",
        "backward_seconds": "Time for a backward pass that was compiled later, when it first ran.",
        "graph_nodes": "Number of nodes in Dynamo's graph, as torch reports it.",
        "graph_calls": "Number of calls in Dynamo's graph, as torch reports it.",
        "guard_count": "Number of guards, as torch reports it.",
        "dynamic_symbols": "Symbolic sizes and numbers: the name of each symbol, and its source.",
        "failure": "Type and message of the exception that ended it.",
        "metrics": "Some of torch's own metrics for the compilation, under torch's names.",
    },
    "Phase": {
        "compilation": "Id of the compilation; null for work outside any compilation, such as a thread that builds a kernel.",
        "name": "Torch's name for the phase.",
        "start": "When it began, in seconds since 1970.",
        "seconds": "Its duration.",
        "depth": "Number of enclosing phases in the same thread.",
        "own_seconds": "Its duration without inner phases.",
        "thread": "Number of the thread, counted from 0 in order of appearance.",
        "details": "The arguments that torch attached to the phase.",
    },
    "Bytecode": {
        "compilation": "Id of the compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "original": "Disassembly of the original bytecode.",
        "rewritten": "Disassembly of the bytecode that Dynamo generated instead.",
    },
    "Graph": {
        "id": "Unique in the capture.",
        "compilation": "Id of the compilation.",
        "stage": "The stage of the pipeline.",
        "direction": "Forward, backward or inference.",
        "nodes": "The nodes in topological order.",
        "text": "The graph as torch prints it.",
        "from_text": "Whether the nodes were parsed from `text`, as for a cache hit.",
    },
    "Node": {
        "name": "Unique in the graph; names in a nested graph are prefixed with its path.",
        "operation": "FX opcode: placeholder, get_attr, call_function, call_method, call_module or output.",
        "target": "The function, method, module or attribute.",
        "inputs": "Names of the nodes whose values it uses.",
        "arguments": "All arguments as short text; a tensor appears as the name of its node.",
        "value": "The tensors it returns; empty if it returns none.",
        "stack": "Index of its stack.",
        "module": "Path of the innermost `nn.Module` that contains it, as torch writes it.",
    },
    "TensorType": {
        "shape": "Sizes; a symbolic size is text.",
        "dtype": "For example `float32`.",
        "device": "For example `cuda:0`.",
        "strides": "Strides in elements; empty for tensors that have none.",
    },
    "GraphBreak": {
        "kind": "Torch's name for this kind of break.",
        "location": "The innermost line outside torch, or torch's own line if no library is between it and the user's code.",
        "own_location": "The innermost line inside compiled code that is in no installed package; null if there is none.",
        "effect": "What the break did to the frame.",
        "identifier": "Torch's `GB…` id.",
        "link": "Torch's page about this kind of break.",
        "explanation": "Torch's explanation.",
        "hints": "Torch's hints.",
        "context": "Torch's debug context.",
        "traced_instruction": "The bytecode instruction that Dynamo was tracing.",
        "stack": "Index of the complete stack.",
        "compilations": "Ids of the compilations that reached it.",
        "hits": "The number of compilations that reached it.",
        "parent": "Index in `breaks` of the break that led to this one; absent if there is none.",
        "text": "Torch's complete message.",
    },
    "Guard": {
        "compilation": "Id of the compilation.",
        "kind": "Torch's kind, for example `TENSOR_MATCH`.",
        "source": "What is checked, as torch writes it.",
        "variable": "What is checked, as the user would write it.",
        "condition": "The condition in words.",
        "location": "The line that requires the guard.",
        "stack": "Index of its stack.",
        "is_internal": "Whether it checks something that users do not control.",
    },
    "Recompile": {
        "compilation": "Id of the new compilation.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "failures": "The failed guard of each earlier version, the latest version first; at most 16.",
    },
    "Specialization": {
        "compilation": "Id of the compilation.",
        "variable": "The size, as the user would write it.",
        "value": "The number to which it was specialized.",
        "reason": "The reason, in a few words.",
        "location": "The line that specialized it.",
        "stack": "Index of its stack.",
    },
    "GuardFailure": {
        "earlier_version": "Id of the earlier compilation.",
        "variable": "What changed.",
        "reason": "The guard that failed.",
        "expected": "The value for which the earlier version was compiled.",
        "actual": "The value in the call; null if it could not be read without running code of the program.",
        "location": "The line that requires the guard.",
    },
    "LimitHit": {
        "compilation": "Id of the compilation that torch refused.",
        "function": "Name of the function.",
        "file": "File of the function.",
        "line": "First line of the function.",
        "limit": "Name of Dynamo's setting.",
        "value": "Its value.",
        "last_reason": "The guard that failed last.",
    },
    "Lowering": {
        "id": "Unique in the capture.",
        "compilation": "Id of the compilation.",
        "direction": "Forward, backward or inference.",
        "graph": "Id of the post-grad graph that was lowered.",
        "code": "The generated module.",
        "code_path": "Path of the generated module on the recorded machine.",
        "kernels": "Kernel launches in the order in which they were emitted.",
        "unplaced_nodes": "Nodes of the graph that no kernel computes.",
        "unfused_pairs": "Pairs that the scheduler did not fuse; at most 4,000 distinct pairs and reasons per graph.",
        "memory": "Inductor's estimate of the required memory.",
        "from_cache": "Whether the code came from a cache, so that the scheduler did not run.",
    },
    "Kernel": {
        "name": "Name in the generated module.",
        "kind": "Its language or provider.",
        "nodes": "Names of the post-grad nodes it computes.",
        "stacks": "Indices of the stacks of those nodes.",
        "scheduler_nodes": "The scheduler's names for its parts, for example `op3`.",
        "first_line": "First line of its source in the generated module; null for a library call.",
        "last_line": "Last line of its source.",
        "call_line": "The line of the generated module that launches it.",
    },
    "UnplacedNode": {
        "name": "Name of the post-grad node.",
        "outcome": "What happened to it.",
    },
    "UnfusedPair": {
        "first": "The scheduler's name of one node.",
        "second": "The scheduler's name of the other node.",
        "reason": "The scheduler's reason.",
        "first_kernel": "The kernel that contains the first node.",
        "second_kernel": "The kernel that contains the second node.",
        "times": "How often the scheduler gave this reason.",
    },
    "MemoryEstimate": {
        "peak_bytes": "The largest amount at any step.",
        "steps": "For each scheduler node, in the final order, the bytes in use.",
    },
    "CacheEvent": {
        "compilation": "Id of the compilation.",
        "cache": "Name of the cache.",
        "outcome": "The result of the lookup.",
        "reason": "Why it missed or was bypassed.",
        "key": "The key that was looked up.",
        "seconds_saved": "Compile time saved by a hit, if torch reports it.",
    },
    "CudaGraphEvent": {
        "compilation": "Id of the compilation.",
        "outcome": "What happened.",
        "reason": "Why it was skipped, in torch's words.",
        "direction": "Forward, backward or inference.",
        "location": "The line that torch names as the cause.",
        "times": "How often the same event occurred.",
    },
    "Timing": {
        "target": "Name of the target: as on the command line, or of the function.",
        "device": "Type of device.",
        "hardware": "Name of the GPU or of the processor.",
        "torch": "Version of torch.",
        "threads": "Number of threads that torch uses for one operation.",
        "gradients": "Whether a call is one forward and one backward pass.",
        "seconds": "How long each point was sampled.",
        "points": "One per size of a sweep; one without a sweep.",
        "interrupted_during": "The step that Ctrl-C interrupted; empty if the run finished.",
    },
    "TimingPoint": {
        "sizes": "The value of each axis of the sweep.",
        "inputs": "A short description of each input tensor.",
        "measurements": "One per variant, eager first.",
    },
    "Measurement": {
        "variant": "Name of the variant.",
        "refusal": "Why it cannot run; then there is nothing else.",
        "samples": "Seconds per call, one per round, as measured; on a GPU they include the synchronization.",
        "device_samples": "Seconds between device events around one call in each round; only on a GPU.",
        "calls_per_sample": "The number of calls that each sample is the mean of.",
        "summary": "Summary statistics of the samples.",
        "speedup": "The speedup over eager.",
        "build": "The cost of the build.",
        "payback": "When the build pays back.",
        "memory": "The memory that one call needs.",
        "first_call_seconds": "Duration of the first call after the build.",
        "warm_up_calls": "Calls made before the samples.",
        "warnings": "Reasons to be careful with the measurement.",
        "assumptions": "What the variant assumes.",
    },
    "Summary": {
        "count": "Number of samples.",
        "median": "Their median in seconds.",
        "low": "Lower end of the 95 % interval of the median, by order statistics.",
        "high": "Its upper end.",
        "mean": "Their mean.",
        "deviation": "Their standard deviation.",
        "outliers": "Samples more than 3.5 scaled median absolute deviations from the median.",
    },
    "Outlier": {
        "position": "Index of the sample, from 0.",
        "seconds": "Its value.",
        "deviations": "Its distance from the median in scaled median absolute deviations.",
    },
    "Speedup": {
        "ratio": "Median of eager's sample divided by the variant's sample of the same round.",
        "low": "Lower end of its 95 % interval.",
        "high": "Its upper end.",
    },
    "Build": {
        "seconds": "Time in the measuring process, first calls included: warm, and dependent on the order of variants.",
        "cache_use": "Whether that build used torch's on-disk caches.",
        "cold_seconds": "Time in a separate process with an empty cache folder: the median of `cold_samples`.",
        "warm_seconds": "Time in a separate process with the caches that the last cold build left.",
        "reason": "Why there is no cold or no warm build; empty if there are both.",
        "cold_samples": "Seconds of each cold build.",
        "cold_cpu_seconds": "Median CPU time of a cold build, including the compilers it runs.",
    },
    "Payback": {
        "calls": "Calls until eager has taken longer than the build and the variant together; null for never.",
        "low": "Lower end of its 95 % interval; null for never.",
        "high": "Its upper end; null for never.",
        "build_seconds": "The cold build that is paid back.",
        "gain_seconds": "The time saved per call.",
    },
    "Memory": {
        "peak_bytes": "The peak of one call beyond what was allocated before it; null if not known.",
        "method": "How it was measured, or why it is not known.",
    },
    "Agreement": {
        "function": "Name of the function.",
        "gradients": "Whether gradients were compared too.",
        "points": "Descriptions of the inputs at which variants were compared.",
        "variants": "One per variant.",
        "has_reference": "Whether at least one point has a float64 reference.",
        "notes": "Sentences for the reader.",
    },
    "VariantAgreement": {
        "name": "Name of the variant.",
        "verdict": "The result of the comparison.",
        "reason": "The reason, in a sentence.",
        "differences": "Values that differ.",
        "assumptions": "What must not change for the variant to be correct.",
        "measured_errors": "The largest error of each value.",
        "notes": "Sentences for the reader.",
        "blame": "The cause of a mismatch, if it was found.",
        "not_probed": "What the comparison did not check, with reasons where there are any.",
        "eager_reason": "Why some or all of the variant runs in eager mode; null if none of it does.",
    },
    "Difference": {
        "point": "The inputs.",
        "name": "The value.",
        "kind": "The kind of difference.",
        "message": "A description in a sentence.",
        "error": "Distance of the variant from the interval that spans eager and the float64 reference.",
        "eager_error": "Distance of eager from the reference, or its spread under rounding if that is larger.",
        "tolerance": "The largest `error` that is accepted.",
        "index": "The worst position.",
        "eager": "Eager's value there.",
        "variant": "The variant's value there.",
        "reference": "The reference there.",
    },
    "MeasuredError": {
        "name": "The value.",
        "error": "Largest error of the variant over all inputs.",
        "eager_error": "Largest error of eager.",
        "tolerance": "The tolerance there.",
    },
    "Blame": {
        "stage": "The part of torch that causes the difference.",
        "message": "A description in a sentence.",
        "node": "Name of the node in the searched graph.",
        "operation": "Its operation.",
        "location": "The line it came from.",
        "graph": "The searched graph, as text.",
        "evidence": "The runs that this is based on, with their results.",
    },
    "CompiledShare": {
        "compiled_operations": "Operations in compiled graphs: calls in Dynamo's graph of the newest version of each frame.",
        "eager_operations": "Operations that torch had traced in frames that it gave up on, and that are in no compiled graph.",
    },
    "Failure": {
        "error": "The type of the exception.",
        "message": "Its text.",
        "cause": "Type and first line of the innermost exception, if the exception was raised from another one.",
        "compilation": "Id of the compilation that it ended; null for an exception that ended the run.",
        "stack": "Index of its stack.",
    },
    "Finding": {
        "cause": "The cause of graph breaks.",
        "advice": "What is known about it.",
        "trials": "Proposals that were tried, each with its proof.",
        "cost": "The cost of the break.",
    },
    "Advice": {
        "reason": "The reason in plain words.",
        "proposals": "Proposed fixes, the best first.",
        "hints": "Other suggestions.",
    },
    "Proposal": {
        "fixer": "The kind of fix.",
        "title": "What it does, as an instruction.",
        "replacements": "Lines to change.",
        "settings": "Statements to run before anything is compiled.",
        "behavior_change": "How the program behaves differently afterward.",
        "applicability": "When it is the right choice.",
    },
    "Replacement": {
        "file": "The file to change.",
        "start": "Line (from 1) and column (from 0, in characters) at which the change begins.",
        "end": "Line and column at which it ends.",
        "old": "The current text.",
        "new": "The new text.",
    },
    "Setting": {
        "code": "The statement.",
    },
    "Proof": {
        "status": "The result of the trial.",
        "reason": "Why the proposal was withdrawn: the break, the difference, or the exception.",
        "breaks": "Causes of graph breaks before and after.",
        "graphs": "Graphs before and after.",
        "seconds": "Median seconds per call before and after.",
        "unreached_lines": "Changed lines that no input reaches.",
        "remaining_breaks": "Causes that should have been removed and are still there.",
        "new_breaks": "Causes that the change introduced.",
        "revealed_breaks": "Causes that tracing did not reach before.",
        "inputs": "Number of inputs at which results were compared.",
        "values": "Number of results and side effects compared at each.",
        "gradients": "Number of gradients compared at each.",
        "largest_error": "The largest difference from the original in eager mode; null if there is none to compute.",
        "nondeterministic_results": "Results that differ between two runs of the unchanged program; they were not compared.",
    },
    "BreakCost": {
        "before": "Operations in graphs that end at the break.",
        "after": "Operations in graphs that begin after it.",
        "kernels": "Kernel launches on both sides.",
        "frames": "Frames that run entirely in eager mode because of it.",
    },
    "Stack": {
        "locations": "Lines, the outermost first.",
    },
    "Location": {
        "file": "File name as Python reports it.",
        "line": "Line number.",
        "function": "The function that contains the line.",
        "code": "The text of the line.",
    },
}

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Any: "any"}


def main() -> None:
    """Print the tables, or write them to the page."""
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
        raise SystemExit(f"{PAGE} does not contain the line {BEGIN!r} or {END!r}")
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
    described = {name: set(meanings) for name, meanings in MEANINGS.items()}
    fields = {(name, item) for name, items in names.items() for item in items}
    described_fields = {(name, item) for name, items in described.items() for item in items}
    for name, item in sorted(fields - described_fields):
        raise SystemExit(f"describe {name}.{item} in MEANINGS of docs/generate_schema.py")
    for name, item in sorted(described_fields - fields):
        raise SystemExit(f"{name}.{item} does not exist: remove it from MEANINGS in docs/generate_schema.py")


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
        # A record with all fields at their defaults is written as an empty object.
        value = {} if dataclasses.is_dataclass(value) else value
    elif item.default is not dataclasses.MISSING:
        value = item.default
    else:
        return "required"
    return f"`{value.name if isinstance(value, Enum) else json.dumps(value)}`"


if __name__ == "__main__":
    main()
