"""Programs as people write them, held against what torch logs and counts of the same program when nothing is recorded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from real_programs import PROGRAMS, Twice, hold_against_torch, run_twice

pytestmark = pytest.mark.exhaustive

WHOLE = r"No graph breaks and no recompiles\."
EXPECTED = {
    "nanogpt": WHOLE,
    "gpt_fast": r"No graph breaks",
    "flex": WHOLE,
    "higher_order": r"No graph breaks",
    "custom_operators": WHOLE,
    "compiled_autograd": r"\d+ graph break|No graph breaks",
    "exported": r"torch\.compile compiled nothing; \d+ kernels generated outside of it\.",
    "optimizer_step": r"1 graph break",
    "train_step": r"3 graph breaks",
    "threads": r"No graph breaks, but 2 recompiles\.",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_in_one_process(tmp_path: Path, name: str) -> None:
    twice = run_twice(tmp_path, name)
    assert re.match(EXPECTED[name], twice.headline), twice.headline
    hold_against_torch(twice)
    CHECKS.get(name, lambda _: None)(twice)


def _exported(twice: Twice) -> None:
    (lowering,) = twice.inspection.lowerings
    assert lowering.code_path.endswith(".cpp")
    fused = [kernel.name for kernel in lowering.kernels if kernel.is_fused]
    assert fused
    assert all(name in lowering.code for name in fused)


def _train_step(twice: Twice) -> None:
    causes = twice.inspection.breaks
    assert len(causes) == len(twice.counters[0]["graph_break"])
    lines = [cause.own_location.code for cause in causes if cause.own_location is not None]
    assert lines == ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    assert "torch.compile(optimizer.step)" in twice.summary


def _optimizer_step(twice: Twice) -> None:
    assert "there is nothing to do about it" in twice.summary
    assert twice.inspection.share is not None
    assert twice.inspection.share.fraction == 1.0


def _threads(twice: Twice) -> None:
    failures = [failure for recompile in twice.inspection.recompiles for failure in recompile.failures]
    assert failures
    for failure in failures:
        assert "recompilation" not in (failure.expected or "")
        assert failure.variable or failure.reason == "torch found no guard that fails; 3 threads compiled this function"
    assert twice.inspection.environment.configuration.get("torch._dynamo.config.automatic_dynamic_shapes") is None


CHECKS = {"exported": _exported, "train_step": _train_step, "optimizer_step": _optimizer_step, "threads": _threads}


def test_data_parallel_compiled_from_outside(tmp_path: Path) -> None:
    twice = run_twice(tmp_path, "data_parallel", "29610", ranks=2)
    hold_against_torch(twice)
    assert twice.headline.startswith("Nothing runs compiled")
    assert "DistributedDataParallel(torch.compile(model))" in twice.summary
    for inspection in twice.inspections:
        assert inspection.nothing_compiled
        for cause in inspection.breaks:
            assert cause.own_location is None, "the line that calls the model is not inside compiled code"


def test_a_sharded_model_compiled_from_outside(tmp_path: Path) -> None:
    twice = run_twice(tmp_path, "sharded", "29620", ranks=2)
    hold_against_torch(twice)
    assert re.match(r"\d+ (graph break|frame)", twice.headline)
    assert "fully_shard(layer)" in twice.summary
    assert "nothing of what is inside" not in twice.summary


@pytest.mark.parametrize(("name", "port"), [("data_parallel", "29630"), ("sharded", "29640")])
def test_the_remedy_for_a_wrapper_compiles_the_model(tmp_path: Path, name: str, port: str) -> None:
    twice = run_twice(tmp_path, name, port, "inside", ranks=2)
    hold_against_torch(twice)
    for inspection in twice.inspections:
        assert inspection.graph_count > 0
        assert inspection.share is not None
        assert inspection.share.fraction == 1.0
    assert "What to do" not in twice.summary


@pytest.mark.parametrize("package", ["lightning", "accelerate"])
def test_trainers_of_others(tmp_path: Path, package: str) -> None:
    pytest.importorskip(package)
    twice = run_twice(tmp_path, f"with_{package}")
    hold_against_torch(twice)
    assert twice.inspection.graph_count > 0


def test_the_programs_run_without_the_recorder_being_installed() -> None:
    """They stand for programs of others: none of them knows of this package."""
    for file in PROGRAMS.glob("*.py"):
        assert "compile_inspect" not in file.read_text()
    check = [sys.executable, "-c", "import sys; sys.exit('compile_inspect' in sys.modules)"]
    assert subprocess.run(check, env={**os.environ}, check=False).returncode == 0
