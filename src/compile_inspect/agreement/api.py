"""`verify` compares every variant of a function with eager."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.assumptions import find_assumptions
from compile_inspect.agreement.blame import find_blame
from compile_inspect.agreement.comparison import Comparison, compare, verdict_without_comparison
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.agreement.reference import Reference, make_reference
from compile_inspect.agreement.run_outcome import observe, preserve_state, seed_generators
from compile_inspect.agreement.second_derivatives import TwiceDifferentiated
from compile_inspect.agreement.stage_search import compile_with
from compile_inspect.eager import require_eager
from compile_inspect.errors import TargetError
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.target import Target
from compile_inspect.variants import Prepared, RefusalError, Task, Variant, default_variants, named_variants
from compile_inspect.variants.base import one_line
from compile_inspect.variants.compiled import Compiled


def verify(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    variants: str | Sequence[str | Variant] | None = None,
    gradients: bool | None = None,
    second_derivatives: bool = False,
    samples: int = 3,
    seed: int = 0,
    blame: bool = True,
    **kwargs: Any,
) -> Agreement:
    """Compare every variant with eager: values, gradients, and what is changed in place.

    `function` is called with `args` and `kwargs`, with `samples` generated inputs of the same shapes and dtypes, with
    special ones (NaN, infinities, zeros, huge and subnormal numbers, ties, other strides, the same tensor passed twice),
    and with the further inputs of a `Target`. With `samples=0` only your own inputs are used. `variants` are names (see
    `compile_inspect.variant_names`) or `Variant` objects; by default, all that are worth trying on the device.
    `gradients=None` compares gradients where eager has them. `second_derivatives=True` compares second derivatives too.
    Inputs, parameters, buffers and random generators are restored afterward. If eager itself fails at your inputs and
    no variant hides that, `verify` raises `TargetError`.

    >>> import torch
    >>> print(verify(lambda x: x.sin().sum(), torch.ones(3), variants=["aot_eager"]).variant("aot_eager").reason)
    it agrees with eager at 12 inputs
    """
    if samples < 0:
        raise TargetError(f"samples must not be negative, but is {samples}")
    task = _task(function, args, kwargs, gradients, second_derivatives, seed)
    candidates = default_variants(task) if variants is None else named_variants(variants)
    reference = make_reference(task, samples=samples, seed=seed, layouts=True)
    results = [_verify_variant(reference, item, seed, blame) for item in candidates if item.name != "eager"]
    if reference.points[0].eager.error is not None and all(item.verdict is not Verdict.DISAGREES for item in results):
        require_eager(Target(task.function, task.args, task.kwargs))  # every variant raises too: nothing was compared
    if any(isinstance(item, Compiled) for item in candidates):
        results = _add_unguarded_assumptions(
            reference, results, {item.name for item in candidates if isinstance(item, Compiled)}, seed
        )
    return Agreement(
        function=task.name,
        gradients=task.gradients,
        points=tuple(point.name for point in reference.points),
        variants=tuple(results),
        has_reference=reference.has_float64,
        notes=tuple(reference.notes),
    )


def _task(
    function: Callable[..., Any] | Target, args: Any, kwargs: Any, gradients: bool | None, second_derivatives: bool, seed: int
) -> Task:
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs: pass it alone")
        target = function
    else:
        target = Target(function, args, kwargs)
    if second_derivatives and gradients is False:
        raise TargetError("second_derivatives=True needs gradients: leave out gradients=False")
    gradients_required = True if second_derivatives else target.gradients if gradients is None else gradients
    task = Task.of(replace(target, gradients=gradients_required))
    if gradients_required is None and not task.gradients and _is_differentiable(task, seed):
        task = replace(task, gradients=True)
    return TwiceDifferentiated.from_task(task) if second_derivatives else task


def _is_differentiable(task: Task, seed: int) -> bool:
    """Whether eager's result can be differentiated, called in the current grad mode."""
    import torch

    if not torch.is_grad_enabled() or not any(item.differentiable and item.now().requires_grad for item in task.held_tensors):
        return False
    with scratch_task(task, seed) as scratch:
        try:
            result = scratch.function(*scratch.args, **scratch.kwargs)
        except Exception:
            return False
    leaves = torch_private.flatten(result)[0]
    return any(torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in leaves)


def _verify_variant(reference: Reference, item: Variant, seed: int, blame: bool) -> VariantAgreement:
    task = reference.task
    early_verdict = verdict_without_comparison(reference)
    if early_verdict is not None:
        return VariantAgreement(item.name, early_verdict.verdict, early_verdict.reason)
    eager_error = reference.points[0].eager.error
    try:
        with scratch_task(task, seed) as scratch:
            prepared = item.prepare(scratch)
    except RefusalError as refusal:
        if eager_error is not None:
            return _compare_exceptions(item, eager_error, refusal)
        return VariantAgreement(item.name, Verdict.REFUSED, str(refusal), blame=_blame_of_refusal(reference, item, blame))
    comparison = compare(task, prepared, reference=reference)
    notes = comparison.notes
    if comparison.verdict is Verdict.RANDOM:
        other = _compare_with_eager_random_numbers(reference, item, seed)
        if other is not None and other.verdict is not Verdict.RANDOM:
            comparison = other
            notes = (*other.notes, "compared with fallback_random, so that Inductor draws eager's random numbers")
    culprit = None
    if blame and comparison.failing_point is not None:
        with scratch_task(task, seed) as scratch:
            culprit = find_blame(reference, item, prepared, comparison.failing_point, scratch)
    return VariantAgreement(
        item.name,
        comparison.verdict,
        comparison.reason,
        comparison.differences,
        comparison.assumptions,
        comparison.measured,
        notes,
        culprit,
        comparison.not_probed,
        prepared.eager_reason,
    )


def _compare_exceptions(item: Variant, eager_error: str, refusal: RefusalError) -> VariantAgreement:
    """Where eager raises at the example, a variant agrees if it raises the same; otherwise it counts as refused."""
    cause = refusal.__cause__
    if cause is not None and (one_line(cause) == eager_error or eager_error.partition(": ")[2] in str(cause)):
        gaps = ("results: eager gives none at the example",)
        return VariantAgreement(item.name, Verdict.AGREES, f"it raises, as eager does: {eager_error}", not_probed=gaps)
    reason = f"eager raises {eager_error} at the example, and the variant was refused for another reason: {refusal}"
    return VariantAgreement(item.name, Verdict.REFUSED, reason)


@contextlib.contextmanager
def scratch_task(task: Task, seed: int) -> Iterator[Task]:
    """Yield the task with its own copies of the inputs; state and random generators are restored afterward."""
    args, kwargs = clone_inputs((task.args, task.kwargs))
    with preserve_state(task), seed_generators(seed):
        yield replace(task, args=args, kwargs=kwargs)


def _compare_with_eager_random_numbers(reference: Reference, item: Variant, seed: int) -> Comparison | None:
    """Compare with Inductor drawing from eager's generators, which is slower and so not its default."""
    if not isinstance(item, Compiled) or item.backend != "inductor" or item.mode not in (None, "default"):
        return None
    task = reference.task
    with scratch_task(task, seed) as scratch:
        compiled = compile_with(scratch, "inductor", dynamic=item.dynamic, options={"fallback_random": True})
        prepared = Prepared(item, lambda *args, **kwargs: task.run(compiled, args, kwargs), None, 0.0)
        return compare(task, prepared, reference=reference)


def _add_unguarded_assumptions(
    reference: Reference, results: list[VariantAgreement], names: set[str], seed: int
) -> list[VariantAgreement]:
    """Add what torch.compile freezes without a guard. Guards belong to Dynamo, so its eager backend is enough to find out."""
    task = reference.task
    right = [item.name for item in results if item.name in names and item.verdict is Verdict.AGREES]
    if not right or reference.points[0].eager.error is not None:
        return results
    with scratch_task(task, seed) as scratch:
        compiled = compile_with(scratch, "eager")
        prepared = Prepared(Compiled("eager"), lambda *args, **kwargs: task.run(compiled, args, kwargs), None, 0.0)
        observe(task, prepared.run, reference.points[0].inputs, seed)  # compiled before anything changes
        assumptions = find_assumptions(reference, prepared, guarded=True)
    if not assumptions:
        return results
    reason = f"it agrees with eager as long as {', and '.join(assumptions)}"
    return [
        replace(item, verdict=Verdict.ASSUMES, reason=reason, assumptions=assumptions) if item.name in right else item
        for item in results
    ]


def _blame_of_refusal(reference: Reference, item: Variant, blame: bool) -> Any:
    """The stage and operation at which torch.compile raised; None for other variants."""
    if not blame or not isinstance(item, Compiled) or item.refusal(reference.task) is not None:
        return None
    if item.backend == "inductor" and not torch_private.cpp_compiler():
        return None  # without a C++ compiler, nothing that is compiled is to blame
    with scratch_task(reference.task, reference.points[0].seed) as scratch:
        return find_blame(reference, item, None, reference.points[0], scratch)
