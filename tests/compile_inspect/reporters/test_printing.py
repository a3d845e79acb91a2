"""What a prompt or a notebook shows of everything public: one screen, and nothing of the program as markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import samples
import torch

import compile_inspect
from compile_inspect.records import (
    Agreement,
    BreakEffect,
    Inspection,
    Location,
    Summary,
    Timing,
    TimingPoint,
    VariantAgreement,
    Verdict,
)
from compile_inspect.records.breaks import GraphBreak
from compile_inspect.records.decision import Decision, Outcome, Tried
from compile_inspect.records.timing import Measurement

SCREEN = 60


def large() -> Inspection:
    layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(30)))
    return compile_inspect.inspect(layers, torch.ones(2, 8), backend="aot_eager")


def timing() -> Timing:
    measured = Measurement("eager", summary=Summary(100, 1e-5, 0.9e-5, 1.1e-5, 1e-5, 1e-6))
    return Timing("<model>", points=(TimingPoint(measurements=(measured,)),))


HOSTILE = "<script>alert(1)</script>"
AGREEING = VariantAgreement("inductor", Verdict.AGREES, "it agrees")
PRINT = Location("a.py", 3, "f", "print(x)")
SHOWN: dict[str, Any] = {
    "inspection": large,
    "sample": samples.everything,
    "timing": timing,
    "break": lambda: GraphBreak(
        "print", Location("a.py", 3, "f", "print(x)"), None, BreakEffect.SPLIT, "GB0059", hints=("no",)
    ),
    "agreement": lambda: Agreement(HOSTILE, True, ("the example",), (AGREEING,)),
    "decision": lambda: Decision(
        HOSTILE, "eager", "Nothing is faster.", "cpu", "2.13.0", False, 1.0, (Tried("inductor", Outcome.NOT_TRIED, "no time"),)
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_one_screen_at_a_prompt(name: str) -> None:
    item = SHOWN[name]()
    assert "\n" not in repr(item) and len(repr(item)) < 500
    assert len(str(item).splitlines()) <= SCREEN
    assert max(map(len, str(item).splitlines())) <= 200


@pytest.mark.parametrize("name", ["timing", "agreement", "decision"])
def test_a_notebook_shows_the_same_without_markup_of_the_program(name: str) -> None:
    page = SHOWN[name]()._repr_html_()
    assert page.startswith("<pre>") and page.endswith("</pre>")
    assert "<" not in page[5:-6]


def test_print_tells_what_show_tells(tmp_path: Path) -> None:
    text = str(samples.everything())
    assert text.startswith("1 compilation failed, ")
    assert repr(samples.partial()).endswith("; partial)")


def test_a_recording_says_where_and_whether_it_runs(tmp_path: Path) -> None:
    with compile_inspect.record() as recording:
        assert repr(recording) == "Recording(memory, running)"
    assert repr(recording) == "Recording(memory, finished)"
    assert repr(compile_inspect.record(tmp_path / "a.inspection")).endswith("a.inspection, not started)")


def test_an_agreement_is_true_only_where_something_agrees() -> None:
    def of(*verdicts: Verdict) -> Agreement:
        return Agreement("f", False, ("the example",), tuple(VariantAgreement("v", verdict, "") for verdict in verdicts))

    assert of(Verdict.AGREES) and of(Verdict.AGREES, Verdict.REFUSED)
    assert not of(Verdict.DISAGREES) and not of(Verdict.AGREES, Verdict.DISAGREES)
    assert not of() and not of(Verdict.REFUSED) and not of(Verdict.NONDETERMINISTIC)
    assert not VariantAgreement("v", Verdict.DISAGREES, "") and VariantAgreement("v", Verdict.ASSUMES, "")
