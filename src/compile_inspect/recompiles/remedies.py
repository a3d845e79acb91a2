"""What to do about recompiles: those foretold, where each remedy is tried, and those of a capture alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from compile_inspect.recompiles.api import predict
from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.causes import Cause, CauseKind, decisive
from compile_inspect.recompiles.proposing import remedies_for, why
from compile_inspect.recompiles.running import OnCall
from compile_inspect.recompiles.trials import Named, prove
from compile_inspect.records import GuardFailure, Inspection
from compile_inspect.records.forecast import Forecast, Remedy, RemedyKind, RemedyProof, Treatment
from compile_inspect.target import Inputs, Target

_RESUMED = "torch_dynamo_resume_in_"
_ABOUT_SIZES = (CauseKind.SIZE, CauseKind.CONDITION)


@dataclass(frozen=True)
class _Struck:
    """One recompile, or one call that would have been one beyond the limit."""

    function: str
    call: int | None
    failures: tuple[GuardFailure, ...]


@dataclass
class _Group:
    function: str
    causes: list[Cause] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


def treat(
    target: Target,
    inputs: Sequence[Inputs | Call],
    forecast: Forecast | None = None,
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    trials: bool = True,
    on_trial: Callable[[str], OnCall | None] = lambda title: None,
) -> tuple[Treatment, ...]:
    """The causes of the recompiles that these inputs lead to, each with remedies; with `trials`, each is tried.

    `on_trial` is told the title of what is tried, and gives what is to be told of its calls.
    """
    calls = as_calls(inputs)
    if forecast is None:
        forecast = predict(target, calls, dynamic=dynamic, limit=limit)
    struck = [_Struck(item.function, item.call, item.failures) for item in forecast.recompiles]
    struck += [_Struck(item.function, item.call, (item.failure,)) for item in forecast.limits if item.failure is not None]
    named = Named(target, calls)
    tried: dict[tuple[object, ...], RemedyProof | None] = {}
    treatments = []
    for group in _groups(struck):
        remedies = _proposed(group.causes[0], named, forecast)
        if forecast.limits:
            remedies.append(_more_versions())
        if trials:
            remedies = [_tried(item, named, forecast, tried, limit, on_trial) for item in remedies]
        treatments.append(_treatment(group, remedies))
    return tuple(treatments)


def treat_capture(inspection: Inspection) -> tuple[Treatment, ...]:
    """The causes of the recompiles in a capture, each with remedies; nothing is run, so none is proven."""
    struck = [_Struck(item.function, None, item.failures) for item in inspection.recompiles]
    treatments = []
    for group in _groups(struck):
        first = group.causes[0]
        sizes = _told_sizes(group.causes) if first.kind in _ABOUT_SIZES else []
        remedies = remedies_for(first, sizes=sizes)
        if any(hit.function == group.function for hit in inspection.limits):
            remedies.append(_more_versions())
        treatments.append(_treatment(group, remedies))
    return tuple(treatments)


def _groups(struck: Sequence[_Struck]) -> list[_Group]:
    """Recompiles by function and cause, in the order they were met.

    What follows a graph break is compiled anew with what precedes it: it has no cause of its own then.
    """
    leading = {item.call for item in struck if not item.function.startswith(_RESUMED)}
    groups: dict[tuple[object, ...], _Group] = {}
    met: dict[str, list[Cause]] = {}
    for item in struck:
        if item.function.startswith(_RESUMED) and item.call in leading:
            continue
        cause = decisive(item.failures, met.setdefault(item.function, []))
        if cause is None:
            continue
        met[item.function].append(cause)
        group = groups.setdefault((item.function, *cause.key), _Group(item.function))
        group.causes.append(cause)
        if item.call is not None:
            group.calls.append(item.call)
    return list(groups.values())


def _proposed(cause: Cause, named: Named, forecast: Forecast) -> list[Remedy]:
    if cause.kind not in _ABOUT_SIZES or cause.dimension is None or not named.find(cause.variable):
        return remedies_for(cause, dynamic=forecast.dynamic)
    sizes = named.sizes(cause.variable, cause.dimension)
    together = named.together(cause.variable, cause.dimension)
    return remedies_for(cause, sizes=sizes, together=together, dynamic=forecast.dynamic)


def _more_versions() -> Remedy:
    setting = "torch._dynamo.config.recompile_limit = 64"
    title = "Allow more versions, if the time to compile them does not matter"
    return Remedy(RemedyKind.LIMIT, title, setting, changes="Each version takes time and memory.", settings=(setting,))


def _tried(
    remedy: Remedy,
    named: Named,
    forecast: Forecast,
    tried: dict[tuple[object, ...], RemedyProof | None],
    limit: int | None,
    on_trial: Callable[[str], OnCall | None],
) -> Remedy:
    """The remedy with its proof; one that several causes share is tried once."""
    key = (remedy.kind, remedy.code, remedy.places)
    if key in tried and remedy.kind is not RemedyKind.LIMIT:
        return replace(remedy, proven=tried[key])
    proven = prove(remedy, named, forecast, limit=limit, on_call=on_trial(remedy.title))
    tried[key] = proven.proven
    return proven


def _treatment(group: _Group, remedies: Iterable[Remedy]) -> Treatment:
    first = group.causes[0]
    return Treatment(
        function=group.function,
        variable=first.variable,
        why=why(first),
        calls=tuple(group.calls),
        times=len(group.causes),
        remedies=tuple(remedies),
    )


def _told_sizes(causes: Sequence[Cause]) -> list[int]:
    """Sizes that failed guards speak of: what was compiled for first, and what each recompile was for."""
    words = [causes[0].expected, *(cause.actual for cause in causes)]
    return [int(word) for word in words if word is not None and word.isdecimal()]
