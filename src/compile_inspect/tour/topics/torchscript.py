"""A topic of the tour: TorchScript tracing and scripting compared with torch.compile, on a function with a branch."""

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
"""A function with two branches; the input values decide which one runs."""


def double_or_lower(x):
    if x.sum() > 0:
        return x * 2
    return x - 10
'''
_CHOICES = ("the same as eager", "the result of the traced branch", "an error")
_VARIANTS = {"trace": "torchscript/trace", "script": "torchscript/script", "torch.compile": "eager-backend"}
"""The variant that `verify` checks for each; for torch.compile only the capture, which decides how a branch is handled."""


@dataclass(frozen=True)
class Way:
    """One way to run a function: built with a positive input, then called with that and with a negative one."""

    name: str
    build_seconds: float
    call_seconds: float
    positive: float
    negative: float
    difference: float
    """From eager, at the negative input."""
    build_warnings: tuple[str, ...] = ()
    """Warnings during the build."""
    call_warnings: tuple[str, ...] = ()
    code: str = ""
    verdict: str = ""
    reason: str = ""
    failed: str = ""


@dataclass(frozen=True)
class TorchScriptComparison:
    """The measurements of `run_torchscript_comparison`; the first way is eager."""

    ways: tuple[Way, ...]

    def way(self, name: str) -> Way:
        """One way, by its name."""
        return next(way for way in self.ways if way.name == name)

    def answer(self) -> tuple[str, ...]:
        """Which ways took the wrong branch, with the numbers of this run."""
        eager, *others = self.ways
        sentences = []
        for way in others:
            if way.failed:
                sentences.append(f"{way.name} failed: {way.failed}")
            elif way.difference:
                silent = "" if way.call_warnings else ", and the call gave no warning"
                sentences.append(
                    f"{way.name} returned {way.negative:g} for the negative input, where eager returns {eager.negative:g}: it "
                    "was "
                    f"built with a positive input and contains only that branch{silent}."
                )
        correct = [way for way in others if not way.failed and not way.difference]
        if correct:
            names = " and ".join(f"{way.name} ({way.negative:g})" for way in correct)
            sentences.append(f"Correct for both inputs: {names}.")
        for way in others:
            if way.reason:
                subject = f"the capture of {way.name}" if way.name == "torch.compile" else way.name
                sentences.append(f"verify reports for {subject}: {way.reason}.")
        times = ", ".join(f"{way.name} {seconds(way.call_seconds)}" for way in self.ways if not way.failed)
        builds = ", ".join(f"{way.name} {seconds(way.build_seconds)}" for way in others if not way.failed)
        sentences.append(f"Call times: {times}. Build times: {builds}.")
        deprecations = [f"{way.name}: {message}" for way in others for message in way.build_warnings if "deprecated" in message]
        sentences += [f"torch warns about {message}" for message in deprecations]
        return tuple(sentences)


def run_torchscript_comparison(target: Target | None = None, *, guide: Guide | None = None) -> TorchScriptComparison:
    """Trace, script and compile a function with a branch, and call each with an input for the other branch.

    The function is always the tour's own, because its two branches must be known.
    """
    import torch

    from compile_inspect import torch_private
    from compile_inspect.target import find_object
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    device = guide.machine.device
    inductor = guide.machine.inductor
    if not inductor:
        guide.note(f"{guide.machine.missing_requirement}. torch.compile uses the backend eager instead")
    guide.ask("The function is traced with a positive input. What does it return for a negative one?", _CHOICES)
    path = guide.folder.write("branch.py", PROGRAM)
    folders = list(sys.path)
    try:
        function = find_object(f"{path}:double_or_lower")
    finally:
        sys.path[:] = folders
    guide.listing(path.name, PROGRAM, language="python")
    builders: dict[str, Callable[[Any], Any]] = {
        "eager": lambda x: function,
        "trace": lambda x: torch.jit.trace(function, (x,)),  # type: ignore[no-untyped-call]
        "script": lambda x: torch.jit.script(function),
        "torch.compile": lambda x: torch.compile(function, backend="inductor" if inductor else "eager"),
    }
    torch_private.forget_compiled_code()
    ways = []
    for name, build in builders.items():
        with guide.working(f"building and calling the function with {name}"):
            ways.append(_way(name, build, function, device))
    torch_private.forget_compiled_code()
    result = TorchScriptComparison(_with_verification(tuple(ways), function, device))
    _show(result, guide)
    return result


def _way(name: str, build: Callable[[Any], Any], original: Callable[[Any], Any], device: str) -> Way:
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.variants.base import one_line

    positive, negative = torch.ones(8, device=device), -torch.ones(8, device=device)
    with silence(), torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        try:
            function = build(positive)
            first = function(positive)
            build_seconds = perf_counter() - start
            # Importing Inductor warns about TorchScript too, which has nothing to do with this function.
            build_warnings = _messages(caught) if name in ("trace", "script") else ()
            caught.clear()
            second = function(negative)
            call_warnings = _messages(caught)
            call_seconds = median_seconds(lambda: function(positive), device)
        except Exception as error:  # TorchScript is deprecated: an exception is an outcome to show
            return Way(name, 0.0, 0.0, 0.0, 0.0, 0.0, failed=one_line(error))
    deviation = difference(second, original(negative))
    code = str(getattr(function, "code", ""))
    return Way(
        name, build_seconds, call_seconds, float(first[0]), float(second[0]), deviation, build_warnings, call_warnings, code
    )


def _messages(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """The distinct warnings of TorchScript and its tracer."""
    kinds = ("DeprecationWarning", "TracerWarning", "FutureWarning")
    texts = [str(item.message) for item in caught if item.category.__name__ in kinds]
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts))


def _with_verification(ways: tuple[Way, ...], original: Callable[[Any], Any], device: str) -> tuple[Way, ...]:
    """The ways with the verdicts of `verify`."""
    from dataclasses import replace

    import torch

    from compile_inspect.agreement.api import verify
    from compile_inspect.silence import silence

    with silence():
        agreement = verify(original, torch.ones(8, device=device), variants=list(_VARIANTS.values()), blame=False)
    sentences = []
    for way in ways:
        variant = agreement.variant(_VARIANTS[way.name]) if way.name in _VARIANTS else None
        sentences.append(way if variant is None else replace(way, verdict=variant.verdict.value, reason=variant.reason))
    return tuple(sentences)


def _show(result: TorchScriptComparison, guide: Guide) -> None:
    columns = ["Method", ">Result for 1", ">Result for -1", ">Error", ">Call", ">Build", "verify"]
    rows = [
        [way.name, "failed", "-", "-", "-", "-", way.failed]
        if way.failed
        else [
            way.name,
            *(f"{way.positive:g}", f"{way.negative:g}", f"{way.difference:g}"),
            *(seconds(way.call_seconds), seconds(way.build_seconds), way.verdict or "-"),
        ]
        for way in result.ways
    ]
    guide.table("Built with ones, then called with ones and with minus ones", columns, rows)
    for way in result.ways:
        if way.code:
            guide.listing(f"The code of {way.name}", way.code, language="python")
    build_warnings = [[way.name, message] for way in result.ways for message in way.build_warnings]
    if build_warnings:
        guide.table("torch's warnings during the builds", ["Method", "Warning"], build_warnings)
    traced = result.way("trace")
    guide.reveal(2 if traced.failed else 1 if traced.difference else 0)
