"""Phase 3 of the tour: models that break the graph, and fixes that are checked to compute the same results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from compile_inspect.errors import TargetError
from compile_inspect.records.breaks import BreakEffect
from compile_inspect.records.timing import Speedup
from compile_inspect.reporters.text.findings import comparison
from compile_inspect.tour.calls import model_name
from compile_inspect.tour.intervals import describe_measured_speedup
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.records.fixes import Finding, Proof, Proposal
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

CHOICES = (
    "it stops with an error",
    "it runs everything in eager mode",
    "it compiles the code before and after it separately",
)
_SAMPLE_SECONDS = 0.5


@dataclass(frozen=True)
class FixedBreak:
    """A cause of graph breaks and its fix."""

    model: str
    place: str
    code: str
    kind: str
    identifier: str
    fix: str = ""
    """The change; empty where no fix was proven."""
    proof: str = ""
    effect: BreakEffect = BreakEffect.SPLIT


@dataclass(frozen=True)
class FixedModel:
    """One model before and after its fix: graphs, and kernels and call times where Inductor compiled it."""

    model: str
    graphs: tuple[int, int]
    kernels: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    speed: Speedup | None = None
    """The speedup from before to after, from interleaved calls."""
    fullgraph_error: str = ""
    """Why `fullgraph=True` still fails; empty where it works."""


@dataclass(frozen=True)
class FixedGraphBreaks:
    """The causes, changes and measurements of `run_fix_graph_breaks`."""

    breaks: tuple[FixedBreak, ...]
    models: tuple[FixedModel, ...]

    def answer(self) -> tuple[str, ...]:
        """What graph breaks cost, with the numbers of this run."""
        if not self.breaks:
            return tuple(f"{item.model} has no graph break: {count(item.graphs[0], 'graph')}." for item in self.models)
        before, after = (sum(model.graphs[side] for model in self.models) for side in (0, 1))
        first, models = self.breaks[0], count(len(self.models), "model")
        effect = {
            BreakEffect.SPLIT: "It ended the graph there, let Python run the line, and started another graph",
            BreakEffect.SKIPPED: "It skipped the whole function, which then runs in eager mode",
            BreakEffect.MIXED: "It skipped one function, which then runs in eager mode, and split another one there",
            BreakEffect.RAISED: "It raised an error",
        }[first.effect]
        sentences = [
            f"At {first.place}, `{first.code}`, Dynamo met code that it cannot put into a graph ({first.kind}). {effect}. In "
            "all, "
            f"{models} became {count(before, 'graph')}."
        ]
        fixed = [item for item in self.breaks if item.fix]
        if fixed:
            fixed_models = sum(not model.fullgraph_error for model in self.models)
            sentences.append(
                f"Fixes tried on a copy remove {len(fixed)} of {count(len(self.breaks), 'cause')} and leave "
                f"{count(after, 'graph')}; fullgraph=True then works for {fixed_models} of {models}."
            )
        for model in self.models:
            if model.seconds is not None and model.kernels is not None:
                measurements = [
                    f"{seconds(model.seconds[side])} with {count(model.graphs[side], 'graph')} and "
                    f"{count(model.kernels[side], 'kernel')}"
                    for side in (0, 1)
                ]
                speedup = describe_measured_speedup(model.speed)
                sentences.append(
                    f"A call of {model.model} took {measurements[0]} before the fix, and {measurements[1]} after it: {speedup}."
                )
        return tuple(sentences)


def run_fix_graph_breaks(target: Target | None = None, *, guide: Guide | None = None) -> FixedGraphBreaks:
    """Find what breaks the graph, try fixes on a copy, and measure before and after.

    The fixed versions of the tour's models are written to `breaking_fixed.py`; the user's own files are not changed.
    """
    from compile_inspect.tour.folder import BREAKING
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    if target is not None and guide.user_target is None:
        raise TargetError(
            f"{model_name(target)} is an object, and fixes change a file: use "
            "`compile-inspect breaks FILE.py:NAME`, or --target"
        )
    guide.ask("What does torch.compile do at a line that it cannot put into a graph?", CHOICES)
    specifications = (
        [guide.user_target] if guide.user_target else [(guide.folder.specification(name), None) for name in BREAKING]
    )
    # Inductor compiles only one of the three, which takes ten seconds: the others would show the same.
    timed = specifications[-1] if guide.user_target else specifications[1]
    studies = [
        _study(specification, inputs, guide, timed=timed[0] == specification) for specification, inputs in specifications
    ]
    result = FixedGraphBreaks(
        tuple(item for study in studies for item in study.breaks), tuple(study.model for study in studies)
    )
    _show(result, studies, guide)
    if not guide.user_target:
        _write_fixed(studies, guide)
    if result.breaks:
        # For a break that skipped one frame and split another, the worse effect counts as the answer.
        guide.reveal(
            {BreakEffect.RAISED: 0, BreakEffect.SKIPPED: 1, BreakEffect.MIXED: 1, BreakEffect.SPLIT: 2}[result.breaks[0].effect]
        )
    return result


@dataclass(frozen=True)
class _Study:
    """One model, its causes of graph breaks, and the change that removes all that can be removed."""

    model: FixedModel
    breaks: tuple[FixedBreak, ...]
    proposal: Proposal | None
    difference: str


def _study(specification: str, inputs: str | None, guide: Guide, *, timed: bool) -> _Study:
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.fixes.planning import combine_fixes, try_proposals
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.records import Stage

    # The backend eager has the same graph breaks as any other, and compiles nothing.
    runner = TrialRunner(specification, inputs, backend="eager", seconds=0)
    name = model_name(runner.target)
    with guide.working(f"finding and checking fixes for {name}"):
        findings = try_proposals(runner)
        treatment = combine_fixes(runner, findings) if findings else None
        proposal = treatment.proposal if treatment is not None and treatment.proof.holds else None
        fullgraph_error = runner.fullgraph_failure(proposal)
    before = len(runner.inspection.graphs_at(Stage.DYNAMO))
    after = treatment.proof.graphs[1] if treatment is not None and proposal is not None else before
    model = FixedModel(name, (before, after), fullgraph_error=fullgraph_error or "")
    if timed and proposal is not None:
        if guide.machine.inductor:
            with guide.working(f"compiling {name} with Inductor before and after the fix"):
                model = _measured(model, runner, specification, inputs, proposal, guide)
        else:
            guide.note(guide.machine.missing_requirement)
    breaks = tuple(_fixed(name, finding, proposal is not None) for finding in findings)
    diff = differ(runner.inspection.sources, disk=True)(proposal) if proposal is not None else ""
    guide.captures.setdefault(name, replace(runner.inspection, findings=findings))
    return _Study(model, breaks, proposal, diff)


def _describe_proof(proof: Proof) -> str:
    """The outcome of a proof and what it compared."""
    return f"{proof.status.value}. {comparison(proof)}".strip()


def _fixed(model: str, finding: Finding, applied: bool) -> FixedBreak:
    cause, chosen = finding.cause, finding.best_proposal if applied else None
    place = cause.own_location or cause.location
    return FixedBreak(
        model=model,
        place="?" if place is None else f"{Path(place.file).name}:{place.line}",
        code="" if place is None else place.code.strip(),
        kind=cause.kind,
        identifier=cause.identifier or "",
        fix="" if chosen is None else chosen.title,
        proof="" if chosen is None else _describe_proof(dict(finding.trials)[chosen]),
        effect=cause.effect,
    )


def _measured(
    model: FixedModel, runner: TrialRunner, specification: str, inputs: str | None, proposal: Proposal, guide: Guide
) -> FixedModel:
    """Kernels and call times under Inductor before and after the fix, from interleaved calls."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.api import inspect
    from compile_inspect.fixes.program import load_target
    from compile_inspect.silence import silence
    from compile_inspect.timing.noise import ratio
    from compile_inspect.timing.sampling import sample_rounds
    from compile_inspect.tour.folder import move_to_device

    targets = (load_target(specification, inputs), load_target(specification, inputs, runner.texts(proposal)))
    kernels, calls = [], {}
    with torch.no_grad(), torch_private.preserve_configuration(), silence(), torch_private.suppressed_compiler_output():
        for setting in proposal.settings:
            torch_private.run_setting(setting.code)
        torch_private.forget_compiled_code()
        for side, target in zip(("before", "after"), targets, strict=True):
            on_device = move_to_device(replace(target, gradients=False), guide.machine.device)
            kernels.append(sum(1 for _ in inspect(on_device).kernels()))
            compiled = torch.compile(on_device.function)
            calls[side] = lambda compiled=compiled, on_device=on_device: compiled(*on_device.args, **on_device.kwargs)
            calls[side]()
        samples = sample_rounds(calls, device=guide.machine.device, seconds=_SAMPLE_SECONDS).wall
    before, after = samples["before"], samples["after"]
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
    path = guide.folder.write("breaking_fixed.py", apply(original.read_text(encoding="utf-8"), changes))
    if guide.folder.permanent:
        guide.remark(f"{path} contains the fixed models; {original.name} is unchanged.")


def _show(result: FixedGraphBreaks, studies: Sequence[_Study], guide: Guide) -> None:
    if result.breaks:
        columns = ["Model", "Line", "Code", "Why", "GB id"]
        rows = [[item.model, item.place, item.code, item.kind, item.identifier] for item in result.breaks]
        guide.table("What breaks the graph", columns, rows)
        rows = [[item.model, item.place, item.fix or "no fix was proven", item.proof] for item in result.breaks]
        guide.table("Fixes tried on a copy", ["Model", "Line", "Change", "Proof"], rows)
    for study in studies:
        if study.difference:
            guide.listing(f"{study.model.model}, changed", study.difference, language="diff")
    rows = []
    for model in result.models:
        kernels = f"{model.kernels[0]} → {model.kernels[1]}" if model.kernels else "-"
        times = f"{seconds(model.seconds[0])} → {seconds(model.seconds[1])}" if model.seconds else "-"
        rows.append([model.model, f"{model.graphs[0]} → {model.graphs[1]}", model.fullgraph_error or "works", kernels, times])
    guide.table(
        "Before and after the fixes", ["Model", ">Graphs", "fullgraph=True", ">Kernels", ">Call time with Inductor"], rows
    )
