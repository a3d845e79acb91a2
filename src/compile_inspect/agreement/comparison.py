"""Compare one prepared variant with eager at every point."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.agreement.assumptions import find_assumptions
from compile_inspect.agreement.coverage import not_probed
from compile_inspect.agreement.observation import at_state, observe
from compile_inspect.agreement.reference import Point, Reference, listed, make_reference
from compile_inspect.agreement.repetition import repeat
from compile_inspect.agreement.values import Judgment
from compile_inspect.records.agreement import Difference, DifferenceKind, Measured, Verdict
from compile_inspect.variants import Prepared, Task
from compile_inspect.variants.inductor import FROZEN

RECOMPILE_SECONDS = 20.0
"""A variant that took longer to build is not given inputs for which it would have to be built again."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing a variant with eager."""

    verdict: Verdict
    reason: str
    """One sentence."""
    assumptions: tuple[str, ...] = ()
    """What must stay as it is for the variant to stay right, each for example `scale stays 2.0`."""
    differences: tuple[Difference, ...] = ()
    measured: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()
    wrong_at: Point | None = None
    """The first point at which it is wrong."""
    not_probed: tuple[str, ...] = ()
    """What was not verified, one sentence each."""

    @property
    def agrees(self) -> bool:
        """Whether it is right at all points, under its assumptions."""
        return self.verdict in (Verdict.AGREES, Verdict.ASSUMES)


def compare(
    task: Task, prepared: Prepared, *, samples: int = 3, seed: int = 0, reference: Reference | None = None
) -> Comparison:
    """Compare a prepared variant with eager, values, gradients and effects, at given and generated inputs.

    A `reference` made by `make_reference` serves any number of variants of one task.
    """
    reference = make_reference(task, samples=samples, seed=seed) if reference is None else reference
    undecided = undecidable(reference)
    if undecided is not None:
        return undecided
    with at_state(task, reference.state):
        return _compare(prepared, reference)


def undecidable(reference: Reference) -> Comparison | None:
    """The verdict on every variant where eager gives nothing to compare with; None where it does."""
    if reference.declined is not None:
        return Comparison(Verdict.REFUSED, f"results of this kind cannot be compared: {reference.declined}")
    if reference.unsteady:
        names = listed(list(reference.unsteady))
        reason = f"eager itself returns a different {names} when it runs again from the same seed, so nothing can be proven"
        return Comparison(Verdict.NONDETERMINISTIC, reason)
    return None


def _compare(prepared: Prepared, reference: Reference) -> Comparison:
    differences: list[Difference] = []
    measured: list[Measured] = []
    notes: list[str] = []
    incomparable: list[str] = []
    left_out: list[Point] = []
    wrong_at = None
    compared = 0
    for point in reference.points:
        if not point.as_example and _takes_one_form(prepared, point):
            left_out.append(point)
            if point.given:
                notes.append(f"{point.name} were left out: the variant takes only inputs like the example")
            continue
        found = judged(reference, prepared, point, closely=wrong_at is None)
        compared += 1
        differences += found.differences
        measured += found.measured
        notes += found.notes
        incomparable += found.incomparable
        if found.differences and wrong_at is None:
            wrong_at = point
    calls = ""
    if not differences and not incomparable:
        differences, calls = repeat(reference, prepared)
    assumptions: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    if differences:
        verdict, reason = Verdict.DISAGREES, f"it does not agree with eager: {differences[0]}"
    elif incomparable:
        names = ", ".join(dict.fromkeys(incomparable))
        verdict, reason = (
            Verdict.RANDOM,
            f"random, cannot be compared: {names} were drawn from different random numbers than eager's",
        )
    else:
        assumptions = find_assumptions(reference, prepared)
        if prepared.variant.lends_results(reference.task):
            assumptions = (*assumptions, "every result is used or copied before the next call")
        unseen = not_probed(reference, prepared, left_out, calls)
        verdict, reason = Verdict.AGREES, f"it agrees with eager at {compared} input{'s' if compared != 1 else ''}"
        if assumptions:
            verdict = Verdict.ASSUMES
            reason = f"it agrees with eager as long as {', and '.join(assumptions)}"
    return Comparison(
        verdict, reason, assumptions, tuple(differences), _largest(measured), tuple(dict.fromkeys(notes)), wrong_at, unseen
    )


def _takes_one_form(prepared: Prepared, point: Point) -> bool:
    """Whether a variant takes only inputs like the example, or takes so long to compile that it gets no others."""
    return FROZEN[0] in prepared.variant.assumes or (not point.given and prepared.build_seconds > RECOMPILE_SECONDS)


def judged(reference: Reference, prepared: Prepared, point: Point, *, closely: bool = True) -> Judgment:
    """Run a variant at a point and judge it."""
    seen = observe(reference.task, prepared.run, point.inputs, point.seed)
    checks = {DifferenceKind.ALIASING}
    if point.as_example or point.given:  # for layouts that we made up, the result may have any layout
        checks.add(DifferenceKind.STRIDES)
    if prepared.program is None:
        checks.add(DifferenceKind.AUTOGRAD)
    return reference.judge(seen, point, closely=closely, exact_kernels=prepared.variant.exact, checks=checks)


def _largest(measured: list[Measured]) -> tuple[Measured, ...]:
    """For every value the point where the error is largest relative to what is allowed."""
    worst: dict[str, Measured] = {}
    for item in measured:
        if item.name not in worst or item.error * worst[item.name].allowed > worst[item.name].error * item.allowed:
            worst[item.name] = item
    return tuple(worst.values())
