"""Builds in fresh processes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from compile_inspect.timing.cold import Origin, answer, build_afresh
from compile_inspect.variants import Task


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "timed_module.py"
    path.write_text(
        textwrap.dedent("""
            import os, sys
            import torch

            def sine(x):
                print("noise on standard output")
                return x.sin()

            def empty_cache(x):
                # What the first process leaves, the second finds.
                place = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "mark")
                os.makedirs(os.path.dirname(place), exist_ok=True)
                if os.path.exists(place):
                    raise RuntimeError("found")
                open(place, "w").close()
                return x

            def ends(x):
                sys.stderr.write("going now\\n")
                os._exit(3)

            def only_three(x):
                assert len(x) == 3, f"not {len(x)}"
                return x

            inputs = (torch.ones(4),)
        """)
    )
    return path


def origin(module: Path, name: str) -> Origin:
    return Origin(f"{module}:{name}", f"{module}:inputs")


def test_a_named_target_is_built_twice(module: Path) -> None:
    task = Task(lambda x: x, (torch.ones(4),))
    found = build_afresh(task, "eager", origin=origin(module, "sine"))
    assert found.reason == ""
    assert found.cold_seconds is not None and found.warm_seconds is not None
    assert found.warm_seconds > 0 and found.cold_seconds > 0


@pytest.mark.slow
def test_caches_are_empty_first_and_filled_then(module: Path) -> None:
    task = Task(lambda x: x, (torch.ones(4),))
    found = build_afresh(task, "eager", origin=origin(module, "empty_cache"))
    assert found.cold_seconds is not None
    assert (found.warm_seconds, found.reason) == (None, "RuntimeError: found")


def test_a_process_that_dies_says_how(module: Path) -> None:
    found = build_afresh(Task(lambda x: x, ()), "eager", origin=origin(module, "ends"))
    assert found.reason == "a fresh process ended with status 3: going now"


def test_what_cannot_be_pickled_says_so() -> None:
    def local(x: torch.Tensor) -> torch.Tensor:
        return x

    found = build_afresh(Task(local, (torch.ones(2),)), "eager", origin=None)
    assert found.reason.startswith("not picklable: ") and "local" in found.reason


def test_a_function_of_the_running_program_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def main(x: torch.Tensor) -> torch.Tensor:
        return x

    main.__module__ = "__main__"
    found = build_afresh(Task(main, (torch.ones(2),)), "eager", origin=None)
    assert found.reason.startswith("it is defined in the running program (__main__)")
    assert found.reason.endswith("compile-inspect bench FILE.py:NAME --cold")


@pytest.mark.slow
def test_a_module_of_torch_travels_by_pickle() -> None:
    found = build_afresh(Task(torch.nn.ReLU(), (torch.ones(2),)), "eager", origin=None)
    assert (found.reason, found.cold_seconds is not None, found.warm_seconds is not None) == ("", True, True)


def test_sizes_and_refusals_reach_the_other_process(module: Path) -> None:
    request = {"specification": f"{module}:only_three", "inputs": f"{module}:inputs", "gradients": False, "sweep": None}
    assert answer({**request, "variant": "eager"}) == {"reason": "AssertionError: not 4"}
    assert "seconds" in answer({**request, "variant": "eager", "sweep": {"batch": [3]}})
    assert answer({**request, "variant": "cuda-graph/eager"}) == {"reason": "CUDA graphs need tensors on a CUDA device"}
    assert answer({**request, "variant": "eager", "specification": f"{module}:none"})["reason"].endswith(
        "it defines empty_cache, ends, inputs, only_three, os, sine, sys, torch"
    )
