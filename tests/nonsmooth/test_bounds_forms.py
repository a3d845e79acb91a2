"""Bounds as people give them who come from scipy."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.optimize
import torch

import nonsmooth
from nonsmooth import ProblemError, minimize

PAIRS = [(1.0, 2.0), (-1.0, 0.5), (0.0, 3.0)]


def distance(x: torch.Tensor) -> torch.Tensor:
    return (x - 5).abs().sum()


@pytest.mark.parametrize(
    "bounds",
    [
        scipy.optimize.Bounds(*map(list, zip(*PAIRS, strict=True))),
        tuple(zip(*PAIRS, strict=True)),
        ([1.0, -1.0, 0.0], torch.tensor([2.0, 0.5, 3.0])),
    ],
    ids=["Bounds", "transposed pairs", "lists and tensors"],
)
def test_all_forms_are_the_same_box(bounds: Any) -> None:
    result = minimize(distance, torch.tensor([1.5, 0.0, 1.0]), bounds=bounds)
    assert result.success
    torch.testing.assert_close(result.x, torch.tensor([2.0, 0.5, 3.0]), atol=1e-6, rtol=0)


def test_a_list_of_pairs_is_explained() -> None:
    with pytest.raises(ProblemError, match=r"pair \(lower, upper\).*tuple\(zip\(\*bounds\)\)"):
        minimize(distance, torch.zeros(3), bounds=PAIRS)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match=r"is a tuple of 2, and x0 has 1 variable with 3 numbers: .*tuple\(zip\(\*pairs\)\)"):
        minimize(distance, torch.zeros(3), bounds=PAIRS[:2])  # type: ignore[arg-type]


def test_only_public_names_are_listed() -> None:
    assert dir(nonsmooth) == sorted(nonsmooth.__all__)
