"""Loops written with while_loop, or with all iterations run: exact output."""

from __future__ import annotations

import pytest
from rewriting import place_of, rewritten

from compile_inspect.fixes.loops import Loops

KIND = "Data-dependent branching"
LOOP, ALL = "Loop with while_loop", "Run all iterations, without effect after the last"
IMPORT = "from torch._higher_order_ops import while_loop"


def body(*lines: str, step: str = "    ", imports: tuple[str, ...] = ("import torch",)) -> str:
    return "\n".join([*imports, "", "def f(x, y, n):", *(step + line if line else "" for line in lines), ""])


def looped(*lines: str, step: str = "    ") -> str:
    return body(*lines, step=step, imports=("import torch", IMPORT))


def test_a_while_with_a_counter_and_comments() -> None:
    before = body(
        "k = 0", "while x.norm().item() > 1 and k < 9:  # BREAK", "\t# smaller", "\thalf = x / 2", "\tx = half", "\tk += 1",
        "return x", step="\t",
    )  # fmt: skip
    assert rewritten(Loops(), before, KIND)[LOOP] == looped(
        "k = 0",
        "# BREAK",
        "# smaller",
        "def loop_condition(x, k):",
        "\treturn (x.norm() > 1) & (k < 9)",
        "",
        "def loop_body(x, k):",
        "\thalf = x / 2",
        "\tx = half",
        "\tk = k + 1",
        "\treturn (x.clone(), k)",
        "",
        "x, k = while_loop(loop_condition, loop_body, (x, torch.tensor(k)))",
        "return x",
        step="\t",
    )


def test_a_range_that_a_tensor_ends() -> None:
    before = body("for i in range(int(n) + 1):  # BREAK", "    x = x * i", "return x")
    assert rewritten(Loops(), before, KIND)[LOOP] == looped(
        "# BREAK",
        "iterations = n.long() + 1",
        "def loop_body(i, x):",
        "    x = x * i",
        "    return (i + 1, x)",
        "",
        "_, x = while_loop(lambda i, x: i < iterations, loop_body, (torch.zeros_like(iterations), x))",
        "return x",
    )


def test_a_limit_that_the_loop_changes_is_kept() -> None:
    before = body("for _ in range(n.item()):  # BREAK", "    n = n + 1", "return n")
    after = rewritten(Loops(), before, KIND)[LOOP]
    assert (
        "iterations = n\n" in after
        and "lambda count, n: count < iterations, loop_body, (torch.zeros_like(iterations), n)" in after
    )


def test_a_loop_that_is_left_early() -> None:
    before = body(
        "for step in range(9):", "    new = x / 2  # half", "    new = new + 1", "    y += new",
        "    if (new - x).abs().max() < 1e-3:  # BREAK", "        # near enough", "        break",
        "    x = (", "        new  # go on", "    )", "return x, y",
    )  # fmt: skip
    assert rewritten(Loops(), before, KIND)[ALL] == body(
        "done = torch.zeros((), dtype=torch.bool, device=y.device)",
        "for step in range(9):", "    new = x / 2  # half", "    new = new + 1", "    y = torch.where(done, y, y + new)",
        "    # BREAK", "    # near enough", "    done = done | ((new - x).abs().max() < 1e-3)",
        "    x = (", "        torch.where(done, x, new)  # go on", "    )", "return x, y",
    )  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ("while x.sum() > 1:  # BREAK", "    y.append(x)", "    x = x / 2", "return x"),
        ("while x.sum() > 1:  # BREAK", "    z = x / 2", "    x = z", "return z"),
        ("while x.sum() > 1:  # BREAK", "    x = x / 2", "else:", "    x = x + 1", "return x"),
        ("for i in range(n.item()):  # BREAK", "    x = x * 2", "return x * i"),
        ("for i in range(2, n.item()):  # BREAK", "    x = x * 2", "return x"),
        (
            "for i in range(9):",
            "    x = x * 2",
            "    if x.sum() > 1:  # BREAK",
            "        continue",
            "    x = x + 1",
            "return x",
        ),
        ("for i in range(9):", "    x = x * 2", "    if x.sum() > 1:  # BREAK", "        return y", "return x"),
        ("for i in range(9):", "    x = x * 2", "    if x.sum() > 1:  # BREAK", "        break", "return x, i"),
        ("for i in range(9):", "    y.append(x)", "    if x.sum() > 1:  # BREAK", "        break", "return x"),
    ],
)
def test_what_is_not_certain_gets_a_word_but_no_rewrite(lines: tuple[str, ...]) -> None:
    text = body(*lines)
    kind = "Unsupported Tensor.item() call with capture_scalar_outputs=False" if ".item()" in text else KIND
    place = place_of(text, kind)
    if "range(2" not in text:
        assert Loops().matches(place) and Loops().hints(place)
    assert Loops().proposals(place) == []
