"""`verify`: every variant of a function against eager."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.assumptions import find_assumptions
from compile_inspect.agreement.blame import find_blame
from compile_inspect.agreement.comparison import Comparison, compare, undecidable
from compile_inspect.agreement.inputs import cloned
from compile_inspect.agreement.observation import observe, preserved_state, seeded
from compile_inspect.agreement.reference import Reference, make_reference
from compile_inspect.agreement.second_derivatives import TwiceDifferentiated
from compile_inspect.agreement.stages import compiled_with
from compile_inspect.eager import require_eager
from compile_inspect.errors import TargetError
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.target import Target
from compile_inspect.variants import Prepared, Refused, Task, Variant, default_variants, named_variants
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
    special ones (NaN, infinities, zeros, huge and subnormal numbers, ties, other strides, one tensor given twice), and
    with the further inputs of a `Target`. With `samples=0` only the inputs given are used. `variants` are names (see
    `compile_inspect.variant_names`) or `Variant` objects; left out, all that are worth trying on the device.
    `gradients=None` means: where eager gives them. `second_derivatives=True` compares those as well. Inputs,
    parameters, buffers and random generators are left as they were. Where eager itself fails at the inputs given, and no
    variant hides that, `TargetError` says so.

    >>> import torch
    >>> print(verify(lambda x: x.sin().sum(), torch.ones(3), variants=["aot_eager"]).variant("aot_eager").reason)
    it agrees with eager at 12 inputs
    """
    if samples < 0:
        raise TargetError(f"samples must not be negative, and is {samples}")
    task = _task(function, args, kwargs, gradients, second_derivatives, seed)
    chosen = default_variants(task) if variants is None else named_variants(variants)
    reference = make_reference(task, samples=samples, seed=seed, layouts=True)
    found = [_verified(reference, item, seed, blame) for item in chosen if item.name != "eager"]
    if reference.points[0].eager.error is not None and all(item.verdict is not Verdict.DISAGREES for item in found):
        require_eager(Target(task.function, task.args, task.kwargs))  # every variant raises too: nothing was compared
    if any(isinstance(item, Compiled) for item in chosen):
        found = _with_missing_guards(reference, found, {item.name for item in chosen if isinstance(item, Compiled)}, seed)
    return Agreement(
        function=task.name,
        gradients=task.gradients,
        points=tuple(point.name for point in reference.points),
        variants=tuple(found),
        reference=reference.has_float64,
        notes=tuple(reference.notes),
    )


def _task(
    function: Callable[..., Any] | Target, args: Any, kwargs: Any, gradients: bool | None, twice: bool, seed: int
) -> Task:
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs: leave out the others")
        target = function
    else:
        target = Target(function, args, kwargs)
    if twice and gradients is False:
        raise TargetError("second derivatives were asked for and gradients refused: leave out one of the two")
    wanted = True if twice else target.gradients if gradients is None else gradients
    task = Task.of(replace(target, gradients=wanted))
    if wanted is None and not task.gradients and _gives_gradients(task, seed):
        task = replace(task, gradients=True)
    return TwiceDifferentiated.made_from(task) if twice else task


def _gives_gradients(task: Task, seed: int) -> bool:
    """Whether eager's result can be differentiated, called as it is here and now."""
    import torch

    if not torch.is_grad_enabled() or not any(item.differentiable and item.now().requires_grad for item in task.held):
        return False
    with untouched(task, seed) as scratch:
        try:
            result = scratch.function(*scratch.args, **scratch.kwargs)
        except Exception:
            return False
    leaves = torch_private.flatten(result)[0]
    return any(torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in leaves)


def _verified(reference: Reference, item: Variant, seed: int, blame: bool) -> VariantAgreement:
    task = reference.task
    undecided = undecidable(reference)
    if undecided is not None:
        return VariantAgreement(item.name, undecided.verdict, undecided.reason)
    raised = reference.points[0].eager.error
    try:
        with untouched(task, seed) as scratch:
            prepared = item.prepare(scratch)
    except Refused as refusal:
        if raised is not None:
            return _raising(item, raised, refusal)
        return VariantAgreement(item.name, Verdict.REFUSED, str(refusal), blame=_blame_of_refusal(reference, item, blame))
    comparison = compare(task, prepared, reference=reference)
    notes = comparison.notes
    if comparison.verdict is Verdict.RANDOM:
        other = _with_eager_random_numbers(reference, item, seed)
        if other is not None and other.verdict is not Verdict.RANDOM:
            comparison = other
            notes = (*other.notes, "compared with fallback_random, so that Inductor draws eager's random numbers")
    culprit = None
    if blame and comparison.wrong_at is not None:
        with untouched(task, seed) as scratch:
            culprit = find_blame(reference, item, prepared, comparison.wrong_at, scratch)
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
        prepared.eager_because,
    )


def _raising(item: Variant, raised: str, refusal: Refused) -> VariantAgreement:
    """Where eager raises at the example, a variant agrees if it raises the same; any other refusal is one."""
    cause = refusal.__cause__
    if cause is not None and (one_line(cause) == raised or raised.partition(": ")[2] in str(cause)):
        unseen = ("results: eager gives none at the example",)
        return VariantAgreement(item.name, Verdict.AGREES, f"it raises, as eager does: {raised}", not_probed=unseen)
    reason = f"eager raises {raised} at the example, and the variant was refused for another reason: {refusal}"
    return VariantAgreement(item.name, Verdict.REFUSED, reason)


@contextlib.contextmanager
def untouched(task: Task, seed: int) -> Iterator[Task]:
    """The task with inputs of its own; whatever is done with it, state and generators are put back."""
    args, kwargs = cloned((task.args, task.kwargs))
    with preserved_state(task), seeded(seed):
        yield replace(task, args=args, kwargs=kwargs)


def _with_eager_random_numbers(reference: Reference, item: Variant, seed: int) -> Comparison | None:
    """Inductor told to draw from eager's generators, which is slower and so not its default."""
    if not isinstance(item, Compiled) or item.backend != "inductor" or item.mode not in (None, "default"):
        return None
    task = reference.task
    with untouched(task, seed) as scratch:
        compiled = compiled_with(scratch, "inductor", dynamic=item.dynamic, options={"fallback_random": True})
        prepared = Prepared(item, lambda *args, **kwargs: task.run(compiled, args, kwargs), None, 0.0)
        return compare(task, prepared, reference=reference)


def _with_missing_guards(
    reference: Reference, found: list[VariantAgreement], names: set[str], seed: int
) -> list[VariantAgreement]:
    """What torch.compile freezes without a guard: shown by Dynamo alone, for guards are its own and no backend's."""
    task = reference.task
    right = [item.name for item in found if item.name in names and item.verdict is Verdict.AGREES]
    if not right or reference.points[0].eager.error is not None:
        return found
    with untouched(task, seed) as scratch:
        compiled = compiled_with(scratch, "eager")
        prepared = Prepared(Compiled("eager"), lambda *args, **kwargs: task.run(compiled, args, kwargs), None, 0.0)
        observe(task, prepared.run, reference.points[0].inputs, seed)  # compiled before anything changes
        assumptions = find_assumptions(reference, prepared, guarded=True)
    if not assumptions:
        return found
    reason = f"it agrees with eager as long as {', and '.join(assumptions)}"
    return [
        replace(item, verdict=Verdict.ASSUMES, reason=reason, assumptions=assumptions) if item.name in right else item
        for item in found
    ]


def _blame_of_refusal(reference: Reference, item: Variant, blame: bool) -> Any:
    """Where a compiler raised: the stage and the operation, for torch.compile only."""
    if not blame or not isinstance(item, Compiled) or item.refusal(reference.task) is not None:
        return None
    if item.backend == "inductor" and not torch_private.cpp_compiler():
        return None  # nothing that is compiled is to blame
    with untouched(reference.task, reference.points[0].seed) as scratch:
        return find_blame(reference, item, None, reference.points[0], scratch)
