"""The one sentence that answers what `bench` and `verify` were asked, as a function of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Doubt, Measurement, Payback, Speed, Timing, TimingPoint
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import TIMES, count

EAGER = "eager"
# Doubts that concern the comparison with eager; noise and drift are in its interval, which is made of pairs of samples.
_UNCOMPILED = (Doubt.NO_GRAPH, Doubt.RECOMPILE_LIMIT)
_UNDERMINING = (Doubt.RECOMPILED, Doubt.UNSETTLED, Doubt.FEW_SAMPLES)


@dataclass(frozen=True)
class Choice:
    """What to use at one size: a variant that is clearly faster than eager, or eager; None where nothing can be said."""

    variant: Measurement | None
    ties: tuple[str, ...] = ()
    """Variants that are as fast as the chosen one, as far as the samples tell."""
    nearest: Measurement | None = None
    """Where eager is chosen: the variant that comes nearest to being faster."""


def choose(point: TimingPoint) -> Choice:
    """The variant to use: of those whose whole interval lies above eager, one that no other clearly beats.

    Of several that cannot be told apart, the one whose cold build costs least, where that is known. One that runs in eager
    mode is never chosen, whatever its samples say.
    """
    compared = [item for item in point.measurements if item.speed is not None and item.summary is not None]
    faster = [item for item in compared if item.speed is not None and item.speed.low > 1.0 and not _runs_eager(item)]
    if not faster:
        compiled = [item for item in compared if not _runs_eager(item)]
        nearest = max(compiled, key=lambda item: item.speed.ratio if item.speed else 0.0, default=None)
        return Choice(point.of(EAGER) if compared else None, nearest=nearest)
    best = min(faster, key=_median)
    tied = [item for item in faster if _overlap(item, best)]
    chosen = min(tied, key=lambda item: (_cold_build(item), _median(item)))
    return Choice(chosen, tuple(item.variant for item in tied if item is not chosen))


def conclude_timing(timing: Timing) -> str:
    """Which variant to use, by how much it is faster, and after how many calls it pays; or that nothing is clearly faster.

    >>> conclude_timing(Timing("model"))
    'Nothing was measured.'
    """
    choices = [(point, choose(point)) for point in timing.points]
    told = [(point, choice) for point, choice in choices if choice.variant is not None]
    if not told:
        ran = any(item.summary for point in timing.points for item in point.measurements)
        return "Only eager ran: there is nothing to compare it with." if ran else "Nothing was measured."
    sentence = _about_one(*told[0]) if len(timing.points) == 1 else _about_sizes(told, len(timing.points))
    sentence = " ".join([sentence, *_uncompiled(timing)])
    if timing.interrupted:
        sentence += " The run was interrupted: this rests on what had been measured by then."
    return sentence


def recommended_variants(timing: Timing) -> tuple[str, ...]:
    """The variants other than eager that are to be used at some size, each once."""
    chosen = (choose(point).variant for point in timing.points)
    return tuple(dict.fromkeys(item.variant for item in chosen if item is not None and item.speed is not None))


def _about_one(point: TimingPoint, choice: Choice) -> str:
    chosen = choice.variant
    if chosen is None or chosen.speed is None:
        return _eager_is_best(choice.nearest)
    parts = [f"Use {one_line(chosen.variant)}: {_times_as_fast(chosen.speed)}; {_when_it_pays(chosen)}."]
    if choice.ties:
        parts.append(f"{_names(choice.ties)} cannot be told apart from it.")
    return " ".join([*parts, *_reservations([chosen])])


def _eager_is_best(nearest: Measurement | None) -> str:
    if nearest is None or nearest.speed is None:
        return "No other variant runs fully compiled."
    speed = nearest.speed
    name = one_line(nearest.variant)
    told = f"{speed.ratio:.2f}{TIMES} ({_ends(speed)})"
    if speed.high < 1.0:
        sentence = f"Use eager: nothing is faster. The next fastest is {name}, {told} as fast."
    else:
        sentence = f"Nothing is clearly faster than eager. The closest is {name}, {told} as fast; more samples may tell."
    return " ".join([sentence, *_reservations([nearest])])


def _about_sizes(told: Sequence[tuple[TimingPoint, Choice]], points: int) -> str:
    runs = [
        (name, [item for _, item in run])
        for name, run in groupby(((_chosen_name(choice), (point, choice)) for point, choice in told), key=lambda item: item[0])
    ]
    if len(runs) == 1:
        name, members = runs[0]
        where = "at every size" if len(members) == points else f"at {_sizes(members)}"
        sentence = _about_run(name, members, where)
    else:
        sentence = "; ".join(_about_run(name, members, f"at {_sizes(members)}") for name, members in runs)
    chosen = [choice.variant for _, choice in told if choice.variant is not None and choice.variant.speed is not None]
    return " ".join([f"{sentence[:1].upper()}{sentence[1:]}.", *_reservations(chosen)])


def _about_run(name: str, members: Sequence[tuple[TimingPoint, Choice]], where: str) -> str:
    speeds = [choice.variant.speed for _, choice in members if choice.variant is not None and choice.variant.speed is not None]
    if not speeds:
        nearest = [choice.nearest.speed for _, choice in members if choice.nearest is not None]
        slower = all(speed is not None and speed.high < 1.0 for speed in nearest)
        return f"{where} use eager: nothing is faster" if slower else f"{where} nothing is clearly faster than eager"
    low, high = min(item.low for item in speeds), max(item.high for item in speeds)
    paybacks = [choice.variant.payback for _, choice in members if choice.variant is not None]
    return f"{where} use {name}, {low:.2f} to {high:.2f}{TIMES} as fast as eager{_range_of_payback(paybacks)}"


def _range_of_payback(paybacks: Sequence[Payback | None]) -> str:
    known = [item for item in paybacks if item is not None and item.calls is not None and not item.unclear]
    if not known or len(known) < len(paybacks):
        return ""
    calls = sorted(item.calls for item in known if item.calls is not None)
    if calls[0] == calls[-1]:
        return f", a build pays back after {count(calls[0], 'call')}"
    return f", a build pays back after {calls[0]:,} to {count(calls[-1], 'call')}"


def _chosen_name(choice: Choice) -> str:
    chosen = choice.variant
    return EAGER if chosen is None or chosen.speed is None else one_line(chosen.variant)


def _sizes(members: Sequence[tuple[TimingPoint, Choice]]) -> str:
    axes = {tuple(point.sizes) for point, _ in members}
    if len(axes) == 1 and len(next(iter(axes))) == 1:  # one axis is named once
        (axis,) = next(iter(axes))
        return f"{one_line(axis)} {_names([f'{point.sizes[axis]:,}' for point, _ in members])}"
    return _names([", ".join(f"{one_line(name)} {size:,}" for name, size in point.sizes.items()) for point, _ in members])


def _times_as_fast(speed: Speed) -> str:
    return f"it is {speed.ratio:.2f}{TIMES} as fast as eager ({_ends(speed)})"


def _ends(speed: Speed) -> str:
    return f"95 % interval {speed.low:.2f}–{speed.high:.2f}{TIMES}"


def _when_it_pays(item: Measurement) -> str:
    found = item.payback
    if found is None:
        return "when its build pays back was not measured"
    if found.never:
        return "its build never pays back"
    if found.unclear:
        last = "never" if found.high is None else count(found.high, "call")
        return f"when its build pays back is unclear (between {count(found.low or 0, 'call')} and {last})"
    if found.low == found.high or found.low is None or found.high is None:
        return f"a cold build pays back after {count(found.calls or 0, 'call')}"
    return f"a cold build pays back after {count(found.calls or 0, 'call')} ({found.low:,}–{found.high:,})"


def _runs_eager(item: Measurement) -> bool:
    return any(doubt in item.doubts for doubt in _UNCOMPILED)


def _uncompiled(timing: Timing) -> list[str]:
    """Which variants are not what their names say, and why."""
    measured = [item for point in timing.points for item in point.measurements]
    told = []
    for doubt in _UNCOMPILED:
        names = list(dict.fromkeys(one_line(item.variant) for item in measured if doubt in item.doubts))
        if names:
            told.append(f"{_names(names)}: {doubt.value}.")
    return told


def _reservations(items: Sequence[Measurement]) -> list[str]:
    told = []
    assumed = dict.fromkeys(one_line(sentence).rstrip(".") for item in items for sentence in item.assumes)
    if assumed:
        told.append(f"Assumed: {'. '.join(assumed)}.")
    doubts = [doubt for doubt in _UNDERMINING if any(doubt in item.doubts for item in items)]
    if doubts:
        told.append(f"Measure again before you rely on it: {'; '.join(doubt.value for doubt in doubts)}.")
    return told


def _overlap(item: Measurement, other: Measurement) -> bool:
    one, two = item.summary, other.summary
    return one is not None and two is not None and one.low <= two.high and two.low <= one.high


def _median(item: Measurement) -> float:
    return item.summary.median if item.summary is not None else float("inf")


def _cold_build(item: Measurement) -> float:
    cold = item.build.cold_seconds if item.build is not None else None
    return float("inf") if cold is None else cold


def conclude_agreement(agreement: Agreement) -> str:
    """Whether the variants agree with eager, which were not compared, and what was not probed.

    >>> conclude_agreement(Agreement("f", False, ("the example",)))
    'Nothing was compared: there is no variant but eager.'
    """
    groups: dict[Verdict, list[VariantAgreement]] = {}
    for item in agreement.variants:
        groups.setdefault(item.verdict, []).append(item)
    if not agreement.variants:
        return "Nothing was compared: there is no variant but eager."
    if Verdict.NONDETERMINISTIC in groups:
        return "Nothing can be said: eager itself gives a different result when it is run again."
    compared = [item for item in agreement.variants if item.verdict not in (Verdict.REFUSED, Verdict.RANDOM)]
    if not compared:
        if Verdict.RANDOM in groups:
            return "Nothing was compared: the variants draw other random numbers than eager, or could not run."
        return "Nothing was compared: none of the variants could run."
    sentences = [_judgment(agreement, groups)]
    for verdict, told in ((Verdict.RANDOM, "draw other random numbers than eager"), (Verdict.REFUSED, "could not run")):
        if verdict in groups:
            sentences.append(f"Not compared: {_variant_names(groups[verdict])}, which {told}.")
    for doubt in _UNCOMPILED:
        uncompiled = [item for item in compared if item.eager_because is doubt]
        if uncompiled:
            sentences.append(f"{_variant_names(uncompiled)}: {doubt.value}.")
    missing = _not_probed([item for item in compared if item.agrees])
    if missing:
        sentences.append(f"Not probed: {'; '.join(missing)}.")
    return " ".join(sentences)


def _not_probed(items: Sequence[VariantAgreement]) -> list[str]:
    """What was not looked at, with the variants it holds for where it does not hold for all of them."""
    concerned: dict[str, list[str]] = {}
    for item in items:
        for text in item.not_probed:
            concerned.setdefault(one_line(text), []).append(one_line(item.name))
    return [text if len(names) == len(items) else f"{text} (of {_names(names)})" for text, names in concerned.items()]


def _judgment(agreement: Agreement, groups: dict[Verdict, list[VariantAgreement]]) -> str:
    what = "values and gradients" if agreement.gradients else "values"
    # Variants that need inputs of the example's form were compared at fewer of them.
    most = "up to " if len(agreement.points) > 1 else ""
    where = f"{what} at {most}{count(len(agreement.points), 'input')}"
    right = [*groups.get(Verdict.AGREES, []), *groups.get(Verdict.ASSUMES, [])]
    frozen = groups.get(Verdict.ASSUMES, [])
    condition = f" ({_variant_names(frozen)} as long as what it froze stays as it was)" if frozen else ""
    if Verdict.DISAGREES not in groups:
        verb = "agrees" if len(right) == 1 else "agree"
        return f"{_variant_names(right)} {verb} with eager{condition}: {where}."
    wrong = groups[Verdict.DISAGREES]
    verb = "does" if len(wrong) == 1 else "do"
    agreeing = f"; {_variant_names(right)} {'agrees' if len(right) == 1 else 'agree'}{condition}" if right else ""
    return f"{_variant_names(wrong)} {verb} not agree with eager{agreeing}: {where}."


def _variant_names(items: Sequence[VariantAgreement]) -> str:
    return _names([one_line(item.name) for item in items])


def _names(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> _names(["a"]), _names(["a", "b"]), _names(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
