from __future__ import annotations

from dataclasses import replace

import pytest
from lesson_state import guide_with_compiler, guide_without_compiler, unchanged

from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.torchscript import TorchScriptComparison, Way, run_torchscript_comparison

unchanged = pytest.fixture(autouse=True)(unchanged)
with_compiler = pytest.fixture(guide_with_compiler)
without_compiler = pytest.fixture(guide_without_compiler)


def check(found: TorchScriptComparison) -> None:
    eager, trace, script, compiled = found.ways
    assert [way.name for way in found.ways] == ["eager", "trace", "script", "torch.compile"]
    assert (eager.positive, eager.negative) == (2, -11)
    assert (trace.positive, trace.negative, trace.difference) == (2, -2, 9)
    assert trace.call_warnings == () and any("treated as a constant" in message for message in trace.build_warnings)
    for way in (script, compiled):
        assert (way.positive, way.negative, way.difference, way.failed) == (2, -11, 0, "")
    assert "if " in script.code and "if " not in trace.code
    assert trace.verdict == "it does not agree with eager"
    assert script.verdict == compiled.verdict == "it agrees with eager"
    assert any("`torch.jit.trace` is deprecated" in message for message in trace.build_warnings)
    assert any("`torch.jit.script` is deprecated" in message for message in script.build_warnings)


def test_the_trace_goes_the_wrong_way_and_the_others_do_not(without_compiler: Guide) -> None:
    found = run_torchscript_comparison(guide=without_compiler)
    check(found)
    assert "the backend eager instead" in without_compiler.notes[0]
    text = " ".join(found.answer())
    assert "trace returned -2 for the negative input, where eager returns -11" in text
    assert "Correct for both inputs: script (-11) and torch.compile (-11)." in text
    assert "verify reports for trace: it does not agree with eager" in text


@pytest.mark.exhaustive
def test_the_same_with_inductor(with_compiler: Guide) -> None:
    check(run_torchscript_comparison(guide=with_compiler))
    assert with_compiler.notes == []


def test_the_answer_is_made_of_the_results() -> None:
    eager = Way("eager", 0.0, 1e-5, 2.0, -11.0, 0.0)
    trace = Way("trace", 0.5, 2e-5, 2.0, -4.0, 7.0)
    text = " ".join(TorchScriptComparison((eager, trace)).answer())
    assert "trace returned -4 for the negative input, where eager returns -11" in text and "gave no warning" in text
    assert "eager 10.0 µs, trace 20.0 µs" in text and "Build times: trace 500.0 ms" in text
    text = " ".join(TorchScriptComparison((eager, replace(trace, difference=0.0, negative=-11.0))).answer())
    assert "Correct for both inputs: trace (-11)." in text
    text = " ".join(TorchScriptComparison((eager, replace(trace, failed="RuntimeError: gone"))).answer())
    assert "trace failed: RuntimeError: gone" in text


def test_a_file_of_the_readers_is_kept(without_compiler: Guide) -> None:
    mine = without_compiler.folder.path / "branch.py"
    mine.write_text("# mine\n")
    run_torchscript_comparison(guide=without_compiler)
    kept = [path for path in without_compiler.folder.path.rglob("*") if path.is_file() and path.read_text() == "# mine\n"]
    assert len(kept) == 1
