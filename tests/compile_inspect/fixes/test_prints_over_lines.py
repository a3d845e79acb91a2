"""Prints over several lines."""

from __future__ import annotations

from marked_places import rewrites

from compile_inspect.fixes.prints import Prints

KIND = "Failed to trace builtin operator"


def test_a_call_over_several_lines() -> None:
    code = "import torch\n\n\ndef f(x):\n    print(\n        x,  # here, é\n    )  # told\n    return x\n"
    guard = "    if not torch.compiler.is_compiling():\n        print(\n            x,  # here, é\n        )  # told\n"
    assert list(rewrites(Prints(), code, KIND).values()) == [f"import torch\n\n\ndef f(x):\n{guard}    return x\n"]


def test_text_that_indenting_would_change_is_left_alone() -> None:
    body = '    print("""two  # here\n  lines""")\n'
    assert rewrites(Prints(), f"import torch\n\n\ndef f(x):\n{body}    return x\n", KIND) == {}
