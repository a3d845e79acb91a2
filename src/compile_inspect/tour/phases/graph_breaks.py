"""Phase 3 of the tour: models that break the graph, fixed, with proof that they compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from compile_inspect.errors import TargetError
from compile_inspect.records.breaks import BreakEffect
from compile_inspect.records.timing import Speed
from compile_inspect.reporters.text.findings import comparison
from compile_inspect.tour.calls import model_name
from compile_inspect.tour.intervals import speed_in_words
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.records.fixes import Finding, Proof, Proposal
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

CHOICES = (
    "it stops with an error",
    "it runs everything in eager mode",
    "it compiles what is before and what is after apart",
)
_SECONDS = 0.5


@dataclass(frozen=True)
class FixedBreak:
    """A cause of graph breaks, and what became of it."""

    model: str
    place: str
    code: str
    kind: str
    identifier: str
    fix: str = ""
    """What was changed; empty where nothing was proven."""
    proof: str = ""
    effect: BreakEffect = BreakEffect.SPLIT


@dataclass(frozen=True)
class FixedModel:
    """One model before and after: graphs, and what Inductor makes of them where it was asked."""

    model: str
    graphs: tuple[int, int]
    kernels: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    speed: Speed | None = None
    """How many times as fast it is afterwards, from calls taken in turn."""
    whole: str = ""
    """Why `fullgraph=True` still fails; empty where it works."""


@dataclass(frozen=True)
class FixedGraphBreaks:
    """What `run_fix_graph_breaks` has found, changed and measured."""

    breaks: tuple[FixedBreak, ...]
    models: tuple[FixedModel, ...]

    def answer(self) -> tuple[str, ...]:
        """What breaks cost, in figures of this run."""
        if not self.breaks:
            return tuple(f"{item.model} has no graph break: it is {count(item.graphs[0], 'graph')}." for item in self.models)
        before, after = (sum(model.graphs[side] for model in self.models) for side in (0, 1))
        first, models = self.breaks[0], count(len(self.models), "model")
        what = {
            BreakEffect.SPLIT: "It ended the graph there, let Python run the line, and began another one",
            BreakEffect.SKIPPED: "It gave up the whole function, which then runs in eager mode",
            BreakEffect.MIXED: "It gave up one function, which then runs in eager mode, and split another one there",
            BreakEffect.RAISED: "It raised an error",
        }[first.effect]
        told = [
            f"At {first.place}, `{first.code}`, Dynamo met something that no graph can hold ({first.kind}). {what}: "
            f"{models}, {count(before, 'graph')}."
        ]
        fixed = [item for item in self.breaks if item.fix]
        if fixed:
            whole = sum(not model.whole for model in self.models)
            told.append(
                f"Changes that were tried on a copy remove {len(fixed)} of {count(len(self.breaks), 'cause')} and leave "
                f"{count(after, 'graph')}; fullgraph=True then works for {whole} of {models}."
            )
        for model in self.models:
            if model.seconds is not None and model.kernels is not None:
                pieces = [
                    f"{seconds(model.seconds[side])} as {count(model.graphs[side], 'graph')} with "
                    f"{count(model.kernels[side], 'kernel')}"
                    for side in (0, 1)
                ]
                told.append(f"A call of {model.model} took {pieces[0]}, and {pieces[1]}: {speed_in_words(model.speed)}.")
        return tuple(told)


def run_fix_graph_breaks(target: Target | None = None, *, guide: Guide | None = None) -> FixedGraphBreaks:
    """Find what breaks the graph, try fixes on a copy, and measure before and after.

    The tour's models come out fixed beside the originals, as `breaking_fixed.py`; a file of the user is not changed.
    """
    from compile_inspect.tour.guide import Guide
    from compile_inspect.tour.workshop import BREAKING

    guide = guide or Guide.silent()
    if target is not None and guide.own is None:
        raise TargetError(
            f"{model_name(target)} was given as an object, and fixes are changes of a file: use "
            "`compile-inspect breaks FILE.py:NAME`, or --target"
        )
    guide.guess("What does torch.compile do at a line that it cannot put into a graph?", CHOICES)
    named = [guide.own] if guide.own else [(guide.workshop.specification(name), None) for name in BREAKING]
    # One of the three is compiled by Inductor too: that takes ten seconds, and the others show nothing else.
    timed = named[-1] if guide.own else named[1]
    studies = [_study(specification, inputs, guide, timed=timed[0] == specification) for specification, inputs in named]
    result = FixedGraphBreaks(
        tuple(item for study in studies for item in study.breaks), tuple(study.model for study in studies)
    )
    _show(result, studies, guide)
    if not guide.own:
        _write_fixed(studies, guide)
    if result.breaks:
        # What was given up in one frame and split in another has an answer that is right in part: the worse one.
        guide.settle(
            {BreakEffect.RAISED: 0, BreakEffect.SKIPPED: 1, BreakEffect.MIXED: 1, BreakEffect.SPLIT: 2}[result.breaks[0].effect]
        )
    return result


@dataclass(frozen=True)
class _Study:
    """One model, what was found, and the change that removes all of it that can be removed."""

    model: FixedModel
    breaks: tuple[FixedBreak, ...]
    proposal: Proposal | None
    difference: str


def _study(specification: str, inputs: str | None, guide: Guide, *, timed: bool) -> _Study:
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.fixes.planning import combine_fixes, try_proposals
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.records import Stage

    # The backend eager breaks as all others do, and compiles nothing.
    runner = TrialRunner(specification, inputs, backend="eager", seconds=0)
    name = model_name(runner.target)
    with guide.working(f"finding and trying fixes for {name}"):
        findings = try_proposals(runner)
        treatment = combine_fixes(runner, findings) if findings else None
        proposal = treatment.proposal if treatment is not None and treatment.proof.holds else None
        whole = runner.fullgraph_failure(proposal)
    before = len(runner.inspection.graphs_at(Stage.DYNAMO))
    after = treatment.proof.graphs[1] if treatment is not None and proposal is not None else before
    model = FixedModel(name, (before, after), whole=whole or "")
    if timed and proposal is not None:
        if guide.machine.inductor:
            with guide.working(f"compiling {name} with Inductor, before and after"):
                model = _measured(model, runner, specification, inputs, proposal, guide)
        else:
            guide.note(guide.machine.lacking)
    breaks = tuple(_fixed(name, finding, proposal is not None) for finding in findings)
    diff = differ(runner.inspection.sources, disk=True)(proposal) if proposal is not None else ""
    guide.captures.setdefault(name, replace(runner.inspection, findings=findings))
    return _Study(model, breaks, proposal, diff)


def _words(proof: Proof) -> str:
    """What a proof says, with what was compared for it."""
    return f"{proof.standing.value}. {comparison(proof)}".strip()


def _fixed(model: str, finding: Finding, applied: bool) -> FixedBreak:
    cause, chosen = finding.cause, finding.chosen if applied else None
    place = cause.own_location or cause.location
    return FixedBreak(
        model=model,
        place="?" if place is None else f"{Path(place.file).name}:{place.line}",
        code="" if place is None else place.code.strip(),
        kind=cause.kind,
        identifier=cause.identifier or "",
        fix="" if chosen is None else chosen.title,
        proof="" if chosen is None else _words(dict(finding.trials)[chosen]),
        effect=cause.effect,
    )


def _measured(
    model: FixedModel, runner: TrialRunner, specification: str, inputs: str | None, proposal: Proposal, guide: Guide
) -> FixedModel:
    """Kernels and call times under Inductor, before and after; the two are called in turn."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.api import inspect
    from compile_inspect.fixes.program import load_target
    from compile_inspect.silence import silence
    from compile_inspect.timing.noise import ratio
    from compile_inspect.timing.sampling import sample_rounds
    from compile_inspect.tour.workshop import moved

    targets = (load_target(specification, inputs), load_target(specification, inputs, runner.texts(proposal)))
    kernels, calls = [], {}
    with torch.no_grad(), torch_private.preserve_configuration(), silence(), torch_private.suppressed_compiler_output():
        for setting in proposal.settings:
            torch_private.run_setting(setting.code)
        torch_private.forget_compiled_code()
        for side, target in zip(("before", "after"), targets, strict=True):
            there = moved(replace(target, gradients=False), guide.machine.device)
            kernels.append(sum(1 for _ in inspect(there).kernels()))
            compiled = torch.compile(there.function)
            calls[side] = lambda compiled=compiled, there=there: compiled(*there.args, **there.kwargs)
            calls[side]()
        sampled = sample_rounds(calls, device=guide.machine.device, seconds=_SECONDS).wall
    before, after = sampled["before"], sampled["after"]
    return replace(
        model,
        kernels=(kernels[0], kernels[1]),
        seconds=(median(before), median(after)),
        speed=ratio(after, before),
    )


def _write_fixed(studies: Sequence[_Study], guide: Guide) -> None:
    from compile_inspect.fixes.source import apply

    changes = [item for study in studies if study.proposal is not None for item in study.proposal.replacements]
    if not changes:
        return
    original = Path(changes[0].file)
    path = guide.workshop.write("breaking_fixed.py", apply(original.read_text(encoding="utf-8"), changes))
    if guide.workshop.lasting:
        guide.say(f"{path} holds the fixed models; {original.name} is as it was.")


def _show(result: FixedGraphBreaks, studies: Sequence[_Study], guide: Guide) -> None:
    if result.breaks:
        columns = ["Model", "Line", "Code", "Why", "GB id"]
        rows = [[item.model, item.place, item.code, item.kind, item.identifier] for item in result.breaks]
        guide.table("What breaks the graph", columns, rows)
        rows = [[item.model, item.place, item.fix or "nothing was proven", item.proof] for item in result.breaks]
        guide.table("What was tried on a copy", ["Model", "Line", "Change", "Proof"], rows)
    for study in studies:
        if study.difference:
            guide.listing(f"{study.model.model}, changed", study.difference, language="diff")
    rows = []
    for model in result.models:
        kernels = f"{model.kernels[0]} to {model.kernels[1]}" if model.kernels else "-"
        times = f"{seconds(model.seconds[0])} to {seconds(model.seconds[1])}" if model.seconds else "-"
        rows.append([model.model, f"{model.graphs[0]} to {model.graphs[1]}", model.whole or "works", kernels, times])
    guide.table("Before and after", ["Model", ">Graphs", "fullgraph=True", ">Kernels", ">A call, with Inductor"], rows)
