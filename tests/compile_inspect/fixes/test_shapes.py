from __future__ import annotations

import pytest
from marked_places import NONZERO, SCALAR, place, rewrites

from compile_inspect.fixes.shapes import Shapes

NEUTRAL = "Put neutral values where the mask is false"
CHOSEN = "Choose between new and old values with torch.where"
COUNTED = "Count the true values of the mask"
INDEXED = "Index with a tensor of one element"


def made(statement: str, *, before: str = "", kind: tuple[str, str] = NONZERO) -> dict[str, str]:
    """What becomes of one statement of a function: the text after `def` up to the return."""
    start = f"import torch\n\n\ndef f(x, y, mask):\n{before}"
    texts = rewrites(Shapes(), f"{start}{statement}\n    return x\n", *kind)
    return {title: text.removeprefix(start).removesuffix("\n    return x\n") for title, text in texts.items()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    s = x[x > 0].sum()  # here", "    s = torch.where(x > 0, x, 0).sum()  # here"),
        ("    s = x[mask].mean()  # here", "    s = torch.where(mask, x, 0).sum() / mask.sum()  # here"),
        ("    s = 2 * x[~mask].mean()  # here", "    s = 2 * (torch.where(~mask, x, 0).sum() / (~mask).sum())  # here"),
        ("    s = torch.mean(x[mask]).exp()  # here", "    s = (torch.where(mask, x, 0).sum() / mask.sum()).exp()  # here"),
        ("    s = (x + y)[x > y].max()  # here", '    s = torch.where(x > y, x + y, float("-inf")).max()  # here'),
        ("    s = torch.masked_select(x, mask).sum()  # here", "    s = torch.where(mask, x, 0).sum()  # here"),
        ("    s = x.masked_select(mask=mask).prod()  # here", "    s = torch.where(mask, x, 1).prod()  # here"),
        ('    n = "größer"; s = x[x > 0].sum()  # here', '    n = "größer"; s = torch.where(x > 0, x, 0).sum()  # here'),
        ("\ts = x[x > 0].sum()  # here", "\ts = torch.where(x > 0, x, 0).sum()  # here"),
    ],
)
def test_reductions(before: str, after: str) -> None:
    tabbed = before.startswith("\t")
    code = before if not tabbed else before + "\n\treturn s"
    start = "import torch\n\n\ndef f(x, y, mask):\n"
    assert rewrites(Shapes(), start + code, *NONZERO)[NEUTRAL] == start + after + ("\n\treturn s" if tabbed else "")


def test_a_selection_over_several_lines_keeps_its_comments() -> None:
    statement = "    s = x[\n        (x > 0)  # positive\n        & mask  # here\n    ].sum()"
    wanted = "    s = torch.where((x > 0)  # positive\n        & mask, x, 0).sum()"
    assert made(statement).get(NEUTRAL) is None, "the comment after the mask would be lost"
    kept = "    s = x[\n        (x > 0)  # here, positive\n        & mask\n    ].sum()"
    assert made(kept)[NEUTRAL] == wanted.replace("# positive", "# here, positive")


def test_other_arguments_of_a_reduction_are_left_alone() -> None:
    assert made("    s = x[mask].sum(1)  # here") == {}
    assert made("    s = x[mask].sum(keepdim=True)  # here") == {}


def test_all_selections_of_a_statement_are_written_at_once() -> None:
    found = made("    s = x[x > 0].mean() - x[x < 0].sum()  # here")
    mean = "(torch.where(x > 0, x, 0).sum() / (x > 0).sum())"
    assert found[NEUTRAL] == f"    s = {mean} - torch.where(x < 0, x, 0).sum()  # here"


def test_a_sum_over_a_count() -> None:
    found = made("    s = x[mask].sum() / len(x[mask])  # here")
    assert found[NEUTRAL] == "    s = torch.where(mask, x, 0).sum() / torch.count_nonzero(mask)  # here"


def test_rows() -> None:
    found = made("    s = x[mask].mean(dim=0)  # here")
    assert found == {f"{NEUTRAL}, row by row": "    s = torch.where(mask.unsqueeze(-1), x, 0).sum(dim=0) / mask.sum()  # here"}


def test_assignments() -> None:
    known = "    out = x.clone()\n"
    found = made("    out[mask] = x[mask].exp() - y[mask]  # here", before=known)
    assert found[CHOSEN] == "    out = torch.where(mask, x.exp() - y, out)  # here"
    assert found[f"{CHOSEN}, row by row"] == "    out = torch.where(mask.unsqueeze(-1), x.exp() - y, out)  # here"
    assert (
        made("    out[mask] *= x[mask] + 1  # here", before=known)[CHOSEN]
        == "    out = torch.where(mask, out * (x + 1), out)  # here"
    )
    assert made("    x[mask] = y[mask]  # here")[CHOSEN] == "    x.copy_(torch.where(mask, y, x))  # here"


def test_assignments_that_use_the_mask_otherwise_are_left_alone() -> None:
    assert made("    x[mask] = y[mask] * mask.sum()  # here") == {}
    assert made("    x[mask] = y.flatten()  # here") == {}
    assert made("    x.data[mask] = y[mask]  # here") == {}


def test_counts() -> None:
    assert made("    n = len(torch.nonzero(mask))  # here")[COUNTED] == "    n = torch.count_nonzero(mask)  # here"
    assert made("    n = (x > 0).nonzero().size(0)  # here")[COUNTED] == "    n = torch.count_nonzero(x > 0)  # here"
    assert made("    n = x[mask].shape[0] + 1  # here")[COUNTED] == "    n = torch.count_nonzero(mask) + 1  # here"
    assert made("    n = torch.nonzero(mask).shape[1]  # here") == {}
    assert made("    n = torch.nonzero(mask, as_tuple=True).shape[0]  # here") == {}


def test_losses() -> None:
    found = made("    s = torch.nn.functional.l1_loss(x[mask], y[mask]) / 2  # here")
    whole = 'torch.nn.functional.l1_loss(torch.where(mask, x, 0), torch.where(mask, y, 0), reduction="sum") / mask.sum()'
    assert found == {"Put zeros in both arguments where the mask is false": f"    s = ({whole}) / 2  # here"}
    assert made("    s = torch.nn.functional.l1_loss(x[mask], y[~mask])  # here") == {}
    assert made('    s = torch.nn.functional.l1_loss(x[mask], y[mask], reduction="sum")  # here') == {}


def test_indices() -> None:
    assert (
        made("    s = x[y.argmax()] + 1  # here", kind=SCALAR)[INDEXED]
        == "    s = x[y.argmax().reshape(1)].squeeze(0) + 1  # here"
    )
    assert made("    s = x[:, y]  # here", kind=SCALAR)[INDEXED] == "    s = x[:, y.reshape(1)].squeeze(1)  # here"
    assert made("    x[y] = 0  # here", kind=SCALAR)[INDEXED] == "    x[y.reshape(1)] = 0  # here"
    assert made("    s = x[1:y]  # here", kind=SCALAR) == {}


def test_explicit_numbers_are_the_business_of_others() -> None:
    code = "import torch\ndef f(x, y):\n    return x[: y.item()]  # here\n"
    assert not Shapes().matches(place(code, "Unsupported Tensor.item() call with capture_scalar_outputs=False"))


def test_nothing_is_written_where_torch_has_another_name() -> None:
    assert rewrites(Shapes(), "import torch as t\ndef f(x):\n    return x[x > 0].sum()  # here\n", *NONZERO) == {}


def test_nested_functions_and_decorators() -> None:
    inner = "    def g(m):\n        k = m > 0\n        return x[k].sum()  # here\n"
    code = f"import torch\n\n@torch.no_grad()\ndef f(x):\n{inner}    return g(x)\n"
    found = rewrites(Shapes(), code, *NONZERO)[NEUTRAL]
    assert found == code.replace("x[k].sum()", "torch.where(k, x, 0).sum()")


def test_a_selection_with_a_name() -> None:
    start = "import torch\n\n\ndef f(x, mask):\n"
    code = f"{start}    kept = x[mask]  # here\n    n = max(len(kept), 1)\n    return kept.sum() / n + 2 * torch.mean(kept)\n"
    wanted = (
        f"{start}    kept = torch.where(mask, x, 0)  # here\n    n = max(torch.count_nonzero(mask), 1)\n"
        "    return kept.sum() / n + 2 * (kept.sum() / mask.sum())\n"
    )
    assert rewrites(Shapes(), code, *NONZERO) == {"Keep all values, with zeros where the mask is false": wanted}


@pytest.mark.parametrize(
    "body",
    [
        "    kept = x[mask]  # here\n    return kept.std()",
        "    kept = x[mask]  # here\n    return kept.sum(0)",
        "    kept = x[mask]  # here\n    return kept",
        "    kept = x[mask]  # here\n    mask = mask & (x > 1)\n    return kept.mean()",
        "    kept = x[mask]  # here\n    kept = kept * 2\n    return kept.mean()",
        "    kept = x[mask]; s = kept.std()  # here\n    return kept.mean()",
        "    kept = x\n    kept = x[mask]  # here\n    return kept.mean()",
    ],
)
def test_a_selection_that_is_needed_itself_stays(body: str) -> None:
    assert rewrites(Shapes(), f"import torch\n\n\ndef f(x, mask):\n{body}\n", *NONZERO) == {}
