"""The start of a run: the first point, the units, the state."""

from __future__ import annotations

import sys

import numpy as np
import torch

from nonsmooth.arrays.rows import MAX_DENSE_VARIABLES
from nonsmooth.errors import ProblemError
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.evaluate.evaluator import EQUALITY, INEQUALITY, OBJECTIVE, natural_scales
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory
from nonsmooth.hessian.device import DevicePairs
from nonsmooth.kinks.bundle import Bundle, default_capacity
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.saved_state import SavedState
from nonsmooth.loop.state import State
from nonsmooth.options import Options
from nonsmooth.report.clock import Phase
from nonsmooth.structure import UNSEEN, UNWATCHED
from nonsmooth.thresholds import THRESHOLDS


def first_trial(evaluator: Evaluator, options: Options, saved_state: SavedState | None) -> tuple[Trial, Reference]:
    """The start in the units of the run, which are chosen here, and the reference for certificates.

    Exceptions of the functions propagate unchanged; values and gradients that are not finite raise a `ProblemError`.
    """
    try:
        start = _evaluate_start(evaluator)
        finite = start.finite
        if finite:
            _ = start.reading  # this also computes the gradient
        differentiable = start.differentiable if finite else False
    except FunctionFailed as failure:
        raise failure.original from None
    if not finite:
        what = "the objective" if not np.isfinite(start.f) else "a constraint"
        raise ProblemError(f"the value of {what} at x0 is not finite; start at a point where all functions are defined")
    if not differentiable:
        raise ProblemError("a gradient at x0 is not finite; start at a nearby point where all functions are differentiable")
    check_graph(evaluator, start)
    start = _watch_if_needed(evaluator, start)
    with evaluator.clock.phase(Phase.UNITS):
        users, natural = start, natural_scales(start)
    if saved_state is not None:
        if saved_state.scales is not None:
            saved_state.check_sizes(start)
            start = evaluator.use_scales(saved_state.scales, start)
        natural = evaluator.scales if options.scales_automatically else natural
    elif options.scales_automatically:
        start = start if natural is None else evaluator.use_scales(natural, start)
    elif np.isfinite(options.prescaling_threshold):
        start = evaluator.choose_scales(start, threshold=options.prescaling_threshold)
    units = None if natural is None else natural.variables
    return start, Reference(natural, users.x if units is None else users.x / units)


def begin(at: Trial, evaluator: Evaluator, options: Options, incumbents: Incumbents) -> State:
    """A fresh state at a point."""
    variables = evaluator.variables
    capacity = options.gradient_samples or default_capacity(variables.size)
    state = State(
        current=at,
        weight=1.0 / options.penalty_parameter,
        hessian=initial_hessian(at, options, variables.device),
        bundle=Bundle(variables.size, capacity),
        pieces=ConstraintPieces(variables.size, capacity),
        incumbents=incumbents,
        generator=np.random.default_rng(options.seed),
        form=variables.shaped,
        scales=evaluator.scales,
        evaluations=evaluator.costs.values,
    )
    if evaluator.structured:
        state.structured = evaluator.structured = has_visible_kinks(at)
        evaluator.constraints_structured = at.reading is not None and at.reading.constraints is not None
        if not state.structured:
            at.forget_reading()
    if options.initial_pairs is not None or (options.initial_hessian is not None and not options.scale_initial_hessian):
        state.hessian_updates = 1
    return state


def initial_hessian(start: Trial, options: Options, device: torch.device) -> InverseHessian:
    """The initial matrix; by default a multiple of the identity whose first step is not much longer than x.

    With many variables on a GPU, the pairs are stored on the GPU too.
    """
    size = len(start.x)
    reach = THRESHOLDS.first_step * max(1.0, float(np.linalg.norm(start.x)))
    steepness = float(np.linalg.norm(start.gradient))
    gamma = reach / steepness if options.scale_initial_hessian and steepness > reach else 1.0
    if options.memory is None and (size <= THRESHOLDS.max_full_memory or options.initial_hessian is not None):
        initial = options.initial_hessian
        if initial is not None and np.shape(initial) != (size, size):
            raise ProblemError(f"initial_hessian has shape {np.shape(initial)}, but the problem has {size} variables")
        return FullMemory(size, initial, scale=options.scale_initial_hessian, gamma=gamma)
    pairs = options.memory or THRESHOLDS.default_pairs
    scale, fixed = options.scale_initial_hessian, options.fixed_scaling
    device_pairs = DevicePairs(pairs, size, device) if device.type == "cuda" and size > MAX_DENSE_VARIABLES else None
    memory = LimitedMemory(size, pairs=pairs, scale=scale, fixed_scaling=fixed, gamma=gamma, storage=device_pairs)
    if options.initial_pairs is not None:
        steps, changes, gamma = options.initial_pairs
        if np.ndim(steps) != 2 or np.shape(steps)[1:] != (size,) or np.shape(steps) != np.shape(changes):
            raise ProblemError(
                f"initial_pairs has shapes {np.shape(steps)} and {np.shape(changes)}; both must be pairs × {size}"
            )
        memory.restore({"steps": steps, "changes": changes, "gamma": gamma, "updates": len(steps)})
    return memory


def check_graph(evaluator: Evaluator, start: Trial) -> None:
    """Raise `ProblemError` for functions that depend on x but are detached from it in the autograd graph."""
    if evaluator.problem.gradients or not evaluator.missing_gradients:
        return
    direction = np.random.default_rng(0).standard_normal(len(start.x))
    shifted = start.x + THRESHOLDS.least_magnitude * np.maximum(1.0, np.abs(start.x)) * direction

    try:
        other = evaluator(shifted)
    except FunctionFailed:
        return
    assert evaluator.forms is not None
    (inequalities, equalities), first = evaluator.forms, start.equalities

    def parts(trial: Trial) -> dict[str, object]:
        own, others = trial.c[: equalities.size], trial.c[first : first + inequalities.size]
        return {OBJECTIVE: trial.f, INEQUALITY: others, EQUALITY: own}

    before, after = parts(start), parts(other)
    for name in evaluator.missing_gradients:
        if not np.array_equal(before[name], after[name]):  # type: ignore[arg-type]
            raise ProblemError(
                f"{name} changes with x but has no gradient; return tensors computed from x, without "
                ".item(), .detach(), .numpy() or no_grad, or give gradients yourself with gradients=True"
            )


MIN_EVALUATIONS_FOR_STRUCTURE = 10
"""With fewer, reading the program does not pay: it costs one evaluation."""


def may_use_structure(evaluator: Evaluator, options: Options) -> bool:
    """Whether to read the kinks of f from the program; the steps of such models are always full steps."""
    plain = options.initial_step == 1.0 and not options.normalize_direction and options.first_fallback == 0
    plain = plain and options.max_evaluations >= MIN_EVALUATIONS_FOR_STRUCTURE
    return options.structure == "auto" and plain and not evaluator.problem.gradients


def _evaluate_start(evaluator: Evaluator) -> Trial:
    """The start, evaluated while watching for data that graphs do not store, unless something may be compiled.

    Compiled functions hide their kinks, and watching would make torch.compile recompile them.
    """
    evaluator.watching = evaluator.structured and "torch._dynamo" not in sys.modules
    try:
        return evaluator(evaluator.variables.start)
    except FunctionFailed:
        if not evaluator.watching:
            raise
        evaluator.watching = False  # the function may fail only when it is watched
        return evaluator(evaluator.variables.start)


def _watch_if_needed(evaluator: Evaluator, start: Trial) -> Trial:
    """The start, evaluated again while watching for data that graphs do not store, if kinks need it and were not watched."""
    reading = start.reading
    if reading is None or evaluator.watching:
        return start
    incomplete = any(UNSEEN in reason for reason in (*reading.hidden, reading.unread or ""))
    if not (incomplete or len(reading.terms) or reading.constraints is not None):
        return start
    if any(UNSEEN not in reason for reason in reading.hidden) or any(reason != UNWATCHED for reason in reading.assumptions):
        return start
    evaluator.watching = True
    try:
        return evaluator(start.x)
    except FunctionFailed:  # compiled functions may fail when they are watched
        evaluator.watching = False
        if reading.assumptions:  # the kinks are known without watching
            return start
        evaluator.structured = False
        start.forget_reading()
        return start


def has_visible_kinks(start: Trial) -> bool:
    """Whether f or a constraint has visible kinks, and f has no hidden ones."""
    reading = start.reading
    complete = reading is not None and not reading.hidden
    return complete and reading is not None and (len(reading.terms) > 0 or reading.constraints is not None)
