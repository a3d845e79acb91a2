"""`compile-inspect breaks` and `compile-inspect fix`: why the graph broke, what to write instead, and proof that it holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, NoGradOption, TargetArgument, TargetOrCaptureArgument
from compile_inspect.commands.following import command_line, grad_mode, named_target, tell_next, words_of
from compile_inspect.commands.joining import CaptureOption, join, known_capture
from compile_inspect.commands.progress import working
from compile_inspect.commands.status import status_of
from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.records import Inspection
    from compile_inspect.records.fixes import Finding, Proof

_Backend = Annotated[str, typer.Option("--backend", help="What to compile with. eager is quick, and breaks as all others do.")]
_Seconds = Annotated[float, typer.Option("--seconds", min=0.0, help="How long to time each fix; 0: do not.")]


def breaks(
    target: TargetOrCaptureArgument,
    inputs: InputsOption = None,
    backend: _Backend = "inductor",
    seconds: _Seconds = 0.5,
    proof: Annotated[bool, typer.Option("--proof/--no-proof", help="Try each fix on a copy.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N causes.")] = None,
    capture: CaptureOption = None,
    no_grad: NoGradOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List what breaks the graph, most expensive first, each with a fix that was tried.

    Nothing on disk is changed: fixes are tried on a copy, values and gradients are compared with eager. From a capture file the
    same is said, but nothing can be tried. Exit status 1: a compilation failed, or nothing was compiled.
    """
    known = None if capture is None else known_capture(capture)  # said before minutes are spent

    from compile_inspect.commands.show import make_console
    from compile_inspect.fixes.planning import advise_breaks, combine_fixes, try_proposals

    if Path(target).is_file() and ":" not in Path(target).name:
        if inputs is not None:
            raise InspectError(f"{target} is a capture, which holds what was recorded; leave out --inputs {inputs}")
        if capture is not None:
            raise InspectError(
                f"{target} is a capture, and nothing can be tried on it: name the target to add trials to {capture}"
            )
        from compile_inspect.capture_file import load_together

        loaded = [inspection for _, inspection in load_together([Path(target)])]
        for inspection in loaded:
            _tell(advise_breaks(inspection), inspection, as_json=as_json, limit=limit, no_color=no_color, tried=False)
        if not as_json:
            _tell_after_capture(loaded, target, make_console(no_color))
        sys.exit(status_of(loaded))
    with working(f"compiling {target} …") as say, grad_mode(no_grad):
        runner = _trial_runner(target, inputs, backend, seconds, no_grad)
        refuse_another_program(known, runner.inspection, capture)
        findings = (
            try_proposals(runner, on_trial=lambda title: say(f"trying: {title} …"))
            if proof
            else advise_breaks(runner.inspection, disk=True)
        )
        answerable = proof and not as_json and not status_of([runner.inspection])
        verdict = _verdict(runner, findings, combine_fixes, say) if answerable else ""
        if verdict and findings and backend != "inductor":
            verdict = f"{_of_backend(backend)}\n{verdict}"
    if capture is not None:
        name = named_target(target, inputs, no_grad)
        join(capture, lambda known: with_findings(known, runner.inspection, findings), name)
    _tell(findings, runner.inspection, as_json=as_json, limit=limit, no_color=no_color, tried=True, verdict=verdict)
    status = status_of([runner.inspection])
    if not as_json and not status:
        following = _after_trials(findings, words_of(target, inputs, no_grad), backend, proof)
        if following:
            tell_next(make_console(no_color), following)
    sys.exit(status)


def refuse_another_program(known: Inspection | None, runner: Inspection, capture: Path | None) -> None:
    """Raise where a capture was recorded with another text than that which trials are made with."""
    if known is None or not known.compilations:
        return
    for cause in runner.breaks:
        place = cause.own_location or cause.location
        file = "" if place is None else place.file
        if file in runner.sources and known.sources.get(file) != runner.sources[file]:
            raise InspectError(
                f"{capture} was recorded with another text of {file} (or without it): record it again, or name another capture"
            )


def with_findings(known: Inspection, runner: Inspection, findings: Sequence[Finding]) -> Inspection:
    """A capture with causes that were looked into; one that holds no compilation takes what the trials recorded."""
    if not known.compilations:
        known = replace(runner, timings=known.timings, agreements=known.agreements, notes=known.notes, target=known.target)
    return replace(known, findings=tuple(findings))


def fix(
    target: TargetArgument,
    inputs: InputsOption = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the changes to the files, after showing them.")] = False,
    unreached: Annotated[
        bool, typer.Option("--unreached", help="Also fixes of lines that no input reaches, of which nothing is proven.")
    ] = False,
    backend: _Backend = "inductor",
    seconds: _Seconds = 0.5,
    no_grad: NoGradOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Change what breaks the graph: the fixes that were proven, all at once, as one diff.

    The change is made on a copy, captured again and compared with eager. With --apply the files are written, which git or a
    backup beside the file undoes. Exit status 1: something is left to be done by hand.
    """
    from compile_inspect.commands.show import make_console
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.fixes.files import write
    from compile_inspect.fixes.planning import combine_fixes, try_proposals
    from compile_inspect.reporters.text.breaks import no_breaks
    from compile_inspect.reporters.text.findings import proof_details
    from compile_inspect.wording.quantities import count

    with working(f"compiling {target} …") as say, grad_mode(no_grad):
        runner = _trial_runner(target, inputs, backend, seconds, no_grad)
        findings = try_proposals(runner, on_trial=lambda title: say(f"trying: {title} …"))
        say("trying all of them at once …")
        treatment = combine_fixes(runner, findings, unreached=unreached)
    console = make_console(no_color)
    words = words_of(target, inputs, no_grad)
    reading = command_line("breaks", words, *_same_backend(backend))
    if not findings:
        told = no_breaks(runner.inspection)
        whole = runner.inspection.captured_whole
        console.print(f"{told} There is nothing to fix." if whole else told, markup=False, soft_wrap=True)
        sys.exit(status_of([runner.inspection]))
    if treatment is None:
        told = _nothing_proven(findings)
        console.print(f"{told} To read about them: {reading}", markup=False, soft_wrap=True)
        _tell_unreached(console, findings, unreached)
        sys.exit(1)
    for line in differ(runner.inspection.sources, disk=True)(treatment.proposal).split("\n"):
        console.print(line, style={"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""), markup=False, soft_wrap=True)
    for setting in treatment.proposal.settings:
        console.print(f"Before anything is compiled, run:  {setting.code}", soft_wrap=True)
    chosen = [item.chosen for item in treatment.findings if item.chosen is not None]
    for label, sentences in (("Note", [item.changes for item in chosen]), ("Assumed", [item.where for item in chosen])):
        for sentence in dict.fromkeys(filter(None, sentences)):
            console.print(f"{label}: {sentence}", markup=False, soft_wrap=True)
    console.print(f"{_standing(treatment.proof)}. {proof_details(treatment.proof)}", soft_wrap=True)
    if backend != "inductor":
        console.print(_of_backend(backend), markup=False, soft_wrap=True)
    if not treatment.proof.holds:
        console.print("Each of these was proven alone, all at once do not hold. Nothing was written.", soft_wrap=True)
        sys.exit(1)
    if apply:
        for sentence in write(runner.texts(treatment.proposal)):
            console.print(sentence, soft_wrap=True)
        tell_next(console, command_line("verify", words))
    elif treatment.proposal.replacements:
        given = ["--unreached"] if unreached else []
        console.print("Nothing was written. To write it, add --apply.")
        tell_next(console, command_line("fix", words, *_same_backend(backend), *given, "--apply"))
    _tell_unreached(console, findings, unreached)
    if treatment.left:
        left = f"{len(treatment.left)} of {count(len(findings), 'cause')} left: {reading}"
        console.print(left, markup=False, soft_wrap=True)
        sys.exit(1)


def _of_backend(backend: str) -> str:
    """What a trial with another backend than Inductor does not show."""
    return f"Compiled with the backend {backend}: this proves nothing of what Inductor computes; leave out --backend for that."


def _same_backend(backend: str) -> list[str]:
    return [] if backend == "inductor" else ["--backend", backend]


def _after_trials(findings: Sequence[Finding], words: Sequence[str], backend: str, proof: bool) -> str:
    """What to do once causes are known: apply what was proven, or see whether what is captured whole is right."""
    if not findings:
        return command_line("verify", words)
    if not proof:
        return command_line("breaks", words, *_same_backend(backend))
    if any(finding.chosen is not None for finding in findings):
        return command_line("fix", words, *_same_backend(backend))
    return ""


def _tell_after_capture(inspections: Sequence[Inspection], file: str, console: Any) -> None:
    """Where trials can be made: with the target, if the capture tells how it is named."""
    from compile_inspect.reporters.target_name import target_words

    broken = [inspection for inspection in inspections if inspection.breaks]
    if not broken:
        failed = any(inspection.failures for inspection in inspections)
        tell_next(console, command_line("show", (file, "failures") if failed else (file,)))
        return
    words = next(filter(None, map(target_words, broken)), None)
    if words is not None:
        tell_next(console, command_line("breaks", words))
        return
    told = "The capture does not tell how to call the target by itself: compile-inspect breaks --help says how to name it."
    console.print(f"{told} Fixes are then tried.", markup=False, soft_wrap=True)


def _standing(proof: Proof) -> str:
    """How far several fixes together were proven, with how many breaks they remove.

    >>> from compile_inspect.records.fixes import Proof
    >>> _standing(Proof.of(breaks=(3, 1), inputs=4, values=1))
    '2 of 3 breaks are gone, and the results agree with eager'
    """
    before, after = proof.breaks
    told = proof.standing.value
    if proof.holds and before > 1 and not proof.revealed:
        gone = f"all {before} breaks are gone" if not after else f"{before - after} of {before} breaks are gone"
        told = told.replace("the break is gone", gone, 1)
    return f"{told[:1].upper()}{told[1:]}"


def _nothing_proven(findings: Sequence[Finding]) -> str:
    if any(finding.chosen is not None for finding in findings):
        return "Nothing was written: the fixes that hold change lines that no input reaches."
    return "No fix was proven." if len(findings) == 1 else f"No fix was proven for any of {len(findings)} causes."


def _tell_unreached(console: Any, findings: Sequence[Finding], applied: bool) -> None:
    """Say which proven fixes change lines that no input reaches."""
    for finding in findings:
        lines = dict(finding.trials)[finding.chosen].unreached if finding.chosen is not None else ()
        if lines and not applied:
            where = finding.cause.own_location or finding.cause.location
            told = f"Left out: the fix for {where} changes line {lines[0]}, which no input reaches: nothing is proven of it."
            console.print(f"{told} Give inputs that reach it, or add --unreached.", markup=False, soft_wrap=True)


def _trial_runner(target: str, inputs: str | None, backend: str, seconds: float, no_grad: bool) -> TrialRunner:
    from compile_inspect.fixes.trial_runner import TrialRunner

    return TrialRunner(target, inputs, backend=backend, seconds=seconds, no_grad=no_grad)


def _tell(
    findings: Sequence[Finding],
    inspection: Inspection,
    *,
    as_json: bool,
    limit: int | None,
    no_color: bool,
    tried: bool,
    verdict: str = "",
) -> None:
    from compile_inspect.commands.show import make_console
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.reporters.text.breaks import no_breaks
    from compile_inspect.reporters.text.findings import render
    from compile_inspect.wording.failures import sentence

    console, sources = make_console(no_color), inspection.sources
    raised = sentence(inspection.failures[0], inspection) if inspection.failures else ""
    if as_json:
        from compile_inspect.serialization import to_data

        found = {"breaks": [to_data(item) for item in findings[:limit]], "raised": raised or None}
        console.out(json.dumps(found), highlight=False)
        return
    if not findings:
        console.print(no_breaks(inspection), markup=False, soft_wrap=True)
    elif raised:
        console.print(f"{raised} Breaks behind that were not met.", markup=False, soft_wrap=True)
    elif inspection.nothing_compiled:
        console.print("Nothing runs compiled: no graph has an operation in it.", soft_wrap=True)
    render(findings, console, sources, differ(sources, disk=tried), tried=tried, limit=limit)
    if verdict:
        console.print(verdict, soft_wrap=True)


def _verdict(
    runner: TrialRunner, findings: Sequence[Finding], combine: Callable[..., Any], say: Callable[[str], object]
) -> str:
    """What remains before `fullgraph=True` works: all of it at once."""
    from compile_inspect.wording.quantities import count

    say("trying fullgraph=True …")
    if not findings:
        prevented = runner.fullgraph_failure()
        return "fullgraph=True works as it is." if prevented is None else f"fullgraph=True does not work: {prevented}"
    treatment = combine(runner, findings)
    left = len(findings) if treatment is None else len(treatment.left)
    if treatment is None or not treatment.proof.holds:
        return f"For fullgraph=True {count(len(findings), 'cause')} must be removed by hand: all that is listed here."
    prevented = runner.fullgraph_failure(treatment.proposal)
    many = len(treatment.findings)
    if prevented is None:
        return f"With {'this fix' if many == 1 else f'these {many} fixes'} fullgraph=True works; it was tried."
    if left:
        fixed = f"With {many} of {count(len(findings), 'cause')} fixed"
        return f"{fixed}, {left} must still be removed by hand before fullgraph=True works."
    return f"With all fixes fullgraph=True still does not work: {prevented}"
