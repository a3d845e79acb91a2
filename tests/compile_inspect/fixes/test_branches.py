"""Branches written with torch.where and torch.cond, in source of odd forms: exactly what is written."""

from __future__ import annotations

import pytest
from rewriting import place_of, rewritten

from compile_inspect.fixes.branches import Branches

KIND = "Data-dependent branching"
WHERE, COND = "Choose with torch.where", "Choose with torch.cond"
CHECK, ELSEWHERE = "Let the graph check it", "Check only in eager mode"


def body(*lines: str, step: str = "    ", head: str = "def f(x, y, mask, limit=1.0):") -> str:
    return "\n".join(["import torch", "", head, *(step + line if line else "" for line in lines), ""])


def where(*lines: str) -> str | None:
    return rewritten(Branches(), body(*lines), KIND).get(WHERE)


@pytest.mark.parametrize(
    ("test", "truth"),
    [
        ("x.sum() > 0", "x.sum() > 0"),
        ("x.sum().item() > limit", "x.sum() > limit"),
        ("float(x.max()) > 1 and bool(mask.any())", "(x.max() > 1) & mask.any()"),
        ("x.max() > 1 or x.min() < 0 and mask.all()", "(x.max() > 1) | ((x.min() < 0) & mask.all())"),
        ("not mask.any()", "torch.logical_not(mask.any())"),
        ("0 < x.sum() < 1", "(0 < x.sum()) & (x.sum() < 1)"),
        ("mask", "mask != 0"),
        ("torch.allclose(x, y)", "torch.isclose(x, y).all()"),
        ("torch.equal(x, y + 1)", "(x == (y + 1)).all()"),
        ("(x - y).abs().max().item() < 1e-3", "(x - y).abs().max() < 1e-3"),
    ],
)
def test_conditions(test: str, truth: str) -> None:
    assert where(f"if {test}:  # BREAK", "    y = x", "return y") == body(
        "# BREAK", f"y = torch.where({truth}, x, y)", "return y"
    )


@pytest.mark.parametrize("test", ["x in y", "(z := x.sum()) > 0 and z < 1", "x.sum() > 0 and y", "x + y"])
def test_conditions_that_are_not_certain(test: str) -> None:
    assert where(f"if {test}:  # BREAK", "    y = x", "else:", "    y = -x", "return y") is None


def test_both_branches_with_comments_tabs_and_several_lines() -> None:
    before = body(
        "if (  # BREAK", "\tx.sum()", "\t> 0  # up", "):", "\ty = (", "\t\tx  # first", "\t\t* 2", "\t)", "else:",
        "\t# down", "\ty = x  # as it was", "return y", step="\t",
    )  # fmt: skip
    after = body(
        "# BREAK", "# down", "y = torch.where(x.sum()", "\t> 0, x  # first", "\t\t* 2, x)  # as it was", "return y", step="\t"
    )
    # The comment in front of a parenthesis that goes away is kept above the line.
    assert rewritten(Branches(), before, KIND)[WHERE] == after.replace("# down", "# up\n\t# down")


def test_several_names_share_the_condition_and_keep_their_order() -> None:
    result = rewritten(
        Branches(),
        body("if x.sum() > 0:  # BREAK", "    half = x / 2", "    y += half", "    mask = y", "return y, mask"),
        KIND,
    )
    assert result[WHERE] == body(
        "# BREAK",
        "condition = x.sum() > 0",
        "half = x / 2",
        "y = torch.where(condition, y + half, y)",
        "mask = torch.where(condition, y, mask)",
        "return y, mask",
    )
    assert result[COND] == body(
        "# BREAK",
        "def when_true(x, y, mask):",
        "    half = x / 2",
        "    y = y + half",
        "    mask = y",
        "    return (y, mask.clone())",
        "",
        "def when_false(x, y, mask):",
        "    return (y.clone(), mask.clone())",
        "",
        "y, mask = torch.cond(x.sum() > 0, when_true, when_false, (x, y, mask))",
        "return y, mask",
    )


def test_branches_that_need_different_orders_are_left_alone() -> None:
    lines = ("if x.sum() > 0:  # BREAK", "    x = y", "    y = x", "else:", "    y = -x", "    x = -y", "return x")
    assert rewritten(Branches(), body(*lines), KIND) == {}


def test_returns() -> None:
    lines = ("if mask.any():  # BREAK", "    return x, y", "", "# else", "return y, x * limit")
    assert where(*lines) == body(
        "# BREAK",
        "# else",
        "condition = mask.any()",
        "return torch.where(condition, x, y), torch.where(condition, y, x * limit)",
    )
    lines = ("if mask.any():  # BREAK", "    return x", "else:", "    return y")
    result = rewritten(Branches(), body(*lines), KIND)
    assert result[WHERE] == body("# BREAK", "return torch.where(mask.any(), x, y)")
    assert result[COND] == body(
        "# BREAK", "return torch.cond(mask.any(), lambda x, y: x.clone(), lambda x, y: y.clone(), (x, y))"
    )


def test_an_if_on_one_line() -> None:
    assert where("if x.sum() > 0: y = x; mask = y  # BREAK", "return y * mask") == body(
        "condition = x.sum() > 0",
        "y = torch.where(condition, x, y)",
        "mask = torch.where(condition, y, mask)  # BREAK",
        "return y * mask",
    )


def test_a_chain_and_an_elif_of_its_own() -> None:
    lines = (
        "if x.sum() > 1:  # BREAK",
        "    y = x",
        "elif x.sum() > 0:",
        "    y = 2 * x",
        "else:",
        "    y = 0 * x",
        "return y",
    )
    assert where(*lines) == body(
        "# BREAK", "y = torch.where(x.sum() > 1, x, torch.where(x.sum() > 0, 2 * x, 0 * x))", "return y"
    )
    lines = ("if limit is None:", "    y = x", "elif x.sum() > 0:  # BREAK", "    y = 2 * x", "return y")
    assert where(*lines) == body(
        "if limit is None:", "    y = x", "else:", "    # BREAK", "    y = torch.where(x.sum() > 0, 2 * x, y)", "return y"
    )


def test_conditions_on_python_objects_stay_an_if() -> None:
    lines = (
        "if x.dtype == torch.half and (x.isinf().any() or x.isnan().any()):  # BREAK",
        "    x = x.clamp(-1, 1)",
        "return x",
    )
    assert where(*lines) == body(
        "if x.dtype == torch.half:",
        "    # BREAK",
        "    x = torch.where(x.isinf().any() | x.isnan().any(), x.clamp(-1, 1), x)",
        "return x",
    )
    lines = ("if mask is not None and limit and mask.any() and x.max() > 0:  # BREAK", "    y = x", "return y")
    assert where(*lines) == body(
        "if mask is not None and limit:",
        "    # BREAK",
        "    y = torch.where(mask.any() & (x.max() > 0), x, y)",
        "return y",
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if x.sum() > 0:  # BREAK", "    y = None", "return y"),
        ("if x.sum() > 0:  # BREAK", "    y = x.add_(1)", "return y"),
        ("if x.sum() > 0:  # BREAK", "    y[0] = 1", "return y"),
        ("if x.sum() > 0:  # BREAK", "    new = x", "return new"),
        ("if x.sum() > 0:  # BREAK", "    for _ in y:", "        x = x + 1", "return x"),
        ("if x.sum() > 0:  # BREAK", "    return x", "y = y + 1", "return y"),
        ("if x.sum() > 0:  # BREAK", "    return x, y", "return y"),
    ],
)
def test_what_no_choice_between_values_is(lines: tuple[str, ...]) -> None:
    assert rewritten(Branches(), body(*lines), KIND) == {}
    assert Branches().hints(place_of(body(*lines), KIND))


def test_nested_functions_decorators_and_text_that_is_not_ascii() -> None:
    text = (
        "import torch as t\n\n\nclass M:\n  @t.no_grad()\n  def f(self, größe):\n    def inner(x):\n"
        "      ä = 'ü'; y = größe if x.sum() > 0 else x  # BREAK\n      return y\n    return inner(größe)\n"
    )
    result = rewritten(Branches(), text, KIND)
    old = "größe if x.sum() > 0 else x"
    assert result[WHERE] == text.replace(old, "t.where(x.sum() > 0, größe, x)")
    assert result[COND] == text.replace(old, "t.cond(x.sum() > 0, lambda: größe.clone(), lambda: x.clone())")


def test_comments_between_the_parts_of_an_expression_have_no_other_place() -> None:
    assert where("y = (  # BREAK", "    x  # up", "    if x.sum() > 0", "    else y", ")", "return y") is None
    lines = ("if (", "    x.isnan().any()  # BREAK", "    or x.isinf().any()", "):", "    y = x", "return y")
    assert where(*lines) == body("# BREAK", "y = torch.where(x.isnan().any() | x.isinf().any(), x, y)", "return y")


def test_conditional_expressions_inside_each_other() -> None:
    line = "return g(x if x.sum() > 0 else (y if y.sum() > 0 else -y), 1 if limit is None else 2)  # BREAK"
    assert where(line) == body(
        "return g(torch.where(x.sum() > 0, x, torch.where(y.sum() > 0, y, -y)), 1 if limit is None else 2)  # BREAK"
    )


def test_a_truth_with_a_name_and_its_branches() -> None:
    lines = ("any_left = bool(mask.any())  # BREAK", "if any_left:", "    x = x * 2", "y = y + 1", "if not any_left:  # none")
    result = rewritten(Branches(), body(*lines, "    y = x", "return x, y"), "Unsupported Tensor.item() call")
    assert result == {
        WHERE: body(
            "any_left = mask.any()  # BREAK",
            "x = torch.where(any_left, x * 2, x)",
            "y = y + 1",
            "# none",
            "y = torch.where(torch.logical_not(any_left), x, y)",
            "return x, y",
        )
    }


def test_conditions_that_are_joined() -> None:
    title = "Combine the conditions as tensors"
    result = rewritten(Branches(), body("ok = x.max() < 1 and not mask.any()  # BREAK", "return y * ok"), KIND)
    assert result == {title: body("ok = (x.max() < 1) & torch.logical_not(mask.any())  # BREAK", "return y * ok")}


def test_checks() -> None:
    lines = ("if x.isnan().any():  # BREAK", "    raise ValueError('NaN')  # stop", "return x")
    assert rewritten(Branches(), body(*lines), KIND) == {
        CHECK: body("# BREAK", "torch._assert_async(torch.logical_not(x.isnan().any()), 'NaN')  # stop", "return x"),
        ELSEWHERE: body("if not torch.compiler.is_compiling() and x.isnan().any():  # BREAK", *lines[1:]),
    }
    lines = ("if x.isnan().any() or y.isnan().any():  # BREAK", "    print('NaN')", "return x")
    test = "if not torch.compiler.is_compiling() and (x.isnan().any() or y.isnan().any()):  # BREAK"
    assert rewritten(Branches(), body(*lines), KIND) == {ELSEWHERE: body(test, *lines[1:])}


def test_assertions() -> None:
    lines = ("assert (x > 0).all(), (  # BREAK", "    f'{x.shape}'", ")", "return x")
    assert rewritten(Branches(), body(*lines), KIND) == {
        CHECK: body("# BREAK", "torch._assert_async((x > 0).all(), f'{x.shape}')", "return x"),
        ELSEWHERE: body("if not torch.compiler.is_compiling():", *(f"    {line}" for line in lines[:3]), "return x"),
    }
    lines = ("y = 1; assert (x > 0).all(), describe(x)  # BREAK", "return x")
    text = 'y = 1; torch._assert_async((x > 0).all(), "a condition of the program is not satisfied")  # BREAK'
    assert rewritten(Branches(), body(*lines), KIND) == {CHECK: body(text, "return x")}
