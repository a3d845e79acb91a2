"""Pictures of runs."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from black_box import minimize
from nonsmooth import NonsmoothError, Result
from nonsmooth.report.plotting import objective, plot

pytest.importorskip("matplotlib")


def rosenbrock(x: Tensor) -> tuple[Tensor, Tensor, None]:
    value = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    return value, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None


@pytest.fixture(scope="module")
def result() -> Result:
    return minimize(rosenbrock, torch.tensor([3.3, -0.7], dtype=torch.float64))


def with_history(result: Result, **columns: Any) -> Result:
    return dataclasses.replace(result, history=dataclasses.replace(result.history, **columns))


def panel(figure: Any, title: str) -> Any:
    (found,) = [axes for axes in figure.axes if axes.get_title() == title]
    return found


def test_there_are_four_panels_with_the_history(result: Result) -> None:
    figure = plot(result)
    assert len(figure.axes) == 4
    objective_panel, violation, stationarity, steps = figure.axes
    assert [axes.get_title() for axes in figure.axes[1:]] == ["violation", "stationarity", "step size"]
    assert result.best is not None
    distance = np.abs(result.history.f - result.best.f)
    drawn = objective_panel.get_lines()[0].get_ydata()
    np.testing.assert_array_equal(drawn[distance > 0], distance[distance > 0])
    assert np.isnan(drawn[distance == 0]).all()
    drawn = violation.get_lines()[0].get_ydata()
    violated = result.history.violation > 0
    np.testing.assert_array_equal(drawn[violated], result.history.violation[violated])
    np.testing.assert_array_equal(stationarity.get_lines()[0].get_ydata(), result.history.stationarity)
    drawn = steps.get_lines()[0].get_ydata()
    assert np.isnan(drawn[0])  # no step led to the start
    np.testing.assert_array_equal(drawn[result.history.step > 0], result.history.step[result.history.step > 0])
    assert [axes.get_yscale() for axes in figure.axes[:3]] == ["log", "log", "log"]
    assert f"f = {result.f:.8g}" in figure.get_suptitle()
    assert f"{result.iterations} iterations" in figure.get_suptitle()


def test_the_start_alone_can_be_drawn() -> None:
    result = minimize(rosenbrock, torch.tensor([0.3, -0.7], dtype=torch.float64), max_iterations=0)
    figure = plot(result)
    assert figure.axes[0].get_lines()[0].get_ydata() == pytest.approx([6.81])
    assert figure.axes[1].texts[0].get_text() == "no constraint is violated"
    assert figure.axes[3].texts[0].get_text() == "no steps"


def test_null_steps_and_fallbacks_are_marked(result: Result) -> None:
    zero = np.zeros(len(result.history))
    clean = plot(with_history(result, null_steps=zero, fallback=zero)).axes[3]
    assert len(clean.get_lines()) == 1
    assert clean.get_legend() is None
    null_steps, fallback = zero.copy(), zero.copy()
    null_steps[[2, 5]], fallback[7] = 3, 2
    marked = plot(with_history(result, null_steps=null_steps, fallback=fallback)).axes[3]
    _, first, second = marked.get_lines()
    assert list(first.get_xdata()) == [2, 5]
    assert list(second.get_xdata()) == [7]
    assert [text.get_text() for text in marked.get_legend().get_texts()] == [
        "step size",
        "after null steps",
        "fallback direction",
    ]


def test_values_that_are_not_finite_or_not_positive_are_left_out(result: Result) -> None:
    odd = np.ones(len(result.history))
    odd[1], odd[2], odd[3], odd[4] = np.inf, np.nan, 0.0, 1e-9
    drawn = plot(with_history(result, stationarity=odd)).axes[2].get_lines()[0].get_ydata()
    assert drawn[0] == 1.0 and drawn[4] == 1e-9
    assert np.isnan(drawn[3])


@pytest.mark.parametrize(
    ("values", "best", "label", "drawn"),
    [
        ([9.0, 5.1, 5.001], 5.0, "objective − 5", [4.0, 0.1, 0.001]),
        ([9.0, -4.9, -4.999], -5.0, "objective + 5", [14.0, 0.1, 0.001]),
        ([9.0, 4.9, 5.001], 5.0, "|objective − 5|", [4.0, 0.1, 0.001]),
        ([5.3, 5.2, 5.1], 5.0, "objective", [5.3, 5.2, 5.1]),
        ([5.0], 5.0, "objective", [5.0]),
    ],
)
def test_the_objective_is_shifted_where_that_shows_more(
    values: list[float], best: float, label: str, drawn: list[float]
) -> None:
    name, shown = objective(np.array(values), best)
    assert name == label
    np.testing.assert_allclose(shown, drawn, rtol=1e-9)


@pytest.mark.parametrize("suffix", ["svg", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in ("png", "pdf"))])
def test_a_path_gets_the_picture(result: Result, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    assert len(result.plot(path).axes) == 4
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(beginning)
    result.plot(str(path))


def test_pyplot_is_not_touched(result: Result) -> None:
    before = "matplotlib.pyplot" in sys.modules
    result.plot()
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_matplotlib_the_message_says_what_to_install(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NonsmoothError, match="pip install matplotlib"):
        result.plot()
