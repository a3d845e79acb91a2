"""Source files that are changed at places their syntax tree names: nothing else may change, byte by byte."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compile_inspect.errors import InspectError
from compile_inspect.fixes.source import SourceFile, apply, read, unified_diff
from compile_inspect.records.fixes import Replacement

ODD = '''\
# -*- coding: utf-8 -*-
"""Odd formatting."""
from __future__ import annotations
import torch  # noqa

@torch.no_grad()
@(lambda f: f)
def outer(x, *,
          scale = 2):  # a comment
\tdef inner(y):
\t\tä = "é"; print("ü", y); return y  # three
\tif x.sum() > 0: x = x + 1
\tvalue = torch.where(
\t\tx > 0,   # where
\t\tx,
\t\t-x )
\treturn inner(value) * scale
'''


def at(text: str, line: int) -> tuple[SourceFile, ast.stmt]:
    source = SourceFile("odd.py", text)
    statement = source.statement_at(line)
    assert statement is not None
    return source, statement


def test_a_statement_is_found_by_any_of_its_lines() -> None:
    for line in (13, 14, 15, 16):
        source, statement = at(ODD, line)
        assert source.segment(statement).startswith("value = torch.where(") and source.segment(statement).endswith("-x )")
        assert "# where" in source.segment(statement)


def test_the_head_of_a_compound_statement_is_its_own() -> None:
    source, statement = at("if a:\n    b\nelse:\n    c\n", 1)
    assert isinstance(statement, ast.If)
    assert source.segment(source.statement_at(2)) == "b" and source.segment(source.statement_at(4)) == "c"


def test_statements_that_share_a_line() -> None:
    source, last = at(ODD, 11)
    assert [source.segment(item) for item in source.statements_at(11)] == ['ä = "é"', 'print("ü", y)', "return y"]
    assert source.segment(last) == "return y" and source.shares_its_line(last)
    one_line_body = source.statements_at(12)
    assert [type(item).__name__ for item in one_line_body] == ["Assign"] and source.shares_its_line(one_line_body[0])
    assert not source.shares_its_line(at(ODD, 13)[1])


def test_characters_before_a_place_do_not_move_it() -> None:
    source = SourceFile("odd.py", ODD)
    call = source.statements_at(11)[1]
    changed = apply(ODD, [source.replace(call, "pass")])
    assert changed == ODD.replace('print("ü", y)', "pass")


def test_several_replacements_at_once() -> None:
    source = SourceFile("odd.py", ODD)
    changes = [
        source.replace(source.statements_at(11)[1], "pass"),
        source.insert_before(at(ODD, 13)[1], ["first = 1", "second = 2"]),
        source.insert_import("import math"),
    ]
    changed = apply(ODD, [item for item in changes if item is not None])
    expected = ODD.replace('print("ü", y)', "pass").replace("\tvalue =", "\tfirst = 1\n\tsecond = 2\n\tvalue =")
    assert changed == expected.replace("import torch  # noqa\n", "import torch  # noqa\nimport math\n")


def test_decorators_stay_with_what_they_decorate() -> None:
    source = SourceFile("odd.py", ODD)
    function = next(node for node in source.tree.body if isinstance(node, ast.FunctionDef))
    changed = apply(ODD, [source.insert_before(function, ["CONSTANT = 1"])])
    assert changed == ODD.replace("@torch.no_grad()", "CONSTANT = 1\n@torch.no_grad()")


def test_line_ends_are_kept() -> None:
    text = ODD.replace("\n", "\r\n")
    source, statement = at(text, 13)
    changed = apply(text, [source.insert_before(statement, ["a = 1"]), source.replace(statement, "b = 2\nc = 3")])
    assert "\n" not in changed.replace("\r\n", "")
    start = ODD.index("\tvalue")
    end = ODD.index("\treturn inner")
    assert changed == (ODD[:start] + "\ta = 1\n\tb = 2\nc = 3\n" + ODD[end:]).replace("\n", "\r\n")


@pytest.mark.parametrize("text", ["x = 1", "x = 1\n", ""])
def test_files_with_and_without_an_end(text: str) -> None:
    source = SourceFile("short.py", text)
    inserted = source.insert_import("import math")
    assert inserted is not None
    assert apply(text, [inserted]) == "import math\n" + text


def test_imports_go_where_imports_are() -> None:
    for text, expected in (
        ('"""Doc."""\nx = 1\n', '"""Doc."""\nimport math\nx = 1\n'),
        ("from __future__ import annotations\nx = 1\n", "from __future__ import annotations\nimport math\nx = 1\n"),
        ("import os\n\n\nx = 1\n", "import os\nimport math\n\n\nx = 1\n"),
    ):
        change = SourceFile("f.py", text).insert_import("import math")
        assert change is not None and apply(text, [change]) == expected
    assert SourceFile("f.py", "import math\n").insert_import("import math") is None


def test_a_file_that_has_changed_is_noticed() -> None:
    source, statement = at(ODD, 13)
    change = source.replace(statement, "pass")
    with pytest.raises(InspectError, match=r"odd.py has changed since it was recorded: line 13 is not 'value = torch"):
        apply(ODD.replace("-x )", "-x)"), [change])
    with pytest.raises(InspectError, match="it has no line 16"):
        apply("x = 1\n", [change])
    beyond = Replacement("odd.py", (7, 0), (7, 0), "", "new\n")
    with pytest.raises(InspectError, match="it has no line 7"):
        apply("x = 1\n", [beyond])


def test_one_level_of_indentation_is_that_of_the_file() -> None:
    assert SourceFile("f.py", ODD).indent_unit == "\t"
    assert SourceFile("f.py", "if a:\n  b\n").indent_unit == "  "
    assert SourceFile("f.py", "x = 1\n").indent_unit == "    "


def test_what_is_read_is_the_file_or_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_bytes(b"x = 1\r\n")
    as_it_is = read(str(path), "x = 1\n")
    assert as_it_is is not None and as_it_is.text == "x = 1\r\n"
    changed = read(str(path), "x = 2\n")
    assert changed is not None and changed.text == "x = 2\n"
    path.unlink()
    recorded = read(str(path), "x = 1\n")
    assert recorded is not None and recorded.text == "x = 1\n"
    assert read(str(path)) is None
    path.write_text("def (:\n")
    assert read(str(path)) is None


def test_a_difference_of_a_file_without_an_end() -> None:
    assert unified_diff("f.py", "a\nb", "a\nc").endswith("\\ No newline at end of file\n")
