from __future__ import annotations

import pytest
from marked_places import rewrites

from compile_inspect.fixes.numpy_calls import NumpyCalls

KIND = "attempted to trace numpy function unsupported by PyTorch"
START = "import numpy as np\nimport torch\n\n\ndef f(a, b, t):\n"


def made(expression: str) -> list[str]:
    """What becomes of an expression."""
    texts = rewrites(NumpyCalls(), f"{START}    r = {expression}  # here\n    return r\n", KIND, "numpy function: f")
    return [text.removeprefix(f"{START}    r = ").removesuffix("  # here\n    return r\n") for text in texts.values()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("np.isin(t.numpy(), [1, 2])", "torch.isin(t, torch.as_tensor([1, 2])).numpy()"),
        ("torch.from_numpy(np.isin(a, b, invert=True))", "torch.isin(torch.as_tensor(a), torch.as_tensor(b), invert=True)"),
        ("np.digitize(t.cpu().numpy(), b) - 1", "torch.bucketize(t.cpu(), torch.as_tensor(b), right=True).numpy() - 1"),
        ("np.nanmean(a, axis=0)", "torch.nanmean(torch.as_tensor(a), dim=0).numpy()"),
        ("np.nanmean(a)", "torch.nanmean(torch.as_tensor(a))"),
        ("np.nansum(a, axis=1, keepdims=True)", "np.sum(np.where(np.isnan(a), 0, a), axis=1, keepdims=True)"),
        ("np.nanmax(a + b)", "np.max(np.where(np.isnan(a + b), -np.inf, a + b))"),
        ("np.add.reduce(a)", "np.sum(a, axis=0)"),
        ("np.maximum.reduce(a, 1)", "np.max(a, 1)"),
        ("np.multiply.accumulate(a, axis=1)", "np.cumprod(a, axis=1)"),
        ("np.minimum.accumulate(a)", "torch.cummin(torch.as_tensor(a), 0).values.numpy()"),
        ("np.subtract.outer(a + b, b)", "np.subtract((a + b)[:, None], b)"),
        ("np.select([a < 0, a > 1], [0, 1], default=a)", "np.where(a < 0, 0, np.where(a > 1, 1, a))"),
        ("2 * np.polyval([1.5, -b, 3], a)", "2 * ((1.5 * a + (-b)) * a + 3)"),
        ("np.partition(a, 2)[2]", "np.sort(a)[2]"),
        ("np.ediff1d(a)", "np.diff(np.ravel(a))"),
        ("np.trapezoid(a, b, axis=-1)", "torch.trapezoid(torch.as_tensor(a), torch.as_tensor(b), dim=-1).numpy()"),
        (
            "np.pad(a, ((0, 1), (2, 3)), constant_values=7)",
            "torch.nn.functional.pad(torch.as_tensor(a), (2, 3, 0, 1), value=7).numpy()",
        ),
        ("np.bincount(a, minlength=5)", "torch.nn.functional.one_hot(torch.as_tensor(a), 5).sum(0).numpy()"),
        ("np.mgrid[:3, 0 : t.shape[0]]", "np.indices((3, t.shape[0]))"),
        ("'größer', np.add.reduce(a)", "'größer', np.sum(a, axis=0)"),
    ],
)
def test_what_is_written(before: str, after: str) -> None:
    assert made(before) == [after]


@pytest.mark.parametrize(
    "expression",
    [
        "np.interp(a, b, t)",
        "np.isin(a, b, kind='sort')",
        "np.add.reduce(a, where=b)",
        "np.select(conditions, choices)",
        "np.polyval(b, a)",
        "np.pad(a, 1)",
        "np.pad(a, ((0, 1), (2, 3)), mode='reflect')",
        "np.bincount(a)",
        "np.bincount(a, b, 5)",
        "np.mgrid[1:3, 0:4]",
        "np.mgrid[0:3:2, 0:4]",
        "np.partition(a, 2, axis=0)",
        "np.ndindex(a)",
    ],
)
def test_what_does_not_fit_is_left_alone(expression: str) -> None:
    assert made(expression) == []


def test_loops_over_indices() -> None:
    code = (
        "import numpy as np\n\n\ndef f(x):\n    for i in np.ndindex(2, x.shape[1]):  # here\n        x[i] += 1\n    return x\n"
    )
    (text,) = rewrites(NumpyCalls(), code, KIND, "numpy function: ndindex").values()
    wanted = code.replace("np.ndindex(2, x.shape[1])", "itertools.product(range(2), range(x.shape[1]))")
    assert text == wanted.replace("import numpy as np\n", "import numpy as np\nimport itertools\n")


def test_error_states() -> None:
    code = "import contextlib\nimport numpy as np\ndef f(a):\n\twith np.errstate(all='ignore'):  # here\n\t\treturn np.log(a)\n"
    (text,) = rewrites(NumpyCalls(), code, KIND, "numpy function: errstate").values()
    assert text == code.replace("np.errstate(all='ignore')", "contextlib.nullcontext()")


def test_comments_inside_the_call_are_not_lost() -> None:
    code = f"{START}    return np.select(\n        [a < 0],  # here, below\n        [b],\n        a,\n    )\n"
    assert rewrites(NumpyCalls(), code, KIND, "numpy function: select") == {}
