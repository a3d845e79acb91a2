"""Triton kernels and CUDA graphs, on a machine that has a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import compile_inspect
from compile_inspect.records import CudaGraphOutcome, Direction, KernelKind, Stage
from conftest import fresh_function

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path):
    from torch._inductor.utils import fresh_cache

    # Other tests compile the same modules with every backend; past the limit of recompilations Dynamo compiles no more.
    torch.compiler.reset()
    with fresh_cache():
        yield


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8)
    ).cuda()


def test_triton_kernels_have_nodes_lines_and_source() -> None:
    inspection = compile_inspect.inspect(model(), torch.randn(32, 64, device="cuda"))
    assert inspection.missing_evidence == ()
    assert any("H200" in name or name for name in inspection.environment.devices)
    kinds = {kernel.kind for _, kernel in inspection.kernels()}
    assert kinds == {KernelKind.TRITON, KernelKind.EXTERN}
    assert {lowering.direction for lowering in inspection.lowerings} == {Direction.FORWARD, Direction.BACKWARD}
    for lowering, kernel in inspection.kernels():
        assert inspection.kernel_lines(kernel), kernel
        assert kernel.call_line, kernel
        if kernel.kind is KernelKind.TRITON:
            text = lowering.code.splitlines()
            source = "\n".join(text[kernel.first_line - 1 : kernel.last_line])
            assert "@triton.jit" in source and "tl.store" in source
            assert f"{kernel.name}.run(" in text[kernel.call_line - 1]
    for lowering in inspection.lowerings:
        graph = inspection.graph(lowering.graph)
        names = {node.name for node in graph.nodes}
        assert names == {name for kernel in lowering.kernels for name in kernel.nodes} | {
            item.name for item in lowering.unplaced_nodes
        }
        assert lowering.memory is not None
    values = [kind for graph in inspection.graphs_at(Stage.FORWARD) for node in graph.nodes for kind in node.value]
    assert {kind.device for kind in values} == {"cuda:0"}


def test_cuda_graphs_are_used_and_recorded() -> None:
    program = fresh_function("return (x.sin() * 2).cos() + 1")
    compiled = torch.compile(program, mode="reduce-overhead")
    with torch.no_grad(), compile_inspect.record() as recording:
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            compiled(torch.randn(1024, device="cuda"))
    outcomes = {event.outcome for event in recording.inspection.cuda_graphs}
    assert outcomes == {CudaGraphOutcome.USED, CudaGraphOutcome.RECORDED}


def test_a_mutated_input_skips_cuda_graphs_and_names_the_line() -> None:
    program = fresh_function("x.add_(1)\nreturn x * 2")
    compiled = torch.compile(program, mode="reduce-overhead")
    with torch.no_grad(), compile_inspect.record() as recording:
        for _ in range(3):
            compiled(torch.randn(1024, device="cuda"))
    skipped = [event for event in recording.inspection.cuda_graphs if event.outcome is CudaGraphOutcome.SKIPPED]
    assert skipped
    assert "mutated inputs" in skipped[0].reason


def test_a_cpu_tensor_in_the_graph_skips_cuda_graphs() -> None:
    def program(x, y):
        return x.cuda() + y

    compiled = torch.compile(program, mode="reduce-overhead")
    with torch.no_grad(), torch._inductor.config.patch(graph_partition=False), compile_inspect.record() as recording:
        compiled(torch.ones(8), torch.ones(8, device="cuda"))
    skipped = [event for event in recording.inspection.cuda_graphs if event.outcome is CudaGraphOutcome.SKIPPED]
    assert skipped and "cpu" in skipped[0].reason
    assert skipped[0].location is None or skipped[0].location.file


def test_results_are_the_same_with_the_recorder() -> None:
    x = torch.randn(32, 64, device="cuda")
    module = model()
    plain = torch.compile(module)(x)
    with compile_inspect.record():
        torch._dynamo.reset()
        recorded = torch.compile(module)(x)
    assert torch.equal(plain, recorded)
