"""Draw the figure of docs/explanation/what-the-solver-sees.md: its first example, solved with and without visible kinks.

    python docs/draw_visible_kinks.py

The flat parts of the solution are where kinks are active. The errors are those of the best points so far.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib import pyplot as plt
from torch import Tensor

from nonsmooth import State, minimize

FIGURE = Path(__file__).parent / "images" / "visible-kinks.svg"
SMALLEST_ERROR = 1e-12
"""Smaller errors are drawn at this value."""


def errors(structure: str, function: object, start: Tensor, best: float) -> tuple[list[int], list[float]]:
    """How far the iterates of a run are above the best objective, by evaluations."""
    evaluations: list[int] = []
    above: list[float] = []

    def note(state: State) -> None:
        evaluations.append(state.evaluations)
        above.append(max(state.f - best, SMALLEST_ERROR))

    minimize(function, start, structure=structure, compile="never", callback=note)  # type: ignore[arg-type]
    return evaluations, list(np.minimum.accumulate(above))


def main() -> None:
    """Draw it."""
    mpl.rcParams.update({"svg.hashsalt": "kinks", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = torch.tensor([0.0, 2.0, -1.0, 1.0], dtype=torch.float64).repeat_interleave(20)
    signal = steps + 0.2 * torch.randn(80, dtype=torch.float64)

    def total_variation(x: Tensor) -> Tensor:
        return 0.5 * (x - signal).square().sum() + (x[1:] - x[:-1]).abs().sum()

    start = torch.zeros(80, dtype=torch.float64)
    result = minimize(total_variation, start, compile="never")
    answer = result.x.numpy()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.9))
    left.plot(signal, ".", color="0.65", markersize=4, label="signal")
    left.step(np.arange(80), answer, where="mid", color="tab:blue", label="solution")
    jumps = np.nonzero(np.diff(answer))[0]
    left.plot(jumps + 0.5, (answer[jumps] + answer[jumps + 1]) / 2, "|", color="tab:red", markersize=14, label="jumps")
    left.set_title(f"{result.structure.terms} kinks, {result.structure.exact} active: where the signal is flat", fontsize=9)
    left.set_xlabel("index")
    left.legend(frameon=False, fontsize=8)
    for structure, name, color in (("auto", "visible kinks", "tab:blue"), ("off", "detected at trial points", "tab:orange")):
        evaluations, above = errors(structure, total_variation, start, result.f)
        right.step(evaluations, above, where="post", color=color, label=name)
        right.plot(evaluations[-1], above[-1], "o", color=color, markersize=4)
    right.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="objective above the best value")
    right.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
