"""The peak memory of one call."""

from __future__ import annotations

import pytest
import torch

from compile_inspect.timing.memory import peak_memory


def test_the_peak_on_a_cpu_is_what_is_held_at_once() -> None:
    x = torch.randn(100_000)  # 400,000 bytes

    def three_at_once() -> torch.Tensor:
        first = x + 1
        second = first * 2
        return first + second

    found = peak_memory(three_at_once, device="cpu")
    assert found.peak_bytes is not None
    assert 1_200_000 <= found.peak_bytes < 1_210_000
    assert found.method.startswith("torch's profiler")

    in_place = peak_memory(lambda: (x + 1).mul_(2).sin_(), device="cpu")
    assert in_place.peak_bytes is not None
    assert 400_000 <= in_place.peak_bytes < 410_000


def test_nothing_is_written_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    peak_memory(lambda: torch.ones(3), device="cpu")
    assert capfd.readouterr().err == ""


def test_where_nothing_tells_it_the_reason_is_kept() -> None:
    assert peak_memory(lambda: None, device="xpu").method == "not known: the memory of a call on xpu cannot be measured"

    def fails() -> None:
        raise RuntimeError("out of order")

    found = peak_memory(fails, device="cpu")
    assert (found.peak_bytes, found.method) == (None, "not known: RuntimeError: out of order")


@pytest.mark.gpu
def test_the_peak_on_a_gpu() -> None:
    x = torch.randn(1 << 20, device="cuda")
    found = peak_memory(lambda: (x + 1) * 2, device="cuda")
    assert found.peak_bytes == 2 * (4 << 20)
