"""Numbers that stay in their tensors, in source of odd forms: exactly what is written."""

from __future__ import annotations

import pytest
from rewriting import place_of, rewritten

from compile_inspect.fixes.scalars import Scalars

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
DETACHED = "Leave the number in its tensor, without a gradient"


def body(*lines: str, step: str = "    ") -> str:
    return "\n".join(["import math", "import torch", "", "def f(x, n, mask):", *(step + line for line in lines), ""])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return x / n.item()  # BREAK", "return x / n.detach()  # BREAK"),
        ("return x * (n + 1).item()  # BREAK", "return x * (n + 1).detach()  # BREAK"),
        ("return x * float(n + 1)  # BREAK", "return x * (n + 1).detach()  # BREAK"),
        ("return x * float(n.item())  # BREAK", "return x * n.detach()  # BREAK"),
        ("return x * int(n)  # BREAK", "return x * n.long()  # BREAK"),
        ("return x * int((x > 0).sum())  # BREAK", "return x * (x > 0).sum()  # BREAK"),
        ("return x[n.item()]  # BREAK", "return x[n.detach().reshape(1)].squeeze(0)  # BREAK"),
        ("return x[n.item() + 1] * 2  # BREAK", "return x[(n.detach() + 1).reshape(1)].squeeze(0) * 2  # BREAK"),
        ("return x.clamp(max=n.item())  # BREAK", "return x.clamp(max=n.detach())  # BREAK"),
        ("return x / max(n.item(), 1)  # BREAK", "return x / torch.clamp(n.detach(), min=1)  # BREAK"),
        ("return x / min(1e3, -n.item())  # BREAK", "return x / torch.clamp(-n.detach(), max=1e3)  # BREAK"),
        ("return x / math.sqrt(n.item() + 1)  # BREAK", "return x / torch.sqrt(n.detach() + 1)  # BREAK"),
        ("é = 'ßü'; y = x / n.item(); z = 2  # BREAK", "é = 'ßü'; y = x / n.detach(); z = 2  # BREAK"),
        ("return x / n.item() + x * float(mask.sum())  # BREAK", "return x / n.detach() + x * mask.sum().detach()  # BREAK"),
        ("return x * bool(mask.any())  # BREAK", "return x * (mask.any())  # BREAK"),
    ],
)
def test_on_one_line(before: str, after: str) -> None:
    assert rewritten(Scalars(), body(before), ITEM)[DETACHED] == body(after)


def test_comments_and_lines_of_an_expression_are_kept() -> None:
    before = body("return (", "    x  # the sum", "    / mask.sum(  # BREAK", "        dim=0", "    ).item()", ")")
    after = body("return (", "    x  # the sum", "    / mask.sum(  # BREAK", "        dim=0", "    ).detach()", ")")
    assert rewritten(Scalars(), before, ITEM)[DETACHED] == after


def test_a_name_is_followed_to_where_it_is_read() -> None:
    before = body("scale = float(x.abs().max())  # BREAK", "low = max(scale, 1e-6)", "return x / low, -scale * x", step="\t")
    result = rewritten(Scalars(), before, ITEM)
    lines = ("low = torch.clamp(scale, min=1e-6)", "return x / low, -scale * x")
    assert result[DETACHED] == body("scale = x.abs().max().detach()  # BREAK", *lines, step="\t")


def test_a_list_of_numbers_is_unpacked_from_the_tensor() -> None:
    before = body("low, high = n.tolist()  # BREAK", "return (x - low) / (high - low)")
    assert rewritten(Scalars(), before, ITEM)[DETACHED] == before.replace("tolist", "detach().unbind")


def test_torch_is_imported_where_it_is_needed_and_called_as_the_file_does() -> None:
    text = "import torch as th\ndef f(x, n):\n    return x / max(n.item(), 1)  # BREAK\n"
    assert "th.clamp(n.detach(), min=1)" in rewritten(Scalars(), text, ITEM)[DETACHED]
    text = "from torch import nn\ndef f(x, n):\n    return x / max(n.item(), 1)  # BREAK\n"
    assert rewritten(Scalars(), text, ITEM)[DETACHED].startswith("from torch import nn\nimport torch\n")


@pytest.mark.parametrize(
    "lines",
    [
        ("return {'loss': n.item()}  # BREAK",),
        ("return n.item()  # BREAK",),
        ("size = 2", "return x.view(n.item() // size, x.shape[0] * n.item())  # BREAK"),
        ("x[n.item()] = 0  # BREAK", "return x"),
        ("return [n.item() * 2]  # BREAK",),
        ("return torch.zeros(n.item())  # BREAK",),
        ("k = n.item()  # BREAK", "if k > 0:", "    x = x * k", "return x"),
        ("k = n.item()  # BREAK", "k = k + 1", "return x * k"),
        ("self.last = n.item()  # BREAK", "return x"),
        ("if n.item() > 0:  # BREAK", "    return x", "return -x"),
        ("parts = torch.split(x, n.tolist())  # BREAK", "return parts"),
    ],
)
def test_numbers_that_are_needed_as_numbers_are_left_alone(lines: tuple[str, ...]) -> None:
    place = place_of(body(*lines), ITEM)
    proposals = Scalars().proposals(place)
    assert [item.title for item in proposals] == ["Let graphs contain numbers from tensors"]
    assert Scalars().hints(place)
