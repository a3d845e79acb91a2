"""Trials of proposals: what holds, what is withdrawn, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compile_inspect.fixes.planning import advise_breaks, combine_fixes, try_proposals
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records.fixes import ProofStatus, Proposal, Setting

TEXT = """\
import torch

SEEN = []


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        print("half way")
        return hidden.relu().sum()


target = Model()


def inputs():
    return (torch.randn(3, 4),)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("proving") / "model.py"
    found.write_text(TEXT)
    return found


@pytest.fixture(scope="module")
def runner(path: Path) -> TrialRunner:
    return TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)


def written(path: Path, line: int, new: str) -> Proposal:
    source = SourceFile(str(path), TEXT)
    statement = source.statement_at(line)
    assert statement is not None
    return Proposal("mine", "try it", (source.replace(statement, new),))


@pytest.mark.parametrize(
    ("new", "standing", "reason"),
    [
        ("pass", ProofStatus.PROVEN, ""),
        ('print("full way")', ProofStatus.UNCHANGED, "Failed to trace builtin operator"),
        ("hidden = hidden * 1.01", ProofStatus.DISAGREES, "in eager mode, at the example, result"),
        ("hidden = hidden.detach()", ProofStatus.DISAGREES, "gradient"),
        ("raise ValueError('no')", ProofStatus.FAILED, "ValueError: no"),
        ("torch._dynamo.graph_break()", ProofStatus.WORSE, "graph_break"),
        (
            "if not torch.compiler.is_compiling(): pass\n        else: hidden = hidden + 1",
            ProofStatus.DISAGREES,
            "compiled, at",
        ),
    ],
)
def test_what_a_trial_shows(runner: TrialRunner, path: Path, new: str, standing: ProofStatus, reason: str) -> None:
    cause = runner.inspection.breaks[0]
    proof = runner.prove(cause, written(path, 13, new))
    assert proof.status is standing, proof
    assert reason in proof.reason
    assert proof.holds == (standing is ProofStatus.PROVEN)
    if proof.holds:
        assert (proof.breaks, proof.inputs > 1, proof.values, proof.gradients) == ((1, 0), True, 1, 2)
        assert proof.largest_error is not None and proof.largest_error < 1e-5
    assert path.read_text() == TEXT


def test_settings_are_put_back(runner: TrialRunner) -> None:
    cause = runner.inspection.breaks[0]
    before = set(torch._dynamo.config.reorderable_logging_functions)
    setting = Setting("torch._dynamo.config.reorderable_logging_functions.add(print)")
    proof = runner.prove(cause, Proposal("mine", "try it", (), (setting,)))
    assert proof.status is ProofStatus.PROVEN and proof.breaks == (1, 0) and proof.graphs == (2, 1)
    assert set(torch._dynamo.config.reorderable_logging_functions) == before


@pytest.mark.slow
def test_time_before_and_after(path: Path) -> None:
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=0, seconds=0.05)
    proof = runner.prove(runner.inspection.breaks[0], written(path, 13, "pass"))
    assert proof.seconds is not None and 0 < proof.seconds[1] < 1 and 0 < proof.seconds[0] < 1


def test_the_original_is_left_alone(runner: TrialRunner, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = runner.target.function
    weights = {name: value.clone() for name, value in model.state_dict().items()}  # type: ignore[attr-defined]
    runner.prove(runner.inspection.breaks[0], written(path, 13, "self.layer.weight.data.zero_()"))
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())  # type: ignore[attr-defined]
    assert capsys.readouterr().out == ""  # what the program prints in trials is kept from the user


def test_a_changed_file_is_not_overwritten_with_an_old_fix(runner: TrialRunner, path: Path) -> None:
    proposal = written(path, 13, "pass")
    path.write_text(TEXT.replace("half", "all the"))
    try:
        proof = runner.prove(runner.inspection.breaks[0], proposal)
        assert proof.status is ProofStatus.FAILED and "has changed since it was recorded" in proof.reason
    finally:
        path.write_text(TEXT)


def test_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(
        TEXT.replace("        return hidden", '        hidden = hidden + 1\n        print("nearly")\n        return hidden')
    )
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=1, seconds=0.0)
    findings = try_proposals(runner)
    assert len(findings) == 2 and all(finding.best_proposal is not None for finding in findings)
    assert all(not finding.trials for finding in advise_breaks(runner.inspection))
    treatment = combine_fixes(runner, findings)
    assert treatment is not None and treatment.proof.holds and not treatment.remaining
    assert treatment.proof.breaks == (2, 0) and treatment.proof.graphs == (3, 1)
    assert runner.fullgraph_failure() is not None and runner.fullgraph_failure(treatment.proposal) is None
    assert next(iter(runner.texts(treatment.proposal).values())).count("is_compiling") == 2


def test_random_numbers_of_the_process_go_on() -> None:
    import random

    folder = Path(__file__).parents[2] / "gallery" / "programs"
    torch.manual_seed(123)
    random.seed(5)
    expected = torch.rand(2), random.random()
    torch.manual_seed(123)
    random.seed(5)
    TrialRunner(f"{folder}/print_constant.py:target", f"{folder}/print_constant.py:inputs", backend="eager", seconds=0.0)
    assert torch.equal(torch.rand(2), expected[0]) and random.random() == expected[1]


def test_a_target_that_ends_the_program_is_said(tmp_path: Path) -> None:
    from compile_inspect.errors import TargetError

    path = tmp_path / "ending.py"
    path.write_text("def target():\n    raise SystemExit(3)\n")
    with pytest.raises(TargetError, match=r"exited the program: SystemExit\(3\)"):
        TrialRunner(f"{path}:target", backend="eager")


def test_fixes_of_lines_that_no_input_reaches_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "onesided.py"
    path.write_text(
        "import torch\n\ndef target(x):\n    n = x.norm()\n    if n > 1e-6:\n        y = x / n\n    else:\n"
        "        y = x * 0\n    return y.sum()\n\ninputs = (torch.ones(8, requires_grad=True),)\n"
    )
    runner = TrialRunner(f"{path}:target", f"{path}:inputs", backend="eager", samples=0, seconds=0.0)
    findings = try_proposals(runner)
    assert dict(findings[0].trials)[findings[0].best_proposal].unreached_lines == (8,)  # type: ignore[index]
    assert combine_fixes(runner, findings, unreached=False) is None
    assert combine_fixes(runner, findings) is not None
