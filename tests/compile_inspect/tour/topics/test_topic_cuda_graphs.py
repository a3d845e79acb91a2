from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lesson_state import quiet_guide, unchanged

from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.intervals import CallTime
from compile_inspect.tour.topics import cuda_graphs
from compile_inspect.tour.topics.cuda_graphs import NO_GPU, CudaGraphs, ManualRecording, index_of_float_input, run_cuda_graphs
from compile_inspect.tour.topics.padding import PaddingRun, batch_of, pooled

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)


def test_without_a_gpu_padding_is_shown_by_compilations(guide: Guide) -> None:
    found = run_cuda_graphs(guide=guide)
    assert guide.notes == [NO_GPU] and found.manual is None
    assert [run.compilations for run in found.padding] == [2, 4, 1]
    assert [run.lengths for run in found.padding] == [(5, 6, 7, 8), (5, 6, 7, 8), (8, 8, 8, 8)]
    assert all(run.recordings is None and run.difference < 1e-6 for run in found.padding)
    text = " ".join(found.answer())
    assert "Padded to 8: batches of lengths 8, 8, 8, 8 needed 1 compilation." in text
    changed = replace(found, padding=tuple(replace(run, compilations=13, difference=0.5) for run in found.padding))
    assert "needed 13 compilations" in " ".join(changed.answer()) and "0.5" in " ".join(changed.answer())


@pytest.mark.parametrize("length", [None, 8])
def test_padding_does_not_change_the_result(length: int | None) -> None:
    sequences = [torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), torch.ones(5, 4)]
    tokens, mask = batch_of(sequences, length)
    assert tokens.shape == (2, length or 5, 4) and mask.sum(1).tolist() == [3, 5]
    alone = torch.stack([sequence.tanh().mean(0) for sequence in sequences])
    assert torch.allclose(pooled(tokens, mask), alone, atol=1e-6)
    assert not torch.allclose(tokens.tanh().mean(1), alone, atol=1e-2)  # without the mask it does


def test_the_answer_tells_the_two_results(guide: Guide) -> None:
    hand = ManualRecording(
        "Model", 1.5, 2.5, 1.5, 2.5, 0x1000, 0x2000, CallTime(4e-5, 3.9e-5, 4.1e-5), CallTime(1e-5, 0.9e-5, 1.1e-5)
    )
    padding = run_cuda_graphs(guide=guide).padding
    text = " ".join(CudaGraphs(padding, hand).answer())
    assert "it returned 1.5, the old result (1.5); eager returns 2.5" in text
    assert "After `x.copy_(new)` the replay returned 2.5, like eager." in text
    assert "0x1000" in text and "0x2000" in text and "speedup 4.00×" in text
    text = " ".join(CudaGraphs(padding, replace(hand, rebound=2.5)).answer())
    assert "the old result" not in text
    text = " ".join(CudaGraphs(padding, replace(hand, copied=1.5)).answer())
    assert "the replay returned 1.5, where eager returns 2.5." in text and "like eager" not in text
    text = " ".join(CudaGraphs(padding, replace(hand, old=2.5, rebound=2.5)).answer())
    assert "reads memory" not in text  # the two results cannot be told apart


@pytest.fixture
def with_gpu(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> Guide:
    """A guide that believes in a GPU; padding, which would use it, is left out."""
    guide.machine = replace(guide.machine, gpu="a GPU of another model")
    guide.quiz, guide.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    monkeypatch.setattr(cuda_graphs, "run_padded", lambda *way, guide: PaddingRun(way[0], (8,), 1))
    return guide


def test_a_model_on_the_cpu_is_not_recorded(with_gpu: Guide) -> None:
    found = run_cuda_graphs(Target(torch.sin, (torch.ones(3),)), guide=with_gpu)
    assert found.manual is None and "are on the CPU" in with_gpu.notes[0] and len(found.padding) == 3


def test_a_model_of_integers_is_not_recorded(with_gpu: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "device_of", lambda target, guide: "cuda")
    embedding = Target(torch.nn.functional.one_hot, (torch.tensor([1, 2]),))
    assert index_of_float_input(embedding) is None and index_of_float_input(Target(max, (1, torch.ones(2)))) == 1
    found = run_cuda_graphs(embedding, guide=with_gpu)
    assert found.manual is None and "floating-point" in with_gpu.notes[0]


def test_a_model_that_cannot_be_recorded_is_told(with_gpu: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(cuda_graphs, "device_of", lambda target, guide: "cuda")
    monkeypatch.setattr(cuda_graphs, "_record", refused)
    with_gpu.quiz = False
    found = run_cuda_graphs(Target(torch.sin, (torch.ones(3),)), guide=with_gpu)
    assert found.manual is None and "not permitted" in with_gpu.notes[0] and found.answer()
