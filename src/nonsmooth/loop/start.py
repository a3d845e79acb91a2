"""What a run begins with: the quasi-Newton matrix, and what violation to expect."""

from __future__ import annotations

import numpy as np
import torch

from nonsmooth.arrays.norm import norm
from nonsmooth.arrays.rows import LARGE
from nonsmooth.errors import ProblemError
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.evaluate.evaluator import EQUALITY, INEQUALITY, OBJECTIVE
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory
from nonsmooth.hessian.device import DevicePairs
from nonsmooth.options import Options

FULL_MEMORY_LIMIT = 2000
LARGE_PROBLEM_PAIRS = 20
RUNAWAY = 1e6
"""A violation so many times as large as constraints could have at the start is that of a run that has left its problem behind:
the objective falls faster than they grow."""


def initial_hessian(start: Trial, options: Options, device: torch.device) -> InverseHessian:
    """The matrix to start with; without a better idea, one whose first step is not much longer than x.

    Where there are many variables and they are on a GPU, the pairs lie there too.
    """
    size = len(start.x)
    reach = 10.0 * max(1.0, float(np.linalg.norm(start.x)))
    gamma = min(1.0, reach / max(float(np.linalg.norm(start.gradient)), 1e-300)) if options.scale_initial_hessian else 1.0
    if options.memory is None and (size <= FULL_MEMORY_LIMIT or options.initial_hessian is not None):
        initial = options.initial_hessian
        if initial is not None and np.shape(initial) != (size, size):
            raise ProblemError(f"initial_hessian has shape {np.shape(initial)}, the problem {size} variables")
        return FullMemory(size, initial, scale=options.scale_initial_hessian, gamma=gamma)
    pairs = options.memory or LARGE_PROBLEM_PAIRS
    scale, fixed = options.scale_initial_hessian, options.fixed_scaling
    kept = DevicePairs(pairs, size, device) if device.type == "cuda" and size > LARGE else None
    memory = LimitedMemory(size, pairs=pairs, scale=scale, fixed_scaling=fixed, gamma=gamma, kept=kept)
    if options.initial_pairs is not None:
        steps, changes, gamma = options.initial_pairs
        if np.ndim(steps) != 2 or np.shape(steps)[1:] != (size,) or np.shape(steps) != np.shape(changes):
            raise ProblemError(
                f"initial_pairs has shapes {np.shape(steps)} and {np.shape(changes)}; both must be pairs × {size}"
            )
        memory.restore({"steps": steps, "changes": changes, "gamma": gamma, "updates": len(steps)})
    return memory


def far_violation(start: Trial) -> float:
    """The violation beyond which a run has left its problem behind, in the units of the constraints."""
    usual = float(np.abs(start.c).sum()) + (1.0 + norm(start.x)) * float(np.linalg.norm(start.jacobian, axis=1).sum())
    return RUNAWAY * usual if usual > 0 else np.inf


def check_graph(evaluator: Evaluator, start: Trial) -> None:
    """Refuse functions that depend on x but are cut off from it for automatic differentiation."""
    if evaluator.problem.gradients or not evaluator.cut_off:
        return
    moved = start.x + 1e-3 * np.maximum(1.0, np.abs(start.x)) * np.random.default_rng(0).standard_normal(len(start.x))
    try:
        other = evaluator(moved)
    except FunctionFailed:
        return
    assert evaluator.forms is not None
    (inequalities, equalities), first = evaluator.forms, start.equalities

    def parts(trial: Trial) -> dict[str, object]:
        own, others = trial.c[: equalities.size], trial.c[first : first + inequalities.size]
        return {OBJECTIVE: trial.f, INEQUALITY: others, EQUALITY: own}

    before, after = parts(start), parts(other)
    for name in evaluator.cut_off:
        if not np.array_equal(before[name], after[name]):  # type: ignore[arg-type]
            raise ProblemError(
                f"{name} changes with x but has no gradient; return tensors computed from x, without "
                ".item(), .detach(), .numpy() or no_grad, or give gradients yourself with gradients=True"
            )
