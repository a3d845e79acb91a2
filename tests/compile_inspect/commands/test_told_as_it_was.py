"""Failures that a program hides, versions that were never made, inputs that grow: each is told as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from invoking import invoke

import compile_inspect
from compile_inspect.fixes.fullgraph_check import fullgraph_failure
from compile_inspect.records import CompilationOutcome, Inspection
from compile_inspect.records.agreement import Agreement
from compile_inspect.reporters.counts import count
from compile_inspect.reporters.text.summary import verdict
from compile_inspect.target import Target


@pytest.mark.parametrize("error", [RuntimeError, ValueError, NotImplementedError, AssertionError, KeyError])
def test_a_suppressed_failure_is_a_failure(error: type[Exception]) -> None:
    def backend(graph: object, inputs: object) -> object:
        raise error("backend broke")

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    torch._dynamo.reset()
    with torch._dynamo.config.patch(suppress_errors=True), compile_inspect.record() as recording:
        assert torch.equal(torch.compile(function, backend=backend)(torch.ones(2)), torch.full((2,), 2.0))
    inspection = recording.inspection
    assert [item.outcome for item in inspection.compilations] == [CompilationOutcome.FAILED]
    assert "backend broke" in inspection.failures[0].summary
    assert "1 compilation failed" in str(inspection)


def test_the_attempt_at_which_torch_gives_up_is_no_recompile() -> None:
    def function(x: torch.Tensor, name: str) -> torch.Tensor:
        return x + len(name)

    torch._dynamo.reset()
    with compile_inspect.record() as recording:
        for length in range(15):
            torch.compile(function, backend="eager")(torch.ones(2), "a" * length)
    counts = count(recording.inspection)
    limit = torch._dynamo.config.recompile_limit
    assert (counts.recompiles, counts.graphs, counts.limits, counts.skipped) == (limit - 1, limit, 1, 0)


def test_fullgraph_does_not_work_where_calls_reach_the_recompile_limit() -> None:
    calls = [0]

    def counting(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return x * calls[0]

    torch._dynamo.reset()
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        told = fullgraph_failure(Target(counting, (torch.ones(2),)), "eager")
    assert told is not None and "recompile limit" in told
    torch._dynamo.reset()
    assert fullgraph_failure(Target(torch.sin, (torch.ones(2),)), "eager") is None


def test_measurements_alone_are_called_that() -> None:
    measured = Inspection(agreements=(Agreement("f", False, ("the example",)),))
    assert verdict(count(measured))[0] == "No compilation was recorded: this capture contains measurements only."


@pytest.mark.parametrize("change", ["cfg['calls'] = 1", "cfg.pop('scale')", "cfg.setdefault('other', x)", "cfg.clear()"])
def test_inputs_that_grow_or_shrink_are_compared(tmp_path: Path, change: str) -> None:
    (tmp_path / "grows.py").write_text(
        f"import torch\n\n\ndef f(x, cfg):\n    y = x * cfg['scale']\n    {change}\n    return y\n\n\n"
        "inputs = (torch.ones(3), {'scale': 2.0})\n"
    )
    options = ("--inputs", "grows.py:inputs", "--variants", "aot_eager", "--samples", "0")
    done = invoke("verify", "grows.py:f", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "aot_eager agrees with eager" in done.stdout
