"""What is written in the place of memory that is resized or filled in place."""

from __future__ import annotations

import pytest
from changes import changed

from compile_inspect.fixes.allocation import Allocation

RESIZED, OUT, RANDOM = "Unsupported Tensor.resize_() call", "Shape mismatch with out= tensor variant", "Tensor.random_ op"


def test_a_resized_tensor_is_made_anew() -> None:
    text = "import torch\ndef f(x):\n\ty = torch.empty(0)\n\ty.resize_(2, x.size(0))  # here\n\treturn y\n"
    wanted = text.replace("y.resize_(2, x.size(0))", "y = y.new_empty((2, x.size(0)))")
    assert changed(Allocation(), text, RESIZED) == {"Create a tensor of that shape": wanted}
    used = text.replace("\ty.resize_", "\tz = y\n\ty.resize_")
    assert changed(Allocation(), used, RESIZED) == {}
    given = text.replace("torch.empty(0)", "x")
    assert changed(Allocation(), given, RESIZED) == {}


def test_a_result_gets_its_name() -> None:
    text = (
        'import torch\ndef f(x):\n    o = torch.empty(0)\n    "é"; torch.mm(x,  # one\n'
        "        x, out=o)  # here\n    return o\n"
    )
    wanted = text.replace("torch.mm(", "o = torch.mm(").replace(", out=o", "")
    assert changed(Allocation(), text, OUT) == {"Assign the result to the name": wanted}
    assert changed(Allocation(), text.replace("x, out", "(x), out"), OUT) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.empty_like(x, dtype=torch.long).random_(3)", "torch.randint_like(x, 0, 3, dtype=torch.long)"),
        ("torch.LongTensor(n).random_(0, 9)", None),
        ("torch.LongTensor(5).random_(0, 9)", "torch.randint(0, 9, (5,))"),
        ("torch.empty(2, n).random_(1, 9)", "torch.randint(1, 9, (2, n), dtype=torch.get_default_dtype())"),
        ("torch.zeros(x.shape, dtype=x.dtype).random_(1, 9)", "torch.randint(1, 9, x.shape, dtype=x.dtype)"),
        ("torch.empty(2).random_()", None),
        ("x.random_(2)", None),
    ],
)
def test_integers_are_drawn_into_a_new_tensor(before: str, after: str | None) -> None:
    text = f"import torch\ndef f(x, n):\n    return x + {before}  # here\n"
    assert list(changed(Allocation(), text, RANDOM).values()) == ([] if after is None else [text.replace(before, after)])
