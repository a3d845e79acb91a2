from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.optimize  # noqa: F401 - adds filters of warnings when it is imported, which is not the chapter's doing
from lesson_state import guide_with_compiler, guide_without_compiler, unchanged

from compile_inspect.tour.guide import Guide
from nonsmooth.lesson import CompileComparison, SolverRun, run_with_and_without_compile

unchanged = pytest.fixture(autouse=True)(unchanged)
with_compiler = pytest.fixture(guide_with_compiler)
without_compiler = pytest.fixture(guide_without_compiler)


def test_without_a_compiler_the_functions_run_as_they_are(without_compiler: Guide) -> None:
    found = run_with_and_without_compile(guide=without_compiler)
    assert without_compiler.notes == [without_compiler.machine.missing_requirement]
    (run,) = found.runs
    assert run.proven and run.violation < 1e-6 and run.compiled_evaluations == 0 and run.build_seconds == 0
    assert run.f == pytest.approx(68.192977, abs=1e-5)
    assert 0 < run.evaluating_seconds < run.seconds
    assert f"{run.evaluations} evaluations" in found.answer()[0]


@pytest.mark.exhaustive
def test_compiled_functions_give_the_same_answer(with_compiler: Guide) -> None:
    found = run_with_and_without_compile(guide=with_compiler)
    plain, built, again = found.runs
    assert all(run.proven and run.f == pytest.approx(plain.f, abs=1e-6) for run in found.runs)
    assert plain.compiled_evaluations == 0 and built.compiled_evaluations > 10 and again.compiled_evaluations > 10
    assert built.build_seconds > 1 and again.build_seconds < 1
    assert again.seconds_per_evaluation < plain.seconds_per_evaluation


def test_the_answer_is_made_of_the_results() -> None:
    plain = SolverRun("never", "never", 3.0, 0.0, 2.0, 500, 0, 7.0, 0.0, "fine", True, 1e-9, "Compiling was switched off.")
    built = replace(plain, name="always", seconds=12.0, build_seconds=10.0, evaluating_seconds=0.5, compiled_evaluations=480)
    found = CompileComparison((plain, built), ((3.0, 2.0), (3.5, 2.0), (3.0, 2.9)))
    text = " ".join(found.answer())
    assert "never: 3.00 s, including 0.00 s for the build; 500 evaluations of 4000 µs each" in text
    assert "0 of them compiled and 0 checked" in text
    assert "2 of 2 answers are proven" in text and "pays back after 10 such runs" in text
    other = replace(built, f=7.5, proven=False, seconds=14.0)
    text = " ".join(CompileComparison((plain, other), ((3.0, 4.0), (3.0, 3.5))).answer())
    assert "differs from it by more than 0.5" in text and "1 of 2 answers" in text and "is slower here, by 0.75 s" in text
    busy = replace(plain, evaluating_seconds=1.0)  # a third of the run: the rest is the solver's own
    assert (
        "evaluating the functions takes less than half of its time"
        in CompileComparison((busy, other), ((3.0, 4.0),)).answer()[-1]
    )


def test_runs_that_do_not_agree_say_nothing_about_payback() -> None:
    plain = SolverRun("never", "never", 3.0, 0.0, 2.0, 500, 0, 7.0, 0.0, "fine", True, 1e-9, "Compiling was switched off.")
    built = replace(plain, name="always", seconds=12.0, build_seconds=10.0, compiled_evaluations=480)
    last = CompileComparison((plain, built), ((3.0, 2.0), (3.0, 3.1), (3.5, 2.0))).answer()[-1]
    assert last == "The measurements do not show whether a run with the existing build is faster in 3 pairs of runs."
    assert "pays back" not in " ".join(CompileComparison((plain, built)).answer())


def test_one_is_not_many() -> None:
    plain = SolverRun("never", "never", 3.0, 0.0, 2.0, 500, 0, 7.0, 0.0, "fine", True, 1e-9, "Compiling was switched off.")
    assert CompileComparison((plain,)).answer()[-1] == "The objective at the answer is 7; the answer is proven."
    built = replace(plain, name="always", seconds=1.5, build_seconds=0.5, compiled_evaluations=480)
    assert "pays back after 1 such run, or" in CompileComparison((plain, built), ((3.0, 1.0),)).answer()[-1]


def test_without_a_compiler_nothing_is_asked(without_compiler: Guide) -> None:
    without_compiler.quiz, without_compiler.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    (run,) = run_with_and_without_compile(guide=without_compiler).runs
    assert run.compile == "never" and run.proven and without_compiler.notes == [without_compiler.machine.missing_requirement]
