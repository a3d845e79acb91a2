from __future__ import annotations

from pathlib import Path

import pytest

from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records.fixes import ProofStatus, Proposal

PROGRAM = """\
import torch


def target(x):
    return sorted([x, x + 1], key=lambda t: t.sum().item(), reverse=True)[0] * 2


def inputs():
    return (torch.ones(3, requires_grad=True),)
"""


@pytest.mark.slow
def test_what_one_trial_compiled_is_not_in_the_way_of_the_next(tmp_path: Path) -> None:
    """torch took the code of one copy for that of another and missed names in its globals."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)
    cause = runner.inspection.breaks[0]
    for _ in range(3):
        proof = runner.prove(cause, Proposal("none", "Nothing"))
        assert proof.status is ProofStatus.UNCHANGED, proof
