"""How much of what torch traced runs compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Compilation, CompilationOutcome, CompiledShare, Graph, Stage
from compile_inspect.records.compilations import first_of_frame

Site = tuple[str, int]
_GIVEN_UP = (CompilationOutcome.SKIPPED, CompilationOutcome.NOTHING_TO_COMPILE)


def assemble_share(
    events: Iterable[Event], compilations: Mapping[str, Compilation], graphs: Iterable[Graph], stacks: StackTable
) -> Iterator[CompiledShare]:
    """The share, if torch finished any compilation without an error; one where none of it was recorded gives none."""
    finished = [
        item for item in compilations.values() if item.outcome not in (CompilationOutcome.FAILED, CompilationOutcome.UNFINISHED)
    ]
    if not finished:
        return
    newest = {first_of_frame(item.id): item.id for item in finished if item.outcome is CompilationOutcome.COMPILED}
    running = set(newest.values())
    compiled = 0
    held: set[Site] = set()
    for graph in graphs:
        if graph.stage is Stage.DYNAMO and graph.compilation in running:
            compiled += graph.call_count
            held.update(_sites((node.stack for node in graph.nodes if node.is_call), stacks))
    left: dict[str, Counter[Site]] = {}
    for event in events:
        compilation = compilations.get(event.get("compilation") or "")
        if event["kind"] == "graph break" and compilation is not None and compilation.outcome in _GIVEN_UP:
            numbers = (stacks.number(index) for index in event.get("operations", ()))
            left[first_of_frame(compilation.id)] = Counter(_sites(numbers, stacks))
    # A function may have been traced as part of several frames: it is counted once.
    eager: Counter[Site] = Counter()
    for sites in left.values():
        eager |= sites
    yield CompiledShare(compiled, sum(times for site, times in eager.items() if site not in held))


def _sites(numbers: Iterable[int | None], stacks: StackTable) -> Iterator[Site]:
    """The lines that compute something, whoever wrote them."""
    for number in numbers:
        stack = stacks.stack(number)
        if stack is not None and stack.innermost is not None:
            yield stack.innermost.file, stack.innermost.line
