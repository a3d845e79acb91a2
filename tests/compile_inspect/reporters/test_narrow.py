"""On a terminal, lines are broken between words; a file gets them whole."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from compile_inspect.reporters.text.messages import print_heading, print_line
from compile_inspect.wording.locations import place


def printed(width: int, terminal: bool, *lines: str) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    for line in lines:
        print_line(console, Text(line))
    return file.getvalue().split("\n")[:-1]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_word_is_broken_on_a_terminal(width: int) -> None:
    line = "  then: " + "; ".join(f"graph {number} after AOTAutograd, {number} operations" for number in range(9))
    shown = printed(width, True, line)
    assert len(shown) > 1 and all(len(item) <= width for item in shown)
    assert " ".join(" ".join(shown).split()) == " ".join(line.split())
    assert all(item.startswith("    ") for item in shown[1:])
    assert printed(width, False, line) == [line]


def test_a_word_that_is_longer_than_the_line_stays_whole() -> None:
    path = "/a/very/long/path/" + "x" * 60 + "/model.py:3"
    assert any(path in line for line in printed(40, True, f"In {path} it is."))


def test_a_heading_is_one_line_in_a_file() -> None:
    file = io.StringIO()
    print_heading(Console(file=file, width=40), "A heading " * 9, "a detail")
    assert file.getvalue().count("\n") == 1


def test_one_file_has_one_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    forms = [f"{tmp_path}/model.py", f"{tmp_path}/./model.py", f"{tmp_path}/sub/../model.py", f"{tmp_path}//model.py"]
    assert {place(form, 3) for form in forms} == {"model.py:3"}


@pytest.mark.parametrize("written", ["model.py", "./model.py", "sub/../model.py", "{cwd}/./model.py"])
def test_a_file_that_is_named_in_any_form_is_one_file(written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from compile_inspect.target import find_object

    (tmp_path / "sub").mkdir()
    (tmp_path / "model.py").write_text("def f(): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    function = find_object(f"{written.format(cwd=tmp_path)}:f")
    assert function.__code__.co_filename == os.path.join(tmp_path, "model.py")  # noqa: PTH118
