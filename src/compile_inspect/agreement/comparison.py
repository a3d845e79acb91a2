"""Compare one prepared variant with eager at every point."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.agreement.assumptions import find_assumptions
from compile_inspect.agreement.coverage import find_coverage_gaps
from compile_inspect.agreement.reference import Point, Reference, join_names, make_reference
from compile_inspect.agreement.repetition import repeat
from compile_inspect.agreement.run_outcome import observe, with_state
from compile_inspect.agreement.values import Judgment
from compile_inspect.records.agreement import Difference, DifferenceKind, MeasuredError, Verdict
from compile_inspect.variants import Prepared, Task
from compile_inspect.variants.inductor import FROZEN_ASSUMPTIONS

MAX_REBUILD_SECONDS = 20.0
"""A variant that took longer to build is not built again for inputs that would require it."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing a variant with eager."""

    verdict: Verdict
    reason: str
    """One sentence."""
    assumptions: tuple[str, ...] = ()
    """What must stay as it is for the variant to stay right, each for example `scale stays 2.0`."""
    differences: tuple[Difference, ...] = ()
    measured: tuple[MeasuredError, ...] = ()
    notes: tuple[str, ...] = ()
    failing_point: Point | None = None
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
    early_verdict = verdict_without_comparison(reference)
    if early_verdict is not None:
        return early_verdict
    with with_state(task, reference.state):
        return _compare(prepared, reference)


def verdict_without_comparison(reference: Reference) -> Comparison | None:
    """The verdict on every variant where eager gives nothing to compare with; None where it does."""
    if reference.incomparable_reason is not None:
        return Comparison(Verdict.REFUSED, f"results of this kind cannot be compared: {reference.incomparable_reason}")
    if reference.nondeterministic:
        names = join_names(list(reference.nondeterministic))
        reason = f"eager itself returns a different {names} when it runs again from the same seed, so nothing can be proven"
        return Comparison(Verdict.NONDETERMINISTIC, reason)
    return None


def _compare(prepared: Prepared, reference: Reference) -> Comparison:
    differences: list[Difference] = []
    measured: list[MeasuredError] = []
    notes: list[str] = []
    incomparable: list[str] = []
    skipped_points: list[Point] = []
    failing_point = None
    compared = 0
    for point in reference.points:
        if not point.matches_example and _takes_only_example_form(prepared, point):
            skipped_points.append(point)
            if point.from_user:
                notes.append(f"{point.name} were left out: the variant takes only inputs like the example")
            continue
        judgment = judge_at(reference, prepared, point, refine=failing_point is None)
        compared += 1
        differences += judgment.differences
        measured += judgment.measured
        notes += judgment.notes
        incomparable += judgment.incomparable
        if judgment.differences and failing_point is None:
            failing_point = point
    calls = ""
    if not differences and not incomparable:
        differences, calls = repeat(reference, prepared)
    assumptions: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
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
        if prepared.variant.reuses_output_buffers(reference.task):
            assumptions = (*assumptions, "every result is used or copied before the next call")
        gaps = find_coverage_gaps(reference, prepared, skipped_points, calls)
        verdict, reason = Verdict.AGREES, f"it agrees with eager at {compared} input{'s' if compared != 1 else ''}"
        if assumptions:
            verdict = Verdict.ASSUMES
            reason = f"it agrees with eager as long as {', and '.join(assumptions)}"
    return Comparison(
        verdict, reason, assumptions, tuple(differences), _largest(measured), tuple(dict.fromkeys(notes)), failing_point, gaps
    )


def _takes_only_example_form(prepared: Prepared, point: Point) -> bool:
    """Whether a variant takes only inputs like the example, or takes so long to compile that it gets no others."""
    return FROZEN_ASSUMPTIONS[0] in prepared.variant.assumes or (
        not point.from_user and prepared.build_seconds > MAX_REBUILD_SECONDS
    )


def judge_at(reference: Reference, prepared: Prepared, point: Point, *, refine: bool = True) -> Judgment:
    """Run a variant at a point and judge it."""
    outcome = observe(reference.task, prepared.run, point.inputs, point.seed)
    checks = {DifferenceKind.ALIASING}
    if point.matches_example or point.from_user:  # for layouts that we made up, the result may have any layout
        checks.add(DifferenceKind.STRIDES)
    if prepared.program is None:
        checks.add(DifferenceKind.AUTOGRAD)
    return reference.judge(outcome, point, refine=refine, exact_kernels=prepared.variant.exact, checks=checks)


def _largest(measured: list[MeasuredError]) -> tuple[MeasuredError, ...]:
    """For every value the point where the error is largest relative to what is allowed."""
    worst: dict[str, MeasuredError] = {}
    for item in measured:
        if item.name not in worst or item.error * worst[item.name].tolerance > worst[item.name].error * item.tolerance:
            worst[item.name] = item
    return tuple(worst.values())
