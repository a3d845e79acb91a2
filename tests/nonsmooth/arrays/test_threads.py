"""One thread of BLAS while the solver runs, and as many as before afterwards."""

from __future__ import annotations

import threading

import pytest
import torch

from nonsmooth import minimize
from nonsmooth.arrays.threads import one_thread

threadpoolctl = pytest.importorskip("threadpoolctl")


def counts() -> list[int]:
    pools = threadpoolctl.ThreadpoolController().select(internal_api="openblas").info()
    return [pool["num_threads"] for pool in pools if "torch" not in pool["filepath"]]


@pytest.fixture
def two_threads() -> object:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if 2 not in counts():
            pytest.skip("there is no OpenBLAS with threads")
        yield


@pytest.mark.usefixtures("two_threads")
def test_a_run_has_one_and_gives_the_others_back() -> None:
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append((counts(), torch.get_num_threads()))
        return x.abs().sum()

    before, torch_threads = counts(), torch.get_num_threads()
    minimize(function, torch.ones(3, dtype=torch.float64), max_iterations=2)
    assert all(set(blas) == {1} and own == torch_threads for blas, own in seen)
    assert counts() == before

    def raising(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        minimize(raising, torch.ones(3, dtype=torch.float64))
    assert counts() == before


@pytest.mark.usefixtures("two_threads")
def test_runs_in_other_threads_leave_them_alone() -> None:
    before, seen = counts(), []

    def other() -> None:
        with one_thread():
            seen.append(counts())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [before] and counts() == before
