"""Try a remedy: apply it to the calls or to torch's settings, and predict again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_tensor
from compile_inspect.agreement.run_outcome import input_names
from compile_inspect.recompiles.calls import Call
from compile_inspect.recompiles.dynamo_run import OnCall
from compile_inspect.recompiles.prediction import predict
from compile_inspect.records.forecast import Forecast, Remedy, RemedyKind, RemedyProof
from compile_inspect.target import Target
from compile_inspect.torch_private import dynamo_state
from compile_inspect.variants import Task
from compile_inspect.wording.quantities import count

_DTYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32"}
TRIAL_RECOMPILE_LIMIT = 64
"""The recompile limit to try if the current one was reached."""


@dataclass(frozen=True)
class NamedInputs:
    """Calls whose tensors and values can be looked up by the names that guards use."""

    target: Target
    calls: tuple[Call, ...]

    def names(self, call: Call) -> list[str]:
        """A name for each leaf of the inputs."""
        return input_names(Task.of(Target(dynamo_state.original_function(self.target.function), gradients=False)), call.inputs)

    def find(self, name: str) -> list[Any]:
        """The values that the calls pass for a name, in order; calls without one are skipped."""
        return [
            leaf
            for call in self.calls
            for leaf_name, leaf in zip(self.names(call), call.leaves(), strict=True)
            if leaf_name == name
        ]

    def sizes(self, name: str, dimension: int) -> list[int]:
        """The sizes that a tensor takes along a dimension."""
        tensors = (item for item in self.find(name) if torch_private.is_tensor(item))
        return [int(item.shape[dimension]) for item in tensors if dimension < item.dim()]

    def matching_dimensions(self, name: str, dimension: int) -> tuple[tuple[str, int], ...]:
        """All dimensions that change like this one, which comes first: padding must be applied to all of them."""
        trial_sizes = self.sizes(name, dimension)
        matches = [(name, dimension)]
        first = self.calls[0]
        for other, leaf in zip(self.names(first), first.leaves(), strict=True):
            if torch_private.is_tensor(leaf):
                same = [(other, place) for place in range(leaf.dim()) if self.sizes(other, place) == trial_sizes]
                matches += [place for place in same if place not in matches]
        return tuple(matches)

    def with_changes(self, changes: Mapping[str, Callable[[Any], Any]]) -> tuple[Call, ...]:
        """The calls with changed values for these names."""
        calls = []
        for call in self.calls:
            leaves, structure = torch_private.flatten((call.args, dict(call.kwargs)))
            new = [
                changes[name](leaf) if name in changes else leaf for name, leaf in zip(self.names(call), leaves, strict=True)
            ]
            args, kwargs = torch_private.unflatten(new, structure)
            calls.append(replace(call, args=args, kwargs=kwargs))
        return tuple(calls)


def try_remedy(
    remedy: Remedy, named: NamedInputs, before: Forecast, *, limit: int | None = None, on_call: OnCall | None = None
) -> Remedy:
    """The remedy with the proof of a trial; unchanged if it cannot be tried."""
    calls, dynamic = _apply(remedy, named), before.dynamic
    if remedy.kind is RemedyKind.DYNAMIC:
        calls, dynamic = named.calls, True
    elif remedy.kind is RemedyKind.LIMIT:
        calls, limit = named.calls, TRIAL_RECOMPILE_LIMIT
    elif remedy.settings:
        calls = named.calls
    if calls is None:
        return remedy
    with torch_private.preserve_configuration() if remedy.settings else nullcontext():
        for setting in remedy.settings if remedy.kind is not RemedyKind.LIMIT else ():
            torch_private.run_setting(setting)
        after = predict(named.target, calls, dynamic=dynamic, limit=limit, on_call=on_call)
    if remedy.kind is RemedyKind.LIMIT:
        remedy = _with_limit(remedy, after)
    return replace(remedy, proof=_judge(before, after))


def _judge(before: Forecast, after: Forecast) -> RemedyProof:
    counts, eager = (before.graph_count, after.graph_count), (len(before.eager_calls), len(after.eager_calls))
    for old, new in zip(before.calls, after.calls, strict=True):
        if new.error is not None and old.error is None:
            return RemedyProof(False, counts, eager, f"call {new.index} then raises {new.error}")
        if old.used_compilations and not new.used_compilations:
            return RemedyProof(False, counts, eager, f"call {new.index} then runs without a graph")
    if after.break_count > before.break_count:
        return RemedyProof(False, counts, eager, "it causes a new graph break")
    holds = eager[1] < eager[0] or (eager[1] == eager[0] and counts[1] < counts[0])
    compiled = count(counts[0], "compilation")
    words = f"{counts[1]} instead of {compiled}" if counts[0] != counts[1] else f"{compiled} as before"
    if eager[0] != eager[1]:
        words += f", {eager[1]} instead of {count(eager[0], 'call')} without a graph"
    return RemedyProof(holds, counts, eager, words)


def _with_limit(remedy: Remedy, after: Forecast) -> Remedy:
    """The remedy with the limit that is sufficient for all calls."""
    versions: dict[str, int] = {}
    for item in after.compilations:
        frame = item.id.partition("/")[0]
        versions[frame] = versions.get(frame, 0) + 1
    setting = f"torch._dynamo.config.recompile_limit = {max(versions.values(), default=1)}"
    return replace(remedy, code=setting, settings=(setting,))


def _apply(remedy: Remedy, named: NamedInputs) -> tuple[Call, ...] | None:
    """The calls with the remedy applied; None if it does not change calls, or they have no such variable."""
    if not remedy.variables or any(not named.find(name) for name, _ in remedy.variables):
        return None
    if remedy.kind in (RemedyKind.MARK_DYNAMIC, RemedyKind.MAYBE_MARK_DYNAMIC):
        change = _marker(remedy.kind is RemedyKind.MARK_DYNAMIC)
    elif remedy.kind is RemedyKind.BUCKETS:
        change = _padder(remedy)
    elif remedy.kind is RemedyKind.TENSOR:
        change = _to_tensor
    elif remedy.kind is RemedyKind.CONVERSION and remedy.code.endswith(".contiguous()"):
        change = lambda tensor, _: clone_tensor(tensor).contiguous()  # noqa: E731
    elif remedy.kind is RemedyKind.CONVERSION and ".to(torch." in remedy.code:
        change = _converter(remedy.code)
    else:
        return None
    changes: dict[str, Callable[[Any], Any]] = {}
    for name, _ in remedy.variables:
        dimensions = [dimension for other, dimension in remedy.variables if other == name]
        changes[name] = lambda leaf, dimensions=dimensions: change(leaf, dimensions)  # type: ignore[misc]
    return named.with_changes(changes)


_Change = Callable[[Any, list[int | None]], Any]


def _marker(firmly: bool) -> _Change:
    def change(tensor: Any, dimensions: list[int | None]) -> Any:
        if not torch_private.is_tensor(tensor):
            return tensor
        copy = dynamo_state.copy_marks(tensor, clone_tensor(tensor).clone().detach().requires_grad_(tensor.requires_grad))
        for dimension in dimensions:
            if dimension is not None and dimension < tensor.dim():
                dynamo_state.mark_dynamic(copy, dimension, firmly=firmly)
        return copy

    return change


def _padder(remedy: Remedy) -> _Change:
    def change(tensor: Any, dimensions: list[int | None]) -> Any:
        import torch

        for dimension in dimensions:
            if remedy.buckets is None or dimension is None or not torch_private.is_tensor(tensor) or dimension >= tensor.dim():
                continue
            shape = list(tensor.shape)
            shape[dimension] = remedy.buckets.bucket(shape[dimension]) - shape[dimension]
            padded = torch.cat([tensor.detach(), tensor.detach().new_zeros(shape)], dim=dimension)
            tensor = dynamo_state.copy_marks(tensor, padded.requires_grad_(tensor.requires_grad))
        return tensor

    return change


def _to_tensor(value: Any, dimensions: list[int | None]) -> Any:
    import torch

    return torch.tensor(value) if isinstance(value, (int, float)) else value


def _converter(code: str) -> _Change:
    def change(tensor: Any, dimensions: list[int | None]) -> Any:
        import torch

        if not torch_private.is_tensor(tensor):
            return tensor
        converted = tensor.detach().to(getattr(torch, code.rpartition("torch.")[2].rstrip(")")))
        return dynamo_state.copy_marks(tensor, converted.clone().requires_grad_(tensor.requires_grad))

    return change


def dtype_name(word: str | None) -> str | None:
    """The dtype that a guard calls, for example, `Float`; None if it is not one to convert to.

    >>> dtype_name("Float")
    'float32'
    """
    return _DTYPES.get(word or "")
