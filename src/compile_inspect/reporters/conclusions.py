"""The conclusions of `bench` and `verify`, computed from the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Doubt, Measurement, Payback, Speed, Timing, TimingPoint
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import TIMES, count

EAGER = "eager"
# Doubts about the comparison with eager; its interval, from pairs of samples, already covers noise and drift.
_UNCOMPILED = (Doubt.NO_GRAPH, Doubt.RECOMPILE_LIMIT)
_UNDERMINING = (Doubt.RECOMPILED, Doubt.UNSETTLED, Doubt.FEW_SAMPLES)


@dataclass(frozen=True)
class Choice:
    """What to use at one size: a variant that is clearly faster than eager, or eager; None without a comparison."""

    variant: Measurement | None
    ties: tuple[str, ...] = ()
    """Variants whose samples do not differ clearly from those of the chosen one."""
    nearest: Measurement | None = None
    """Where eager is chosen: the variant with the largest speedup."""


def choose(point: TimingPoint) -> Choice:
    """The variant to use: of those whose whole interval lies above 1, one that no other clearly beats.

    Of several without a clear difference, the one with the shortest cold build, where that is known. A variant that runs in
    eager mode is never chosen, whatever its samples say.
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
    """Which variant to use, its speedup, and when its build pays back; or that no variant is clearly faster.

    >>> conclude_timing(Timing("model"))
    'Nothing was measured.'
    """
    choices = [(point, choose(point)) for point in timing.points]
    decided = [(point, choice) for point, choice in choices if choice.variant is not None]
    if not decided:
        ran = any(item.summary for point in timing.points for item in point.measurements)
        return "Only eager ran, so there is no comparison." if ran else "Nothing was measured."
    sentence = _about_one(*decided[0]) if len(timing.points) == 1 else _about_sizes(decided, len(timing.points))
    sentence = " ".join([sentence, *_uncompiled(timing)])
    if timing.interrupted:
        sentence += " The run was interrupted: this conclusion only uses the measurements up to then."
    return sentence


def recommended_variants(timing: Timing) -> tuple[str, ...]:
    """The distinct variants other than eager that are recommended at some size."""
    chosen = (choose(point).variant for point in timing.points)
    return tuple(dict.fromkeys(item.variant for item in chosen if item is not None and item.speed is not None))


def _about_one(point: TimingPoint, choice: Choice) -> str:
    chosen = choice.variant
    if chosen is None or chosen.speed is None:
        return _eager_is_best(choice.nearest)
    parts = [f"Use {one_line(chosen.variant)}: {_speedup(chosen.speed)}; {_payback(chosen)}."]
    if choice.ties:
        parts.append(f"{_names(choice.ties)}: no clear difference from it.")
    return " ".join([*parts, *_caveats([chosen])])


def _eager_is_best(nearest: Measurement | None) -> str:
    if nearest is None or nearest.speed is None:
        return "No other variant runs fully compiled."
    speed = nearest.speed
    name = one_line(nearest.variant)
    speedup = _speedup(speed)
    if speed.high < 1.0:
        sentence = f"Use eager: nothing is faster. The next fastest variant is {name}: {speedup}."
    else:
        sentence = f"Nothing is clearly faster than eager. The closest variant is {name}: {speedup}. More samples may decide."
    return " ".join([sentence, *_caveats([nearest])])


def _about_sizes(decided: Sequence[tuple[TimingPoint, Choice]], points: int) -> str:
    runs = [
        (name, [item for _, item in run])
        for name, run in groupby(
            ((_chosen_name(choice), (point, choice)) for point, choice in decided), key=lambda item: item[0]
        )
    ]
    if len(runs) == 1:
        name, members = runs[0]
        where = "at every size" if len(members) == points else f"at {_sizes(members)}"
        sentence = _about_run(name, members, where)
    else:
        sentence = "; ".join(_about_run(name, members, f"at {_sizes(members)}") for name, members in runs)
    chosen = [choice.variant for _, choice in decided if choice.variant is not None and choice.variant.speed is not None]
    return " ".join([f"{sentence[:1].upper()}{sentence[1:]}.", *_caveats(chosen)])


def _about_run(name: str, members: Sequence[tuple[TimingPoint, Choice]], where: str) -> str:
    speeds = [choice.variant.speed for _, choice in members if choice.variant is not None and choice.variant.speed is not None]
    if not speeds:
        nearest = [choice.nearest.speed for _, choice in members if choice.nearest is not None]
        slower = all(speed is not None and speed.high < 1.0 for speed in nearest)
        return f"{where} use eager: nothing is faster" if slower else f"{where} nothing is clearly faster than eager"
    low, high = min(item.low for item in speeds), max(item.high for item in speeds)
    paybacks = [choice.variant.payback for _, choice in members if choice.variant is not None]
    return f"{where} use {name}, speedup over eager {low:.2f}–{high:.2f}{TIMES}{_payback_range(paybacks)}"


def _payback_range(paybacks: Sequence[Payback | None]) -> str:
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


def _speedup(speed: Speed) -> str:
    return f"speedup over eager {speed.ratio:.2f}{TIMES} ({_interval(speed)})"


def _interval(speed: Speed) -> str:
    return f"95 % interval {speed.low:.2f}–{speed.high:.2f}{TIMES}"


def _payback(item: Measurement) -> str:
    payback = item.payback
    if payback is None:
        return "the payback of its build was not measured"
    if payback.never:
        return "its build never pays back"
    if payback.unclear:
        last = "never" if payback.high is None else count(payback.high, "call")
        return f"the payback of its build is unclear (between {count(payback.low or 0, 'call')} and {last})"
    if payback.low == payback.high or payback.low is None or payback.high is None:
        return f"a cold build pays back after {count(payback.calls or 0, 'call')}"
    return f"a cold build pays back after {count(payback.calls or 0, 'call')} ({payback.low:,}–{payback.high:,})"


def _runs_eager(item: Measurement) -> bool:
    return any(doubt in item.doubts for doubt in _UNCOMPILED)


def _uncompiled(timing: Timing) -> list[str]:
    """Which variants run in eager mode, and why."""
    measured = [item for point in timing.points for item in point.measurements]
    sentences = []
    for doubt in _UNCOMPILED:
        names = list(dict.fromkeys(one_line(item.variant) for item in measured if doubt in item.doubts))
        if names:
            sentences.append(f"{_names(names)}: {doubt.value}.")
    return sentences


def _caveats(items: Sequence[Measurement]) -> list[str]:
    sentences = []
    assumptions = dict.fromkeys(one_line(sentence).rstrip(".") for item in items for sentence in item.assumes)
    if assumptions:
        sentences.append(f"Assumptions: {'. '.join(assumptions)}.")
    doubts = [doubt for doubt in _UNDERMINING if any(doubt in item.doubts for item in items)]
    if doubts:
        sentences.append(f"Measure again before you rely on it: {'; '.join(doubt.value for doubt in doubts)}.")
    return sentences


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
    'Nothing was compared: there is no variant other than eager.'
    """
    groups: dict[Verdict, list[VariantAgreement]] = {}
    for item in agreement.variants:
        groups.setdefault(item.verdict, []).append(item)
    if not agreement.variants:
        return "Nothing was compared: there is no variant other than eager."
    if Verdict.NONDETERMINISTIC in groups:
        return "No conclusion: eager itself returns a different result when it runs again."
    compared = [item for item in agreement.variants if item.verdict not in (Verdict.REFUSED, Verdict.RANDOM)]
    if not compared:
        if Verdict.RANDOM in groups:
            return "Nothing was compared: the variants draw different random numbers than eager, or could not run."
        return "Nothing was compared: no variant could run."
    sentences = [_judgment(agreement, groups)]
    for verdict, reason in ((Verdict.RANDOM, "draw different random numbers than eager"), (Verdict.REFUSED, "could not run")):
        if verdict in groups:
            sentences.append(f"Not compared: {_variant_names(groups[verdict])}, which {reason}.")
    for doubt in _UNCOMPILED:
        uncompiled = [item for item in compared if item.eager_because is doubt]
        if uncompiled:
            sentences.append(f"{_variant_names(uncompiled)}: {doubt.value}.")
    not_probed = _not_probed([item for item in compared if item.agrees])
    if not_probed:
        sentences.append(f"Not probed: {'; '.join(not_probed)}.")
    return " ".join(sentences)


def _not_probed(items: Sequence[VariantAgreement]) -> list[str]:
    """What was not probed, with the variants concerned unless it concerns all of them."""
    concerned: dict[str, list[str]] = {}
    for item in items:
        for text in item.not_probed:
            concerned.setdefault(one_line(text), []).append(one_line(item.name))
    return [text if len(names) == len(items) else f"{text} (of {_names(names)})" for text, names in concerned.items()]


def _judgment(agreement: Agreement, groups: dict[Verdict, list[VariantAgreement]]) -> str:
    compared = "values and gradients" if agreement.gradients else "values"
    # Variants that need inputs with the example's shapes were compared at fewer inputs.
    up_to = "up to " if len(agreement.points) > 1 else ""
    scope = f"{compared} at {up_to}{count(len(agreement.points), 'input')}"
    agreeing = [*groups.get(Verdict.AGREES, []), *groups.get(Verdict.ASSUMES, [])]
    frozen = groups.get(Verdict.ASSUMES, [])
    condition = f" ({_variant_names(frozen)} only while its frozen assumptions hold)" if frozen else ""
    if Verdict.DISAGREES not in groups:
        verb = "agrees" if len(agreeing) == 1 else "agree"
        return f"{_variant_names(agreeing)} {verb} with eager{condition}: {scope}."
    disagreeing = groups[Verdict.DISAGREES]
    verb = "does" if len(disagreeing) == 1 else "do"
    others = f"; {_variant_names(agreeing)} {'agrees' if len(agreeing) == 1 else 'agree'}{condition}" if agreeing else ""
    return f"{_variant_names(disagreeing)} {verb} not agree with eager{others}: {scope}."


def _variant_names(items: Sequence[VariantAgreement]) -> str:
    return _names([one_line(item.name) for item in items])


def _names(names: Sequence[str]) -> str:
    """Names joined for a sentence.

    >>> _names(["a"]), _names(["a", "b"]), _names(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
