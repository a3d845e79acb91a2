"""Find remedies for recompiles: predicted ones, for which each remedy is tried, and those of a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from compile_inspect.recompiles.calls import Call, as_calls
from compile_inspect.recompiles.causes import Cause, CauseKind, decisive_cause
from compile_inspect.recompiles.dynamo_run import OnCall
from compile_inspect.recompiles.prediction import predict
from compile_inspect.recompiles.proposals import explain, remedies_for
from compile_inspect.recompiles.trials import NamedInputs, try_remedy
from compile_inspect.records import GuardFailure, Inspection
from compile_inspect.records.forecast import Forecast, Remedy, RemedyKind, RemedyProof, Treatment
from compile_inspect.target import Inputs, Target

_RESUME_PREFIX = "torch_dynamo_resume_in_"
_SIZE_KINDS = (CauseKind.SIZE, CauseKind.CONDITION)


@dataclass(frozen=True)
class _RecompileEvent:
    """One recompile, or one call that would have recompiled but for the limit."""

    function: str
    call: int | None
    failures: tuple[GuardFailure, ...]


@dataclass
class _Group:
    function: str
    causes: list[Cause] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


def find_remedies(
    target: Target,
    inputs: Sequence[Inputs | Call],
    forecast: Forecast | None = None,
    *,
    dynamic: bool | None = None,
    limit: int | None = None,
    trials: bool = True,
    on_trial: Callable[[str], OnCall | None] = lambda title: None,
) -> tuple[Treatment, ...]:
    """The causes of the recompiles for these inputs, each with remedies; with `trials`, each remedy is tried.

    `on_trial` is called with the title of each remedy and may return a callback for the calls of its trial.
    """
    calls = as_calls(inputs)
    if forecast is None:
        forecast = predict(target, calls, dynamic=dynamic, limit=limit)
    events = [_RecompileEvent(item.function, item.call, item.failures) for item in forecast.recompiles]
    events += [
        _RecompileEvent(item.function, item.call, (item.failure,)) for item in forecast.limits if item.failure is not None
    ]
    named_inputs = NamedInputs(target, calls)
    proofs: dict[tuple[object, ...], RemedyProof | None] = {}
    treatments = []
    for group in _groups(events):
        remedies = _propose(group.causes[0], named_inputs, forecast)
        if forecast.limits:
            remedies.append(_higher_limit())
        if trials:
            remedies = [_try(item, named_inputs, forecast, proofs, limit, on_trial) for item in remedies]
        treatments.append(_treatment_of(group, remedies))
    return tuple(treatments)


def remedies_from_capture(inspection: Inspection) -> tuple[Treatment, ...]:
    """The causes of the recompiles in a capture, each with remedies; nothing runs, so no remedy is proven."""
    events = [_RecompileEvent(item.function, None, item.failures) for item in inspection.recompiles]
    treatments = []
    for group in _groups(events):
        first = group.causes[0]
        sizes = _sizes_in_failures(group.causes) if first.kind in _SIZE_KINDS else []
        remedies = remedies_for(first, sizes=sizes)
        if any(hit.function == group.function for hit in inspection.limits):
            remedies.append(_higher_limit())
        treatments.append(_treatment_of(group, remedies))
    return tuple(treatments)


def _groups(events: Sequence[_RecompileEvent]) -> list[_Group]:
    """Group recompiles by function and cause, in the order in which they occurred.

    The code after a graph break is recompiled together with the code before it; then it has no cause of its own.
    """
    leading = {item.call for item in events if not item.function.startswith(_RESUME_PREFIX)}
    groups: dict[tuple[object, ...], _Group] = {}
    known_causes: dict[str, list[Cause]] = {}
    for item in events:
        if item.function.startswith(_RESUME_PREFIX) and item.call in leading:
            continue
        cause = decisive_cause(item.failures, known_causes.setdefault(item.function, []))
        if cause is None:
            continue
        known_causes[item.function].append(cause)
        group = groups.setdefault((item.function, *cause.key), _Group(item.function))
        group.causes.append(cause)
        if item.call is not None:
            group.calls.append(item.call)
    return list(groups.values())


def _propose(cause: Cause, named_inputs: NamedInputs, forecast: Forecast) -> list[Remedy]:
    if cause.kind not in _SIZE_KINDS or cause.dimension is None or not named_inputs.find(cause.variable):
        return remedies_for(cause, dynamic=forecast.dynamic)
    sizes = named_inputs.sizes(cause.variable, cause.dimension)
    linked_dimensions = named_inputs.matching_dimensions(cause.variable, cause.dimension)
    return remedies_for(cause, sizes=sizes, linked_dimensions=linked_dimensions, dynamic=forecast.dynamic)


def _higher_limit() -> Remedy:
    setting = "torch._dynamo.config.recompile_limit = 64"
    title = "Allow more versions, if compile time does not matter"
    return Remedy(RemedyKind.LIMIT, title, setting, behavior_change="Each version takes time and memory.", settings=(setting,))


def _try(
    remedy: Remedy,
    named_inputs: NamedInputs,
    forecast: Forecast,
    proofs: dict[tuple[object, ...], RemedyProof | None],
    limit: int | None,
    on_trial: Callable[[str], OnCall | None],
) -> Remedy:
    """The remedy with its proof; a remedy that several causes share is tried once."""
    key = (remedy.kind, remedy.code, remedy.variables)
    if key in proofs and remedy.kind is not RemedyKind.LIMIT:
        return replace(remedy, proof=proofs[key])
    proven = try_remedy(remedy, named_inputs, forecast, limit=limit, on_call=on_trial(remedy.title))
    proofs[key] = proven.proof
    return proven


def _treatment_of(group: _Group, remedies: Iterable[Remedy]) -> Treatment:
    first = group.causes[0]
    return Treatment(
        function=group.function,
        variable=first.variable,
        reason=explain(first),
        calls=tuple(group.calls),
        times=len(group.causes),
        remedies=tuple(remedies),
    )


def _sizes_in_failures(causes: Sequence[Cause]) -> list[int]:
    """The sizes in failed guards: the first compiled size, and the size of each recompile."""
    size_texts = [causes[0].expected, *(cause.actual for cause in causes)]
    return [int(word) for word in size_texts if word is not None and word.isdecimal()]
