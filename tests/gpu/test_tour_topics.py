"""The chapters of the tour on a CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.autograd import run_autograd_graphs
from compile_inspect.tour.topics.backend import run_custom_backend
from compile_inspect.tour.topics.caches import run_cache_comparison
from compile_inspect.tour.topics.cuda_graphs import run_cuda_graphs
from compile_inspect.tour.topics.dynamic import run_dynamic_shapes
from compile_inspect.tour.topics.mode_comparison import Effect
from compile_inspect.tour.topics.modes import run_mode_comparison
from compile_inspect.tour.topics.stances import run_stances
from compile_inspect.tour.topics.torchscript import run_torchscript_comparison

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guide:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "caches"))
    found = Guide.silent()
    assert found.machine.device == "cuda" and found.machine.inductor, found.machine.missing_requirement
    return found


def test_modes_with_cuda_graphs_use_them(guide: Guide) -> None:
    found = run_mode_comparison(guide=guide)
    runs = {run.mode: run for run in found.completed}
    assert found.device == "GPU"
    assert runs["reduce-overhead"].effect is Effect.CUDA_GRAPHS
    assert runs["reduce-overhead"].cuda_graphs is CudaGraphOutcome.RECORDED and not runs["reduce-overhead"].skip_reason
    assert runs["reduce-overhead"].same_kernels  # its kernels are only described otherwise
    assert runs["default"].cuda_graphs is None and runs["default"].generated > 0
    assert all(run.difference < 1e-2 for run in found.completed)  # tuned products may use TF32


def mutating(x: torch.Tensor) -> torch.Tensor:
    x += 1
    return x * 2


def test_a_skipped_graph_is_no_graph(guide: Guide) -> None:
    found = run_mode_comparison(Target(mutating, (torch.ones(64, device="cuda"),)), guide=guide)
    overhead = next(run for run in found.completed if run.mode == "reduce-overhead")
    assert overhead.effect is not Effect.CUDA_GRAPHS and "mutated" in overhead.skip_reason
    assert any("torch skipped them" in sentence for sentence in found.answer())


def test_a_model_on_the_cpu_stays_there(guide: Guide) -> None:
    own = Target(torch.nn.Linear(4, 4), (torch.ones(2, 4),))
    found = run_cuda_graphs(own, guide=guide)
    assert found.manual is None and "are on the CPU" in guide.notes[0]


def test_what_cannot_be_recorded_is_told(guide: Guide) -> None:
    found = run_cuda_graphs(Target(lambda x: x * x.sum().item(), (torch.ones(3, device="cuda"),)), guide=guide)
    assert found.manual is None and "cannot be recorded by hand" in guide.notes[0]


def test_a_recording_reads_memory_and_not_names(guide: Guide) -> None:
    hand = run_cuda_graphs(guide=guide).manual
    assert hand is not None
    assert hand.rebound == hand.old != hand.expected
    assert hand.copied == pytest.approx(hand.expected, rel=1e-5)
    assert hand.old_address != hand.new_address
    assert hand.replay.median < hand.eager.median


def test_padding_saves_recordings(guide: Guide) -> None:
    longest, static, fixed = run_cuda_graphs(guide=guide).padding
    assert [run.compilations for run in (longest, static, fixed)] == [2, 4, 1]
    assert fixed.recordings == 1
    assert longest.recordings is not None and longest.recordings > 1
    assert static.recordings is not None and static.recordings > 1
    assert max(run.difference for run in (longest, static, fixed)) < 1e-5


def test_a_branch_is_lost_by_trace_only(guide: Guide) -> None:
    found = run_torchscript_comparison(guide=guide)
    assert {way.name: way.negative for way in found.ways} == {"eager": -11, "trace": -2, "script": -11, "torch.compile": -11}


def test_the_backward_has_triton_kernels(guide: Guide) -> None:
    found = run_autograd_graphs(guide=guide)
    assert any(direction == "backward" and name.startswith("triton_") for direction, name, _ in found.kernels)
    assert found.saved and found.gradient_difference < 1e-2


def test_the_second_process_finds_what_the_first_has_left(guide: Guide) -> None:
    cold, warm = run_cache_comparison(guide=guide).runs
    assert (cold.hits, cold.misses, warm.hits, warm.misses) == (0, 2, 2, 0)


def test_guards_stances_and_backends_are_the_same_as_on_a_cpu(guide: Guide) -> None:
    assert run_dynamic_shapes(guide=guide).run("dynamic=None").compiled == (4, 5, 1)
    assert "expected 4, actual 5" in run_stances(guide=guide).run("fail_on_recompile").error
    assert [len(item.graphs) for item in run_custom_backend(guide=guide).models] == [1, 2]


def test_the_solver_records_its_functions(guide: Guide) -> None:
    from nonsmooth.lesson import run_with_and_without_compile

    found = run_with_and_without_compile(guide=guide)
    assert all(run.proven and run.f == pytest.approx(found.runs[0].f, abs=1e-6) for run in found.runs)
    assert found.runs[1].compiled_evaluations > 0, found.runs[1].compilation
