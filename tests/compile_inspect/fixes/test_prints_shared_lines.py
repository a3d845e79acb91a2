from __future__ import annotations

import pytest
from marked_places import rewrites

from compile_inspect.fixes.prints import Prints

KIND = "Failed to trace builtin operator"


def test_a_call_over_several_lines() -> None:
    code = "import torch\n\n\ndef f(x):\n    print(\n        x,  # here, é\n    )  # told\n    return x\n"
    guard = "    if not torch.compiler.is_compiling():\n        print(\n            x,  # here, é\n        )  # told\n"
    assert list(rewrites(Prints(), code, KIND).values()) == [f"import torch\n\n\ndef f(x):\n{guard}    return x\n"]


@pytest.mark.parametrize(
    "body",
    [
        "    y = x + 1; print(y)  # here\n",
        "    if x.dim(): print(x)  # here\n",
        '    print("""two  # here\n  lines""")\n',
    ],
)
def test_lines_that_cannot_be_indented_are_left_alone(body: str) -> None:
    assert rewrites(Prints(), f"import torch\n\n\ndef f(x):\n{body}    return x\n", KIND) == {}
