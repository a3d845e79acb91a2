"""What Inductor does with a graph: kernels, fusion, memory, generated code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations, trace_compile_id
from compile_inspect.capture.collectors.graphs import emit_graph

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap

# The scheduler tries every pair that shares a buffer, several times. Beyond this many distinct answers for one
# graph only their number is kept.
_MOST_FUSION_ANSWERS = 4000


class _Numbers:
    """Numbers for lowerings, shared by the collectors of this module; nothing of torch is kept alive."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._next = 0

    def of(self, graph: Any) -> int:
        number = self._numbers.get(graph)
        if number is None:
            number = self._numbers[graph] = self._next
            self._next += 1
        return number


_numbers = _Numbers()


def _current() -> tuple[int, str] | None:
    """The number of the lowering under way in this thread and the path to a nested one."""
    graph = torch_private.current_lowering()
    if graph is None:
        return None
    root, path = torch_private.root_lowering(graph)
    return _numbers.of(root), path


class KernelCollector(Collector):
    """The post-grad graph, and every kernel with the nodes it computes, backward too.

    torch calls the observed function for each kernel it emits, whether or not its own provenance tracking is
    on; leaving that off keeps the generated code and the cache keys what they are without the recorder.
    """

    name = "kernels"

    def observations(self) -> Observations:
        """Observe the start of a lowering and the emission of each kernel."""
        return ((torch_private.LOWER_GRAPH, self._on_lower, True), (torch_private.PLACE_KERNEL, self._on_kernel, True))

    def _on_lower(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        graph = args[0]
        root, path = torch_private.root_lowering(graph)
        facts = {
            "lowering": _numbers.of(root),
            "path": path,
            "backward": bool(getattr(graph, "is_backward", False)),
            "inference": bool(getattr(graph, "is_inference", False)),
        }
        emit_graph(self.tap, "lowering", graph.module.graph, facts)

    def _on_kernel(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        call = {**dict(zip(("node_schedule", "kernel_name", "is_extern"), args, strict=False)), **kwargs}
        current = _current()
        if current is None:
            return
        schedule, extern = call["node_schedule"], bool(call.get("is_extern", False))
        origins = _extern_origins(schedule) if extern else _fused_origins(schedule)
        scheduler_nodes = _operation_names([schedule] if extern else schedule)
        nodes = sorted(origins, key=_graph_position)
        stacks = {self.tap.intern(stack) for node in nodes if (stack := node.meta.get("stack_trace"))}
        self.tap.emit(
            "kernel",
            {
                "lowering": current[0],
                "path": current[1],
                "name": call["kernel_name"],
                "extern": extern,
                "class": type(schedule).__name__ if extern else "",
                "nodes": [node.name for node in nodes],
                "stacks": sorted(stacks),
                "scheduler": scheduler_nodes,
            },
            stacks=sorted(stacks),
        )


class FusionCollector(Collector):
    """Why neighbors were not fused."""

    name = "fusion"

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._answers: dict[int, Counter[tuple[str, str, str]]] = {}
        self._beyond: Counter[int] = Counter()
        self._compilations: dict[int, str | None] = {}

    trace_names: ClassVar[frozenset[str]] = frozenset({"inductor_output_code"})

    def observations(self) -> Observations:
        """Observe each answer of the scheduler."""
        return ((torch_private.WHY_NOT_FUSED, self._on_answer, False),)

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """The code of a graph is written: its answers are all in."""
        current = _current()
        if current is not None:
            self._write(current[0])

    def flush(self) -> None:
        """Write the answers of graphs whose code was never written."""
        for number in list(self._answers):
            self._write(number)

    def _on_answer(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        current = _current()
        if current is None:
            return
        why, number = args[0], current[0]
        if number not in self._answers:
            self._answers[number] = Counter()
            self._compilations[number] = torch_private.compile_id()
        answers = self._answers[number]
        key = (why.name1, why.name2, why.reason % why.args if why.args else why.reason)
        if key in answers or len(answers) < _MOST_FUSION_ANSWERS:
            answers[key] += 1
        else:
            self._beyond[number] += 1

    def _write(self, number: int) -> None:
        answers = self._answers.pop(number, None)
        if answers:
            rows = [[*pair, times] for pair, times in answers.items()]
            data = {"lowering": number, "rows": rows, "beyond": self._beyond.pop(number, 0)}
            self.tap.emit("not fused", data, compilation=self._compilations.pop(number, None))


class MemoryCollector(Collector):
    """Inductor's estimate of the memory a graph needs; the last estimate is the one for the final order."""

    name = "memory"
    trace_names: ClassVar[frozenset[str]] = frozenset({"inductor_output_code"})

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._estimates: dict[int, tuple[int, list[str], list[int]]] = {}

    def observations(self) -> Observations:
        """Observe each estimate."""
        return ((torch_private.ESTIMATE_MEMORY, self._on_estimate, False),)

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """The code of a graph is written: its last estimate stands."""
        current = _current()
        estimate = self._estimates.pop(current[0], None) if current is not None else None
        if current is not None and estimate is not None:
            peak, names, steps = estimate
            data = {"lowering": current[0], "peak": peak, "names": names, "steps": steps}
            self.tap.emit("memory", data, compilation=trace_compile_id(metadata))

    def _on_estimate(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        current = _current()
        if current is not None:
            nodes = kwargs.get("nodes", args[0] if args else ())
            self._estimates[current[0]] = (
                int(result[0]),
                [node.get_name() for node in nodes],
                [int(step) for step in result[1]],
            )


class CodeCollector(Collector):
    """The generated code; on a cache hit torch tells it too."""

    name = "generated code"
    # AOTInductor writes C++ in two files, the calls and the kernels.
    trace_names: ClassVar[frozenset[str]] = frozenset(
        {"inductor_output_code", "inductor_aot_wrapper_code", "inductor_aot_kernel_code"}
    )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Keep the generated module."""
        current = _current()
        facts = metadata[name] if name in metadata else metadata.get("graph_dump")
        path = facts.get("file_path") or facts.get("filename") or "" if isinstance(facts, dict) else ""
        data = {"lowering": None if current is None else current[0], "path": str(path), "text": payload or ""}
        self.tap.emit("code", data, compilation=trace_compile_id(metadata))


def _extern_origins(kernel: Any) -> set[Any]:
    # `origins` of a library call also lists its neighbors' nodes; `origin_node` is exact where it is known.
    origin = getattr(kernel, "origin_node", None)
    return {origin} if origin is not None else set(kernel.origins)


def _fused_origins(schedule: Iterable[Any]) -> set[Any]:
    # The schedule also holds markers for where a reduction begins and ends, which have no node.
    nodes = (getattr(item, "node", None) for item in schedule)
    return {origin for node in nodes if node is not None for origin in node.origins}


def _operation_names(schedule: Iterable[Any]) -> list[str]:
    """The scheduler's names (`op3`), as fusion answers use them."""
    names = []
    for item in schedule:
        node = getattr(item, "node", None) or item
        for method in ("get_operation_name", "get_name"):
            function = getattr(node, method, None)
            if function is not None:
                names.append(str(function()))
                break
    return names


def _graph_position(node: Any) -> Any:
    return getattr(node, "_sort_key", None) or (0,), node.name
