"""The guide shows, asks and remembers; lessons that fail are told and do not end the tour."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from compile_inspect.errors import InspectError, TargetError
from compile_inspect.records.lessons import Lesson, Listing, Remark, Table
from compile_inspect.tour import runner
from compile_inspect.tour.catalog import PHASES, LessonPlan, lesson_plans, select_lessons
from compile_inspect.tour.command_line import find_user_target, fresh_caches
from compile_inspect.tour.folder import MODELS, TourFolder
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.machine import Machine

MACHINE = Machine("2.13.0", "x86_64", 2, 2, compiler="g++")


def make_guide(tmp_path: object, **options: object) -> Guide:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    return Guide(console, MACHINE, TourFolder(tmp_path), **options)  # type: ignore[arg-type]


def printed(guide: Guide) -> str:
    return guide.console.file.getvalue()  # type: ignore[attr-defined]


def test_what_is_shown_is_kept_in_order(tmp_path: object) -> None:
    guide = make_guide(tmp_path)
    guide.remark("First this.")
    guide.table("Calls", ["Backend", ">Seconds"], [["inductor", "9.1"], ["[bold]eager[/bold]", "0.1"]])
    guide.listing("Code", "\n".join(f"line {number}" for number in range(60)), language="python", max_lines=5)
    lesson = guide.conclude(Lesson("key", "Title", "Why?", answer=("Because of 9.1.",)))
    assert [type(item) for item in lesson.evidence] == [Remark, Table, Listing]
    table, listing = lesson.evidence[1], lesson.evidence[2]
    assert isinstance(table, Table) and table.rows == (("inductor", "9.1"), ("[bold]eager[/bold]", "0.1"))
    assert isinstance(listing, Listing) and listing.text.count("\n") == 59
    text = printed(guide)
    assert "[bold]eager[/bold]" in text and "line 4" in text and "line 5" not in text and "55 more lines" in text
    assert text.index("First this.") < text.index("Backend") < text.index("Because of 9.1.")


def test_theory_is_told_only_when_asked_for(tmp_path: object) -> None:
    for explain in (False, True):
        guide = make_guide(tmp_path, explain=explain)
        guide.begin("Title", "Why?", ["Dynamo follows the interpreter."])
        assert ("Dynamo follows the interpreter." in printed(guide)) is explain


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("b", "Correct: b) two."),
        ("A", "You guessed a) one. The correct answer in this run is b) two."),
        ("", "The correct answer in this run is b) two."),
        ("z", "The correct answer in this run is b) two."),
        ("Two", "Correct: b) two."),
        ("b)", "Correct: b) two."),
    ],
)
def test_a_quiz_asks_first_and_lets_the_run_answer(tmp_path: object, said: str, told: str) -> None:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return said

    guide = make_guide(tmp_path, quiz=True, read_answer=ask)
    guide.ask("How many?", ["one", "two"])
    assert asked == ["  Your guess (a to b, or Enter to skip): "] and "a) one" in printed(guide)
    guide.reveal(1)
    assert told in printed(guide)


def test_a_quiz_without_anybody_to_answer_goes_on(tmp_path: object) -> None:
    def ask(_: str) -> str:
        raise EOFError

    guide = make_guide(tmp_path, quiz=True, read_answer=ask)
    guide.ask("How many?", ["one", "two"])
    guide.reveal(0)
    assert "The correct answer in this run is a) one." in printed(guide)


def test_without_a_quiz_nothing_is_asked(tmp_path: object) -> None:
    guide = make_guide(tmp_path, read_answer=lambda _: pytest.fail("asked"))
    guide.ask("How many?", ["one", "two"])
    guide.reveal(0)
    assert printed(guide) == ""


@dataclass(frozen=True)
class Measured:
    number: int

    def answer(self) -> tuple[str, ...]:
        return (f"It is {self.number}.",)


def works(target: object, *, guide: Guide) -> Measured:
    guide.note("no GPU")
    return Measured(7)


def fails(target: object, *, guide: Guide) -> Measured:
    raise ZeroDivisionError("by zero\nsecond line")


def refuses(target: object, *, guide: Guide) -> Measured:
    raise TargetError("no such model")


def plan(name: str) -> LessonPlan:
    return replace(PHASES[0], entry_point=f"{__name__}:{name}")


def test_a_lesson_ends_with_the_answer_of_its_run(tmp_path: object) -> None:
    guide = make_guide(tmp_path)
    lesson = runner.run_lesson(plan("works"), guide)
    assert lesson.answer == ("It is 7.",) and lesson.notes == ("no GPU",) and lesson.seconds > 0
    assert "Not available here: no GPU" in printed(guide) and "It is 7." in printed(guide)


def test_a_lesson_that_fails_does_not_end_the_tour(tmp_path: object) -> None:
    guide = make_guide(tmp_path)
    first, second = runner.run_lessons([plan("fails"), plan("works")], guide)
    assert first.failed and first.answer == ("No answer: this lesson failed: ZeroDivisionError: by zero.",)
    assert not second.failed and second.answer == ("It is 7.",)
    assert "[1 of 2]" in printed(guide) and "[2 of 2, " in printed(guide) and "so far]" in printed(guide)


def test_a_message_for_the_user_is_told_as_it_is(tmp_path: object) -> None:
    lesson = runner.run_lesson(plan("refuses"), make_guide(tmp_path))
    assert lesson.failed and lesson.answer == ("No answer: this lesson failed: no such model.",)


def test_every_lesson_can_be_run_and_has_its_theory() -> None:
    keys = [item.key for item in lesson_plans()]
    assert keys[:5] == ["basics", "dynamo_capture", "graph_breaks", "inductor_codegen", "benchmark"]
    assert len(set(keys)) == len(keys)
    for item in lesson_plans():
        assert callable(item.load_function()) and item.question.endswith("?")
        assert item.theory and all(len(paragraph) > 80 for paragraph in item.theory)


def test_lessons_are_chosen_by_name_in_the_order_of_the_tour() -> None:
    assert [item.key for item in select_lessons(["benchmark", "basics"])] == ["basics", "benchmark"]
    assert select_lessons([]) == lesson_plans()
    with pytest.raises(InspectError, match=r"there is no lesson 'basic': choose from basics, dynamo_capture"):
        select_lessons(["basic"])


def test_models_are_files_of_the_reader(tmp_path: object) -> None:
    folder = TourFolder(tmp_path)  # type: ignore[arg-type]
    for name in MODELS:
        target = folder.target(name)
        target.function(*target.args, **target.kwargs)
    path = folder.path / "mlp.py"
    path.write_text(path.read_text() + "\nchanged = mlp\n")
    assert folder.specification("mlp") == f"{path}:mlp"
    assert "changed" in path.read_text()  # what the reader wrote stays


def test_a_folder_of_the_user_is_not_written_into(tmp_path: object) -> None:
    (tmp_path / "report.html").write_text("mine")  # type: ignore[operator]
    with pytest.raises(InspectError, match=r"contains report.html and is not the folder of a tour: name a new folder with -o"):
        TourFolder(tmp_path)  # type: ignore[arg-type]
    assert (tmp_path / "report.html").read_text() == "mine"  # type: ignore[operator]


def test_what_the_reader_changed_is_kept_beside_what_is_written(tmp_path: object) -> None:
    folder = TourFolder(tmp_path)  # type: ignore[arg-type]
    folder.write("branch.py", "ours")
    (folder.path / "branch.py").write_text("mine")
    assert TourFolder(folder.path).write("branch.py", "ours").read_text() == "ours"
    assert (folder.path / "branch.py.yours").read_text() == "mine"


def test_loading_a_model_leaves_generators_and_the_path_alone(tmp_path: object) -> None:
    import torch

    torch.manual_seed(77)
    before, path = torch.random.get_rng_state(), list(sys.path)
    TourFolder(tmp_path).target("block")  # type: ignore[arg-type]
    assert torch.equal(torch.random.get_rng_state(), before) and sys.path == path


def test_a_folder_that_cannot_be_is_refused(tmp_path: object) -> None:
    path = tmp_path / "file"  # type: ignore[operator]
    path.write_text("")
    with pytest.raises(InspectError, match="name another one with -o"):
        TourFolder(path / "below")


def test_a_target_that_raises_is_refused_before_any_lesson(tmp_path: object) -> None:
    path = tmp_path / "raising_model.py"  # type: ignore[operator]
    path.write_text("def model():\n    raise ValueError('too hot')\n")
    with pytest.raises(TargetError, match=r"raised ValueError: too hot"):
        find_user_target(f"{path}:model", None)
    with pytest.raises(TargetError, match="name it with --target"):
        find_user_target(None, "x:y")
    path.write_text("import torch\nmodel = torch.compile(torch.nn.Identity(), backend='eager')\nx = (torch.ones(1),)\n")
    del sys.modules["raising_model"]
    with pytest.raises(TargetError, match="is already compiled"):
        find_user_target(f"{path}:model", f"{path}:x")


def test_caches_of_the_tour_are_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/mine")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    with fresh_caches() as usual:
        own = os.environ["TORCHINDUCTOR_CACHE_DIR"]
        assert usual == "/mine" and own != "/mine" and os.environ["TRITON_CACHE_DIR"].startswith(own)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/mine" and "TRITON_CACHE_DIR" not in os.environ
    assert not Path(own).exists()


def test_an_interrupted_tour_keeps_what_was_taught(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from compile_inspect.commands import tour

    def interrupted(plans: object, guide: Guide, target: object) -> object:
        yield runner.run_lesson(plan("works"), guide)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_lessons", interrupted)
    folder = tmp_path / "tour"  # type: ignore[operator]
    with pytest.raises(SystemExit) as ended:
        tour(lessons=["basics"], folder=folder)
    assert ended.value.code == 130 and (folder / "report.html").is_file()


def test_a_tour_with_a_failed_lesson_ends_with_a_status(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from compile_inspect.commands import tour

    monkeypatch.setattr(runner, "run_lessons", lambda plans, guide, target: [runner.run_lesson(plan("fails"), guide)])
    with pytest.raises(SystemExit) as ended:
        tour(lessons=["basics"], folder=tmp_path / "tour")  # type: ignore[operator]
    assert ended.value.code == 1


def test_the_theory_is_told_after_the_question_of_a_quiz(tmp_path: object) -> None:
    for quiz in (False, True):
        guide = make_guide(tmp_path, explain=True, quiz=quiz, read_answer=lambda question: "a")
        guide.begin("Title", "Why?", ["It is the compiler."])
        guide.ask("What takes the time?", ("the compiler", "the model"))
        guide.reveal(0)
        text = printed(guide)
        assert text.count("It is the compiler.") == 1
        if quiz:
            assert text.index("What takes the time?") < text.index("It is the compiler.")


def test_a_lesson_that_asks_nothing_still_explains(tmp_path: object) -> None:
    guide = make_guide(tmp_path, explain=True, quiz=True)
    guide.begin("Title", "Why?", ["It is the compiler."])
    guide.conclude(Lesson("key", "Title", "Why?", answer=("Because.",)))
    assert printed(guide).index("It is the compiler.") < printed(guide).index("Because.")


def test_waiting_for_an_answer_is_no_part_of_a_lesson(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("compile_inspect.tour.guide.perf_counter", lambda: clock[0])
    monkeypatch.setattr("compile_inspect.tour.runner.perf_counter", lambda: clock[0])

    def think(question: str) -> str:
        clock[0] += 100.0
        return ""

    @dataclass(frozen=True)
    class Nothing:
        def answer(self) -> tuple[str, ...]:
            return ("Done.",)

    def lesson(target: object, *, guide: Guide) -> Nothing:
        guide.ask("How long?", ("short", "long"))
        clock[0] += 3.0
        return Nothing()

    monkeypatch.setattr(LessonPlan, "load_function", lambda self: lesson)
    guide = make_guide(tmp_path, quiz=True, read_answer=think)
    taught = list(runner.run_lessons(PHASES[:2], guide))
    assert [item.seconds for item in taught] == [3.0, 3.0]
    assert "[2 of 2, 3.00 s so far]" in printed(guide)
    assert guide.waiting_seconds == 200.0


@pytest.mark.parametrize("width", [60, 80, 100])
def test_headings_of_tables_are_broken_between_words_only(tmp_path: object, width: int) -> None:
    guide = make_guide(tmp_path)
    guide.console.width = width
    columns = ["Backend", ">Compilations", ">CUDA graphs recorded", ">Largest difference"]
    guide.table("Calls", columns, [["a" * 90, "1", "2", "3"]])
    words = printed(guide).split()
    assert {"Backend", "Compilations", "recorded", "difference"} <= set(words)
