"""A chapter of the tour: TorchScript by trace and by script beside torch.compile, on a function that branches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import difference, median_seconds
from compile_inspect.wording.quantities import seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

PROGRAM = '''\
"""A function with two branches; which one is taken, only the run knows."""


def doubled_or_lowered(x):
    if x.sum() > 0:
        return x * 2
    return x - 10
'''
_CHOICES = ("what eager gives", "the result of the branch that was traced", "an error")
_VERIFIED = {"trace": "torchscript/trace", "script": "torchscript/script", "torch.compile": "eager-backend"}
"""What `verify` calls each; for torch.compile the capture alone, which is where a branch is seen or lost."""


@dataclass(frozen=True)
class Way:
    """One way to run a function: made with a positive input, then called with that and with a negative one."""

    name: str
    build_seconds: float
    call_seconds: float
    positive: float
    negative: float
    difference: float
    """From eager, at the negative input."""
    warned: tuple[str, ...] = ()
    """What it said while it was made."""
    warned_at_call: tuple[str, ...] = ()
    code: str = ""
    verdict: str = ""
    reason: str = ""
    failed: str = ""


@dataclass(frozen=True)
class TorchScriptComparison:
    """What `run_torchscript_comparison` has measured; the first way is eager."""

    ways: tuple[Way, ...]

    def way(self, name: str) -> Way:
        """One way, by its name."""
        return next(way for way in self.ways if way.name == name)

    def answer(self) -> tuple[str, ...]:
        """Who went the wrong way, in figures of this run."""
        eager, *others = self.ways
        told = []
        for way in others:
            if way.failed:
                told.append(f"{way.name} failed: {way.failed}")
            elif way.difference:
                silent = "" if way.warned_at_call else ", without a word at the call"
                told.append(
                    f"{way.name} gave {way.negative:g} for the negative input, where eager gives {eager.negative:g}: it was "
                    f"made with a positive one and knows no other branch{silent}."
                )
        right = [way for way in others if not way.failed and not way.difference]
        if right:
            named = " and ".join(f"{way.name} ({way.negative:g})" for way in right)
            told.append(f"Right on both sides, as eager: {named}.")
        for way in others:
            if way.reason:
                what = f"the capture of {way.name}" if way.name == "torch.compile" else way.name
                told.append(f"verify says of {what}: {way.reason}.")
        times = ", ".join(f"{way.name} {seconds(way.call_seconds)}" for way in self.ways if not way.failed)
        builds = ", ".join(f"{way.name} {seconds(way.build_seconds)}" for way in others if not way.failed)
        told.append(f"A call took: {times}. Making it took: {builds}.")
        warned = [f"{way.name}: {message}" for way in others for message in way.warned if "deprecated" in message]
        told += [f"Torch's warning about {message}" for message in warned]
        return tuple(told)


def run_torchscript_comparison(target: Target | None = None, *, guide: Guide | None = None) -> TorchScriptComparison:
    """Trace, script and compile a function with a branch, and call each with an input for the other branch.

    The function is the tour's own, whatever the target: it must have two branches that are known.
    """
    import torch

    from compile_inspect import torch_private
    from compile_inspect.target import find_object
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    device = guide.machine.device
    inductor = guide.machine.inductor
    if not inductor:
        guide.note(f"{guide.machine.lacking}; torch.compile runs with the backend eager instead")
    guide.guess("Traced with a positive input, what does the function give for a negative one?", _CHOICES)
    path = guide.workshop.write("branch.py", PROGRAM)
    folders = list(sys.path)
    try:
        function = find_object(f"{path}:doubled_or_lowered")
    finally:
        sys.path[:] = folders
    guide.listing(path.name, PROGRAM, language="python")
    makers: dict[str, Callable[[Any], Any]] = {
        "eager": lambda x: function,
        "trace": lambda x: torch.jit.trace(function, (x,)),  # type: ignore[no-untyped-call]
        "script": lambda x: torch.jit.script(function),
        "torch.compile": lambda x: torch.compile(function, backend="inductor" if inductor else "eager"),
    }
    torch_private.forget_compiled_code()
    ways = []
    for name, make in makers.items():
        with guide.working(f"making and calling it by {name}"):
            ways.append(_way(name, make, function, device))
    torch_private.forget_compiled_code()
    found = TorchScriptComparison(_verified(tuple(ways), function, device))
    _show(found, guide)
    return found


def _way(name: str, make: Callable[[Any], Any], original: Callable[[Any], Any], device: str) -> Way:
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    positive, negative = torch.ones(8, device=device), -torch.ones(8, device=device)
    with silence(), torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        started = perf_counter()
        try:
            function = make(positive)
            first = function(positive)
            build = perf_counter() - started
            # Importing Inductor warns of TorchScript too, which is nothing that its user has asked for.
            while_made = _messages(said) if name in ("trace", "script") else ()
            said.clear()
            second = function(negative)
            at_call = _messages(said)
            called = median_seconds(lambda: function(positive), device)
        except Exception as error:  # TorchScript is on its way out: whatever it raises is what is to be shown
            return Way(name, 0.0, 0.0, 0.0, 0.0, 0.0, failed=one_line(error))
    apart = difference(second, original(negative))
    code = str(getattr(function, "code", ""))
    return Way(name, build, called, float(first[0]), float(second[0]), apart, while_made, at_call, code)


def _messages(said: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """What was said by TorchScript and its tracer, once each."""
    kinds = ("DeprecationWarning", "TracerWarning", "FutureWarning")
    texts = [str(item.message) for item in said if item.category.__name__ in kinds]
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts))


def _verified(ways: tuple[Way, ...], original: Callable[[Any], Any], device: str) -> tuple[Way, ...]:
    """The ways with what `verify` says of them."""
    from dataclasses import replace

    import torch

    from compile_inspect.agreement.api import verify
    from compile_inspect.silence import silence

    with silence():
        agreement = verify(original, torch.ones(8, device=device), variants=list(_VERIFIED.values()), blame=False)
    told = []
    for way in ways:
        found = agreement.variant(_VERIFIED[way.name]) if way.name in _VERIFIED else None
        told.append(way if found is None else replace(way, verdict=found.verdict.value, reason=found.reason))
    return tuple(told)


def _show(found: TorchScriptComparison, guide: Guide) -> None:
    columns = ["Way", ">At 1", ">At -1", ">Off by", ">Call", ">Made in", "verify"]
    rows = [
        [way.name, "failed", "-", "-", "-", "-", way.failed]
        if way.failed
        else [
            way.name,
            *(f"{way.positive:g}", f"{way.negative:g}", f"{way.difference:g}"),
            *(seconds(way.call_seconds), seconds(way.build_seconds), way.verdict or "-"),
        ]
        for way in found.ways
    ]
    guide.table("Made with ones, called with ones and with minus ones", columns, rows)
    for way in found.ways:
        if way.code:
            guide.listing(f"What {way.name} holds", way.code, language="python")
    said = [[way.name, message] for way in found.ways for message in way.warned]
    if said:
        guide.table("What torch said while they were made", ["Way", "Warning"], said)
    traced = found.way("trace")
    guide.settle(2 if traced.failed else 1 if traced.difference else 0)
