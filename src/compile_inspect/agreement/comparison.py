"""One prepared variant against eager at every point."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.agreement.assumptions import find_assumptions
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import at_state, observe
from compile_inspect.agreement.reference import Point, Reference, make_reference
from compile_inspect.agreement.values import Judgement
from compile_inspect.records.agreement import Difference, Measured, Verdict
from compile_inspect.variants import Prepared, Task
from compile_inspect.variants.inductor import FROZEN


@dataclass(frozen=True)
class Comparison:
    """What came of comparing a variant with eager."""

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
    with at_state(task, reference.state):
        return _compare(prepared, reference)


def _compare(prepared: Prepared, reference: Reference) -> Comparison:
    differences: list[Difference] = []
    measured: list[Measured] = []
    notes: list[str] = []
    incomparable: list[str] = []
    wrong_at = None
    compared = 0
    for point in reference.points:
        if not point.as_example and FROZEN[0] in prepared.variant.assumes:
            notes.append(f"{point.name} were left out: they are of another form than what it was made for")
            continue
        found = judged(reference, prepared, point, closely=wrong_at is None)
        compared += 1
        differences += found.differences
        measured += found.measured
        notes += found.notes
        incomparable += found.incomparable
        if found.differences and wrong_at is None:
            wrong_at = point
    assumptions: tuple[str, ...] = ()
    if differences:
        verdict, reason = Verdict.DISAGREES, f"it does not agree with eager: {differences[0]}"
    elif incomparable:
        names = ", ".join(dict.fromkeys(incomparable))
        verdict, reason = Verdict.RANDOM, f"random, cannot be compared: {names} come from other random numbers than eager's"
    else:
        assumptions = find_assumptions(reference, prepared)
        verdict, reason = Verdict.AGREES, f"it agrees with eager at {compared} input{'s' if compared != 1 else ''}"
        if assumptions:
            verdict = Verdict.ASSUMES
            reason = f"it agrees with eager as long as {', and '.join(assumptions)}"
    return Comparison(
        verdict, reason, assumptions, tuple(differences), _largest(measured), tuple(dict.fromkeys(notes)), wrong_at
    )


def judged(reference: Reference, prepared: Prepared, point: Point, *, closely: bool = True) -> Judgement:
    """Run a variant at a point and judge it; before it is called wrong, eager's own error is looked at more closely.

    That takes a dozen runs, and need not be done again where it is wrong elsewhere already.
    """
    seen = observe(reference.task, prepared.run, point.inputs, point.seed)
    exact_kernels = prepared.variant.exact
    found = judge(seen, reference.bystanders(point), exact_kernels=exact_kernels)
    if closely and found.differences and point.eager.error is None and reference.disturb_more(point):
        found = judge(seen, reference.bystanders(point), exact_kernels=exact_kernels)
    return found


def _largest(measured: list[Measured]) -> tuple[Measured, ...]:
    """For every value the point where the error comes closest to what is allowed, or goes beyond."""
    worst: dict[str, Measured] = {}
    for item in measured:
        if item.name not in worst or item.error * worst[item.name].allowed > worst[item.name].error * item.allowed:
            worst[item.name] = item
    return tuple(worst.values())
