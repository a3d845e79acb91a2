"""`breaks`, `fix` and `predict_recompiles` from Python, on real programs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import compile_inspect
from compile_inspect import Target, TargetError

PROGRAM = """
import torch


def noisy(x):
    y = x.sin()
    print("half way")
    return y.cos().sum()


def choosing(x, training=False):
    if training:
        print("training")
    return x * 2


def counting(x, seconds=1):
    return x * seconds


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        hidden = self.linear(x)
        print(hidden.shape)
        return hidden.relu()


model = Noisy()
quiet = torch.nn.ReLU()
inputs = (torch.ones(4),)
"""
FIXED = PROGRAM.replace('    print("half way")', '    if not torch.compiler.is_compiling():\n        print("half way")')


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of the user's, imported as usual."""
    (tmp_path / "noisy_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("noisy_program")
    sys.modules.pop("noisy_program", None)


def file_of(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)


def test_breaks_of_a_function(program: ModuleType) -> None:
    report = compile_inspect.breaks(program.noisy, torch.ones(5, requires_grad=True), backend="eager", seconds=0)
    (finding,) = report.findings
    assert finding.best_proposal is not None and finding.best_proposal.title == "Print or log only in eager mode"
    proof = dict(finding.trials)[finding.best_proposal]
    assert (proof.breaks, proof.graphs, proof.values, proof.gradients) == ((1, 0), (2, 1), 1, 1)
    assert report.fixed_by_proposals == (finding,)
    assert report.fullgraph == "A trial confirmed that fullgraph=True works with this fix."
    assert file_of(program).read_text() == PROGRAM


@pytest.mark.slow
def test_the_report_prints_what_the_command_prints(program: ModuleType) -> None:
    text = str(compile_inspect.breaks(program.noisy, torch.ones(4), backend="eager", seconds=0))
    command = ["breaks", f"{file_of(program)}:noisy", "--inputs", f"{file_of(program)}:inputs", "--backend", "eager"]
    done = subprocess.run(
        [sys.executable, "-m", "compile_inspect", *command, "--seconds", "0"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
        cwd=file_of(program).parent,
    )
    printed = [line for line in done.stdout.rstrip().split("\n") if not line.startswith("Next: ")]
    shortened = text.replace(f"{file_of(program).parent}/", "")
    assert shortened.split("\n") == [line.rstrip() for line in printed]


def test_a_module_and_a_method_at_the_top_level_are_found(program: ModuleType) -> None:
    report = compile_inspect.breaks(program.model, torch.ones(2, 3), backend="eager", seconds=0, proof=False)
    assert len(report.findings) == 1 and report.fullgraph == "" and not report.findings[0].trials
    method = compile_inspect.breaks(program.model.forward, torch.ones(2, 3), backend="eager", seconds=0, proof=False)
    assert [item.cause.kind for item in method.findings] == [item.cause.kind for item in report.findings]


def test_a_function_without_breaks(program: ModuleType) -> None:
    report = compile_inspect.breaks(program.quiet, torch.ones(2), backend="eager", seconds=0)
    assert report.findings == () and report.fullgraph == "fullgraph=True works as it is."
    result = compile_inspect.fix(program.quiet, torch.ones(2), backend="eager", seconds=0, write=True)
    assert result.proof is None and not result.holds and result.messages == () and "There is nothing to fix." in str(result)


def test_a_specification_and_a_target(program: ModuleType) -> None:
    specification = f"{file_of(program)}:noisy"
    named = compile_inspect.breaks(specification, inputs=f"{file_of(program)}:inputs", backend="eager", seconds=0, proof=False)
    passed = compile_inspect.breaks(specification, torch.ones(4), backend="eager", seconds=0, proof=False)
    target = compile_inspect.breaks(Target(program.noisy, (torch.ones(4),)), backend="eager", seconds=0, proof=False)
    assert len(named.findings) == len(passed.findings) == len(target.findings) == 1


def test_fix_proves_and_writes_only_when_asked(program: ModuleType) -> None:
    result = compile_inspect.fix(program.noisy, torch.ones(5), backend="eager", seconds=0)
    assert result.holds and result.remaining == () and len(result.included) == 1 and result.messages == ()
    assert '+    if not torch.compiler.is_compiling():\n+        print("half way")\n' in result.diff
    assert result.proof is not None and result.proof.breaks == (1, 0)
    assert "Nothing was written." in str(result)
    assert dict(result.texts) == {str(file_of(program)): FIXED} and file_of(program).read_text() == PROGRAM
    written = compile_inspect.fix(program.noisy, torch.ones(5), backend="eager", seconds=0, write=True)
    assert file_of(program).read_text() == FIXED
    assert len(written.messages) == 1 and "mv noisy_program.py.before-fix noisy_program.py" in written.messages[0]
    assert file_of(program).with_name("noisy_program.py.before-fix").read_text() == PROGRAM


def test_lines_that_no_input_reaches_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one_sided.py"
    path.write_text(
        "import torch\n\n\ndef target(x):\n    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x - 1\n    return y\n"
    )
    specification = f"{path}:target"
    result = compile_inspect.fix(specification, torch.ones(3), backend="eager", seconds=0)
    if result.unreached:  # generated inputs may reach the other side
        assert not result.holds and "no input reaches" in str(result)
    everything = compile_inspect.fix(specification, torch.ones(3), backend="eager", seconds=0, unreached=True)
    assert everything.holds and "torch.where" in everything.diff


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda x: x, "the source of .* cannot be found.*top level of a file"), (3, "breaks needs a callable, not 3")],
)
def test_what_cannot_be_loaded_again_is_refused(function: object, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        compile_inspect.breaks(function, torch.ones(3))  # type: ignore[arg-type]


def test_options_and_inputs_are_told_apart(program: ModuleType) -> None:
    with pytest.raises(TargetError, match="seconds is both a parameter of the function and an option of breaks"):
        compile_inspect.breaks(program.counting, torch.ones(3))
    with pytest.raises(TargetError, match="a Target has its own inputs; call fix"):
        compile_inspect.fix(Target(program.noisy, (torch.ones(3),)), torch.ones(3))
    with pytest.raises(TargetError, match="needs a target that is named"):
        compile_inspect.breaks(program.noisy, inputs="a.py:inputs")
    with pytest.raises(TargetError, match="has inputs twice"):
        compile_inspect.breaks("a.py:f", torch.ones(3), inputs="a.py:inputs")


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nimport compile_inspect\n\n\ndef f(x):\n    print(x.shape)\n    return x + 1\n\n\n"
        "print(compile_inspect.breaks(f, torch.ones(2), backend='eager', seconds=0))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'put the call under if __name__ == "__main__":' in done.stderr
    script.write_text(script.read_text().replace("\nprint(compile", "\nif __name__ == '__main__':\n    print(compile"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "Graph break 1 of 1" in done.stdout


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return (x * n).sum(dim=0)


def test_predicted_recompiles_of_a_sweep() -> None:
    forecast = compile_inspect.predict_recompiles(
        scaled, torch.ones(4, 8), 3, sweep={"batch": "0..3", "n": [3, 4]}, check="eager", trials=False
    )
    assert [forecast.calls[item.call].label for item in forecast.graphs] == [
        "batch=0, n=3",
        "batch=0, n=4",
        "batch=1, n=3",
        "batch=2, n=3",
    ]
    assert [item.variable for item in forecast.causes] == ["n", "x"]
    assert forecast.comparison is not None and forecast.comparison.agrees
    assert "8 calls: 4 graphs compiled" in str(forecast) and "Pass n as a tensor" in str(forecast)


def test_predicted_recompiles_of_calls_and_targets() -> None:
    calls = [((torch.ones(size, 2), 1), {}) for size in (2, 3, 4)]
    forecast = compile_inspect.predict_recompiles(scaled, calls=calls)
    assert (len(forecast.calls), forecast.graph_count, forecast.comparison) == (3, 2, None)
    best = forecast.causes[0].best_remedy
    assert best is not None and best.proof is not None and best.proof.compilations == (2, 1)
    target = Target(scaled, *calls[0], further=tuple(calls[1:]))
    assert compile_inspect.predict_recompiles(target, trials=False).graph_count == 2


def test_calls_are_given_once() -> None:
    with pytest.raises(TargetError, match="pass either sweep or calls"):
        compile_inspect.predict_recompiles(scaled, calls=[((torch.ones(2), 1), {})], sweep={"batch": "1..2"})
    with pytest.raises(TargetError, match="leave out the others"):
        compile_inspect.predict_recompiles(scaled, torch.ones(2), 1, calls=[((torch.ones(2), 1), {})])
    with pytest.raises(TargetError, match="predict_recompiles needs a callable"):
        compile_inspect.predict_recompiles(3)  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="fails in eager mode"):
        compile_inspect.predict_recompiles(scaled, torch.ones(2, 2))


def test_names_of_variants_and_paybacks() -> None:
    assert {"eager", "inductor", "inductor/max-autotune"} <= set(compile_inspect.variant_names())
    assert compile_inspect.predict_payback(12.0, [0.002] * 50, [0.0012] * 50).calls == 15000
