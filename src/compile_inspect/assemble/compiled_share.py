"""How many of the operations that torch traced run compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Compilation, CompilationOutcome, CompiledShare, Graph, Stage
from compile_inspect.records.compilations import first_compilation_id

SourceLine = tuple[str, int]
_ABANDONED_OUTCOMES = (CompilationOutcome.SKIPPED, CompilationOutcome.NOTHING_TO_COMPILE)


def assemble_compiled_share(
    events: Iterable[Event], compilations: Mapping[str, Compilation], graphs: Iterable[Graph], stacks: StackTable
) -> Iterator[CompiledShare]:
    """Yield the share, or nothing if torch finished no compilation without an error."""
    finished = [
        item for item in compilations.values() if item.outcome not in (CompilationOutcome.FAILED, CompilationOutcome.UNFINISHED)
    ]
    if not finished:
        return
    newest = {first_compilation_id(item.id): item.id for item in finished if item.outcome is CompilationOutcome.COMPILED}
    newest_ids = set(newest.values())
    compiled = 0
    compiled_lines: set[SourceLine] = set()
    for graph in graphs:
        if graph.stage is Stage.DYNAMO and graph.compilation in newest_ids:
            compiled += graph.call_count
            compiled_lines.update(_lines((node.stack for node in graph.nodes if node.is_call), stacks))
    abandoned: dict[str, Counter[SourceLine]] = {}
    for event in events:
        compilation = compilations.get(event.get("compilation") or "")
        if event["kind"] == "graph break" and compilation is not None and compilation.outcome in _ABANDONED_OUTCOMES:
            numbers = (stacks.number(index) for index in event.get("operations", ()))
            abandoned[first_compilation_id(compilation.id)] = Counter(_lines(numbers, stacks))
    # A function that was traced as part of several frames is counted once.
    eager: Counter[SourceLine] = Counter()
    for lines in abandoned.values():
        eager |= lines
    yield CompiledShare(compiled, sum(times for line, times in eager.items() if line not in compiled_lines))


def _lines(numbers: Iterable[int | None], stacks: StackTable) -> Iterator[SourceLine]:
    """The innermost lines of the stacks."""
    for number in numbers:
        stack = stacks.stack(number)
        if stack is not None and stack.innermost is not None:
            yield stack.innermost.file, stack.innermost.line
