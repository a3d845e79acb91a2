"""Everything the recorder promises, on four real models (acceptance items 1 to 3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compile_inspect.records import BreakEffect, CacheOutcome, CompilationOutcome, Direction, KernelKind, NodeOutcome, Stage
from conftest import PROGRAMS, Recorded, run_plain

MODELS = ("mlp", "breaking", pytest.param("gpt2", marks=pytest.mark.slow), pytest.param("bert", marks=pytest.mark.exhaustive))
GetRecorded = Callable[[str], Recorded]


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_evidence_is_there(name: str, recorded: GetRecorded) -> None:
    inspection = recorded(name).inspection
    assert inspection.complete
    assert inspection.missing_evidence == ()
    assert inspection.environment.torch
    assert inspection.environment.python
    assert inspection.environment.threads
    assert inspection.compilations
    assert all(item.outcome is CompilationOutcome.COMPILED for item in inspection.compilations)
    assert all(item.backend == "inductor" and item.seconds for item in inspection.compilations)
    for stage in (Stage.DYNAMO, Stage.JOINT, Stage.FORWARD, Stage.BACKWARD, Stage.POST_GRAD):
        graphs = inspection.graphs_at(stage)
        assert graphs, stage
        assert all(graph.text and graph.nodes and not graph.from_text for graph in graphs)
    assert inspection.guards
    assert {lowering.direction for lowering in inspection.lowerings} >= {Direction.FORWARD, Direction.BACKWARD}
    assert all(lowering.code and lowering.memory is not None for lowering in inspection.lowerings)
    assert any(lowering.unfused_pairs for lowering in inspection.lowerings)
    assert {event.cache for event in inspection.caches} == {"FX graph", "AOTAutograd"}
    assert all(event.outcome is CacheOutcome.MISS and event.key for event in inspection.caches)
    names = {phase.name for phase in inspection.phases}
    assert {"dynamo", "backend_compile", "GraphLowering.run", "Scheduler.codegen"} <= names
    assert len(inspection.bytecode) == len(inspection.compilations)
    assert all(item.original and item.rewritten for item in inspection.bytecode)


@pytest.mark.parametrize("name", MODELS)
def test_every_captured_node_has_its_line_and_type(name: str, recorded: GetRecorded) -> None:
    inspection = recorded(name).inspection
    for graph in inspection.graphs_at(Stage.DYNAMO):
        for node in graph.nodes:
            if not node.is_call:
                continue
            line = inspection.user_line(node.stack)
            assert line is not None and line.line > 0, node
            assert not line.in_torch, node
            assert line.code, node
        assert graph.call_count == sum(graph.call_counts.values())
    shaped = [node for graph in inspection.graphs_at(Stage.FORWARD) for node in graph.nodes if node.value]
    assert shaped
    assert all(kind.dtype and kind.device == "cpu" for node in shaped for kind in node.value)


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_names_a_line_and_every_node_is_accounted_for(name: str, recorded: GetRecorded) -> None:
    inspection = recorded(name).inspection
    launches = list(inspection.kernels())
    assert any(lowering.direction is Direction.BACKWARD for lowering, _ in launches)
    for lowering, kernel in launches:
        lines = inspection.kernel_lines(kernel)
        assert lines, (lowering.id, kernel.name)
        assert not any(line.in_torch for line in lines), (lowering.id, kernel.name)
        assert kernel.nodes, (lowering.id, kernel.name)
        assert kernel.call_line is not None
        text = lowering.code.splitlines()
        assert kernel.name in text[kernel.call_line - 1]
        if kernel.kind is not KernelKind.EXTERN:
            assert kernel.first_line is not None and text[kernel.first_line - 1].startswith(kernel.name)
    for lowering in inspection.lowerings:
        graph = inspection.graph(lowering.graph)
        assert graph is not None
        names = {node.name for node in graph.nodes}
        placed = {node for kernel in lowering.kernels for node in kernel.nodes}
        unplaced = {item.name: item.outcome for item in lowering.unplaced_nodes}
        assert names == placed | unplaced.keys()
        assert not placed & unplaced.keys()
        # On these models nothing needs the softer explanations: what is in no kernel computes nothing.
        assert set(unplaced.values()) <= {
            NodeOutcome.INPUT,
            NodeOutcome.OUTPUT,
            NodeOutcome.VIEW,
            NodeOutcome.ITEM,
            NodeOutcome.CONSTANT,
        }


def logged_breaks(text: str) -> set[tuple[str, str]]:
    """(place, kind) of every graph break that TORCH_LOGS=graph_breaks printed."""
    lines = [re.sub(r"^V\d{4} .*?\] (\[[^\]]*\] )*(\[__graph_breaks\] ?)?", "", line) for line in text.splitlines()]
    found = set()
    for index, line in enumerate(lines):
        place = re.match(r"Graph break in user code at (.*:\d+)$", line.strip())
        if place is None:
            continue
        reason = lines[index + 1].strip().removeprefix("Graph Break Reason: ")
        if reason.startswith("Encountered graph break when attempting to trace"):
            reason = next(item.strip() for item in lines[index + 2 :] if item.strip())
        found.add((place[1], reason))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("mlp", marks=pytest.mark.slow), *MODELS[1:]])
def test_breaks_and_output_agree_with_a_plain_run(name: str, recorded: GetRecorded) -> None:
    capture = recorded(name)
    logged = run_plain(PROGRAMS / f"{name}.py", cache=capture.cache, TORCH_LOGS="graph_breaks")
    assert logged.returncode == 0
    assert logged.stdout == capture.process.stdout
    ours = {(str(item.location), item.kind) for item in capture.inspection.breaks}
    assert ours == logged_breaks(logged.stderr)


def test_a_model_without_breaks_has_none(recorded: GetRecorded) -> None:
    inspection = recorded("mlp").inspection
    assert inspection.breaks == () and len(inspection.graphs_at(Stage.DYNAMO)) == 1


def test_three_kinds_of_break(recorded: GetRecorded) -> None:
    breaks = recorded("breaking").inspection.breaks
    source = (PROGRAMS / "breaking.py").read_text().splitlines()
    assert [(item.identifier, source[item.location.line - 1].strip()) for item in breaks if item.location] == [
        ("GB0059", 'print("in forward")'),
        ("GB0124", "if hidden.sum().item() > 1e9:"),
        ("GB0170", "if hidden.mean() > 0:"),
    ]
    for item in breaks:
        assert item.effect is BreakEffect.SPLIT
        assert item.explanation and item.hints and item.link and item.identifier.lower() in item.link
        assert item.hits == 2 and len(item.compilations) == 2
        assert item.own_location == item.location
    assert any("torch.cond" in hint for hint in breaks[2].hints)
    stack = recorded("breaking").inspection.stack(breaks[0].stack)
    assert stack is not None and stack.locations[0].function == "<module>"


@pytest.mark.slow
def test_gpt2_comes_with_the_text_of_the_library_it_is_from(recorded: GetRecorded) -> None:
    inspection = recorded("gpt2").inspection
    texts = {Path(file).name: text for file, text in inspection.library_sources.items()}
    assert "class GPT2Attention" in texts["modeling_gpt2.py"]
    assert not any("/torch/" in file for file in inspection.library_sources)


@pytest.mark.slow
def test_gpt2_names_the_logger_call_that_explain_hides(recorded: GetRecorded) -> None:
    (cause,) = recorded("gpt2").inspection.breaks
    assert cause.identifier == "GB0291"
    assert cause.location is not None
    assert cause.location.file.endswith("transformers/modeling_utils.py")
    assert "logger.warning_once" in cause.location.code
    assert cause.hits == 3
    # Every compiled frame is transformers' own; the line that calls it is outside, and nothing there is to blame.
    assert cause.own_location is None


def test_recompile_names_variable_expected_actual_and_line(recorded: GetRecorded) -> None:
    inspection = recorded("breaking").inspection
    first = inspection.recompiles[0]
    assert first.compilation == "0/1"
    assert first.function == "forward"
    failure = first.latest_failure
    assert failure is not None
    assert (failure.earlier_version, failure.variable, failure.expected, failure.actual) == ("0/0", "x", "4", "5")
    assert failure.location is not None and "self.layer(x)" in failure.location.code
    again = inspection.compilation("0/1")
    assert again is not None and again.is_recompile
    assert list(again.dynamic_symbols.values()) == ["x.size()[0]"]


def test_guards_are_readable_and_noise_is_marked(recorded: GetRecorded) -> None:
    inspection = recorded("breaking").inspection
    telling = [guard for guard in inspection.guards if guard.compilation == "0/0" and not guard.is_internal]
    conditions = {guard.variable: guard for guard in telling if guard.kind == "TENSOR_MATCH"}
    assert set(conditions) == {"x", "self.layer.weight", "self.layer.bias"}
    assert "float32" in conditions["x"].condition and "size=[4, 16]" in conditions["x"].condition
    assert all(guard.location is not None for guard in telling)
    assert not any(re.search(r"\d{9,}", guard.condition) for guard in telling)  # no addresses
    assert sum(guard.is_internal for guard in inspection.guards) > len(inspection.guards) / 2
    scale = next(guard for guard in inspection.guards if guard.variable == "self.scale" and guard.kind == "EQUALS_MATCH")
    assert scale.condition == "self.scale == 3"


def test_methods_are_counted(recorded: GetRecorded) -> None:
    graph = recorded("breaking").inspection.graphs_at(Stage.DYNAMO)[1]
    assert graph.call_counts == {"Tensor.sum": 1}


def test_fused_backward_kernel_is_tied_to_the_forward_line(recorded: GetRecorded) -> None:
    inspection = recorded("breaking").inspection
    backward = [
        (low, kernel) for low, kernel in inspection.kernels() if low.direction is Direction.BACKWARD and kernel.is_fused
    ]
    lines = {line.code for _, kernel in backward for line in inspection.kernel_lines(kernel)}
    assert "hidden = self.layer(x).relu()" in lines


@pytest.mark.slow
def test_the_program_warns_as_it_does_without_the_recorder(recorded: GetRecorded) -> None:
    capture = recorded("breaking")
    plain = run_plain(PROGRAMS / "breaking.py", cache=capture.cache)
    assert "Graph break from `Tensor.item()`" in plain.stderr
    assert masked(plain.stderr) == masked(capture.process.stderr)


def masked(text: str) -> str:
    """Without the time stamps and process numbers of warnings; midnight may lie between two runs."""
    return re.sub(r"(?m)^([A-Z])\d{4} \d{2}:\d{2}:\d{2}\.\d+ \d+ ", r"\1 ", text)
