"""A side of a branch that no input takes is not proven, and that is said."""

from __future__ import annotations

import sys
from pathlib import Path

from compile_inspect.fixes.planning import try_proposals
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.fixes.unreached import executed_lines
from compile_inspect.records.fixes import ProofStatus
from compile_inspect.reporters.text.findings import proof_details

TEXT = """\
import torch


def target(x):
    y = x.sin()
    if y.abs().sum() > 1e9:
        y = y[:1]
    return y.sum() * 2


inputs = (torch.ones(8, requires_grad=True),)
"""


def test_a_line_that_no_input_reaches_is_named(tmp_path: Path) -> None:
    path = tmp_path / "onesided.py"
    path.write_text(TEXT)
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)
    (finding,) = try_proposals(runner)
    proofs = {proposal.title: proof for proposal, proof in finding.trials if proof.status is ProofStatus.PROVEN}
    assert proofs and all(proof.unreached_lines == (7,) for proof in proofs.values())
    assert all("No input reaches line 7, so nothing is proven about it" in proof_details(proof) for proof in proofs.values())


def test_lines_that_are_reached_are_not(tmp_path: Path) -> None:
    path = tmp_path / "twosided.py"
    path.write_text(TEXT.replace("> 1e9", "> 6.0").replace("y[:1]", "y * 2"))  # the example is above it, zeros are below
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=2, seconds=0.0)
    (finding,) = try_proposals(runner)
    proven = [proof for _, proof in finding.trials if proof.status is ProofStatus.PROVEN]
    assert proven and all(not proof.unreached_lines and "reaches" not in proof_details(proof) for proof in proven)


def test_what_traces_already_goes_on() -> None:
    def mine(frame: object, event: str, argument: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        assert (__file__, test_what_traces_already_goes_on.__code__.co_firstlineno) not in executed_lines([lambda: None])
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)
