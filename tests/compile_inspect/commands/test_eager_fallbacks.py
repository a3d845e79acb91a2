"""A variant that is built and yet runs in eager mode says so, in every answer that rests on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from invoking import invoke

from compile_inspect import Target, time_variants, tune, verify
from compile_inspect.records.decision import TuningOutcome
from compile_inspect.records.timing import MeasurementWarning
from compile_inspect.variants import Compiled, Task

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Counter(torch.nn.Module):
    """Compiled again at every call: an attribute that changes is a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


def growing() -> Callable[[torch.Tensor], torch.Tensor]:
    seen: list[int] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(seen))
        return x + len(seen)

    return function


def identity(x: torch.Tensor) -> torch.Tensor:
    return x


def only_sizes(x: torch.Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


class Disabled(torch.nn.Module):
    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) + 1


def split(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return y + 1


def one_line(text: str) -> str:
    return " ".join(text.split())


CASES: dict[str, tuple[Callable[[], Callable[..., Any]], MeasurementWarning | None]] = {
    "a counter": (Counter, MeasurementWarning.RECOMPILE_LIMIT),
    "a list that grows": (growing, MeasurementWarning.RECOMPILE_LIMIT),
    "nothing to compute": (lambda: identity, MeasurementWarning.NO_GRAPH),
    "sizes alone": (lambda: only_sizes, MeasurementWarning.NO_GRAPH),
    "a disabled forward": (Disabled, MeasurementWarning.NO_GRAPH),
    "one graph": (lambda: plain, None),
    "two graphs": (lambda: split, None),
    "a disabled function, which torch.compile compiles": (lambda: torch.compiler.disable(plain), None),
}


@pytest.mark.parametrize("name", CASES)
def test_building_tells_why_calls_run_in_eager_mode(name: str) -> None:
    make, expected = CASES[name]
    torch.compiler.reset()
    assert Compiled("eager").prepare(Task(make(), (X,))).eager_reason is expected


@pytest.mark.parametrize(
    ("make", "warning"),
    [
        pytest.param(Counter, MeasurementWarning.RECOMPILE_LIMIT, marks=pytest.mark.slow),
        (lambda: identity, MeasurementWarning.NO_GRAPH),
    ],
    ids=["limit", "no graph"],
)
def test_every_answer_says_so(make: Callable[[], Any], warning: MeasurementWarning) -> None:
    agreement = verify(make(), X, variants="eager-backend", samples=0)
    assert agreement.variants[0].eager_reason is warning
    assert warning.value in one_line(str(agreement))
    timing = time_variants(Target(make(), (X,)), variants=["eager-backend"], seconds=0.05, builds=0)
    assert warning in timing.points[0].of("eager-backend").warnings  # type: ignore[union-attr]
    assert warning.value in one_line(str(timing))
    tuned = tune(make(), X, variants="eager-backend")
    assert tuned.decision.variant == "eager"
    (tried,) = [item for item in tuned.decision.results if item.variant == "eager-backend"]
    assert tried.outcome is TuningOutcome.REFUSED


def test_the_commands_lead_to_the_reason(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text(
        "import torch\n\n\nclass Counter(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.calls = 0\n\n    def forward(self, x):\n"
        "        self.calls += 1\n        return x * self.calls\n\n\ndef same(x):\n    return x\n\n\ncounter = Counter()\n"
    )
    options = ("--inputs", "float32[3]", "--variants", "eager-backend")
    for target, command in (("counts.py:counter", "guards"), ("counts.py:same", "breaks")):
        expected = f"Next: compile-inspect {command} {target} --inputs 'float32[3]'"
        done = invoke("bench", target, *options, "--builds", "0", "--seconds", "0.05", cwd=tmp_path)
        assert done.stdout.rstrip().endswith(expected), done.stdout
        done = invoke("verify", target, *options, "--samples", "0", cwd=tmp_path)
        assert done.stdout.rstrip().endswith(expected), done.stdout
