"""Builds in fresh processes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from compile_inspect.timing.cold import Origin, Place, answer, build_afresh
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


def place(module: Path, name: str) -> Place:
    return Place(Origin(f"{module}:{name}", f"{module}:inputs"))


def test_a_named_target_is_built_twice(module: Path) -> None:
    task = Task(lambda x: x, (torch.ones(4),))
    found = build_afresh(task, "eager", place=place(module, "sine"))
    assert found.reason == ""
    assert found.warm_seconds is not None
    assert found.warm_seconds > 0 and len(found.cold) == 1 and found.cold[0] > 0


@pytest.mark.exhaustive
def test_caches_are_empty_first_and_filled_then(module: Path) -> None:
    task = Task(lambda x: x, (torch.ones(4),))
    found = build_afresh(task, "eager", place=place(module, "empty_cache"))
    assert len(found.cold) == 1
    assert (found.warm_seconds, found.reason) == (None, "RuntimeError: found")
    # Several cold builds have a folder each.
    several = build_afresh(task, "eager", place=place(module, "empty_cache"), builds=2, warm=False)
    assert (len(several.cold), several.reason) == (2, "")


def test_a_process_that_dies_says_how(module: Path) -> None:
    found = build_afresh(Task(lambda x: x, ()), "eager", place=place(module, "ends"))
    assert found.reason == "the process of the build ended with status 3: going now"


def test_what_cannot_be_sent_says_so() -> None:
    with Path(__file__).open() as held:
        found = build_afresh(Task(lambda x: x if held.closed else -x, (torch.ones(2),)), "eager")
    assert found.reason.startswith("it cannot be sent to another process: ") and "TextIOWrapper" in found.reason
    assert found.cold == ()


def test_waiting_is_told_what_is_built() -> None:
    told: list[str] = []
    found = build_afresh(Task(torch.nn.ReLU(), (torch.ones(2),)), "eager", waiting=told.append)
    assert (found.reason, len(found.cold), found.warm_seconds is not None) == ("", 1, True)
    assert list(dict.fromkeys(told)) == ["cold", "warm"]


def test_an_interrupt_ends_the_process_and_is_passed_on() -> None:
    def interrupt(told: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_afresh(Task(torch.nn.ReLU(), (torch.ones(2),)), "eager", waiting=interrupt)


def test_sizes_and_refusals_reach_the_other_process(module: Path) -> None:
    request = {"specification": f"{module}:only_three", "inputs": f"{module}:inputs", "gradients": False, "sweep": None}
    assert answer({**request, "variant": "eager"}) == {"reason": "AssertionError: not 4"}
    assert "seconds" in answer({**request, "variant": "eager", "sweep": {"batch": [5, 3]}, "index": 1})
    assert answer({**request, "variant": "cuda-graph/eager"}) == {"reason": "CUDA graphs need tensors on a CUDA device"}
    assert answer({**request, "variant": "eager", "specification": f"{module}:none"})["reason"].endswith(
        "it defines empty_cache, ends, inputs, only_three, os, sine, sys, torch"
    )
