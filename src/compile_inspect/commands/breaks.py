"""`compile-inspect breaks` and `compile-inspect fix`: why the graph breaks, what to write instead, and a proof."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compile_inspect.command_options import InputsOption, NoColorOption, NoGradOption, TargetArgument, TargetOrCaptureArgument
from compile_inspect.commands.capture_option import CaptureOption, existing_capture, update_capture
from compile_inspect.commands.exit_status import exit_status
from compile_inspect.commands.next_commands import command_line, grad_mode, named_target, print_next_command, target_arguments
from compile_inspect.commands.progress import working
from compile_inspect.errors import InspectError

if TYPE_CHECKING:
    from compile_inspect.records import Inspection
    from compile_inspect.records.break_reports import BreakReport
    from compile_inspect.records.fixes import Finding

_Backend = Annotated[str, typer.Option("--backend", help="What to compile with. eager is fast and has the same graph breaks.")]
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

    Nothing on disk is changed: fixes are tried on a copy, and values and gradients are compared with eager. For a capture file,
    the report is the same, but nothing can be tried. Exit status 1: a compilation failed, or nothing was compiled.
    """
    known = None if capture is None else existing_capture(capture)  # fails before minutes are spent

    from compile_inspect.commands.show import make_console

    if Path(target).is_file() and ":" not in Path(target).name:
        if inputs is not None:
            raise InspectError(f"{target} is a capture, which contains its own inputs; leave out --inputs {inputs}")
        if capture is not None:
            raise InspectError(
                f"{target} is a capture, and nothing can be tried on it: name the target to add trials to {capture}"
            )
        _report_capture(target, as_json=as_json, limit=limit, no_color=no_color)
        return

    from compile_inspect.fixes.api import break_report
    from compile_inspect.fixes.trial_runner import TrialRunner

    with working(f"compiling {target} …") as say, grad_mode(no_grad):
        runner = TrialRunner(target, inputs, backend=backend, seconds=seconds, no_grad=no_grad)
        refuse_another_program(known, runner.inspection, capture)
        report = break_report(runner, proof=proof, fullgraph=not as_json, progress=say)
    if capture is not None:
        name = named_target(target, inputs, no_grad)
        update_capture(capture, lambda known: with_findings(known, report.inspection, report.findings), name)
    _print_report(report, as_json=as_json, limit=limit, no_color=no_color, tried=True)
    status = exit_status([report.inspection])
    if not as_json and not status:
        following = _next_command(report.findings, target_arguments(target, inputs, no_grad), backend, proof)
        if following:
            print_next_command(make_console(no_color), following)
    sys.exit(status)


def refuse_another_program(known: Inspection | None, tried: Inspection, capture: Path | None) -> None:
    """Raise if a capture was recorded with another version of a file than the one the trials use."""
    if known is None or not known.compilations:
        return
    for cause in tried.breaks:
        location = cause.own_location or cause.location
        file = "" if location is None else location.file
        if file in tried.sources and known.sources.get(file) != tried.sources[file]:
            raise InspectError(
                f"{capture} was recorded with another version of {file} (or without it): record it again, or name another "
                "capture"
            )


def with_findings(known: Inspection, tried: Inspection, findings: Sequence[Finding]) -> Inspection:
    """A capture with these findings; one without compilations takes what the trials recorded."""
    if not known.compilations:
        known = replace(tried, timings=known.timings, agreements=known.agreements, notes=known.notes, target=known.target)
    return replace(known, findings=tuple(findings))


def fix(
    target: TargetArgument,
    inputs: InputsOption = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the changes to the files, after showing them.")] = False,
    unreached: Annotated[
        bool,
        typer.Option("--unreached", help="Include fixes of lines that no input reaches, about which nothing is proven."),
    ] = False,
    backend: _Backend = "inductor",
    seconds: _Seconds = 0.5,
    no_grad: NoGradOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Change what breaks the graph: all proven fixes, as one diff.

    The change is made on a copy, captured again and compared with eager. With --apply the files are written, which git or a
    backup beside each file can undo. Exit status 1: something is left for you to do by hand.
    """
    from compile_inspect.commands.show import make_console
    from compile_inspect.fixes.api import fix_report, write_fix
    from compile_inspect.fixes.trial_runner import TrialRunner
    from compile_inspect.reporters.text.break_reports import left_out, no_change, remaining, render_change

    with working(f"compiling {target} …") as say, grad_mode(no_grad):
        runner = TrialRunner(target, inputs, backend=backend, seconds=seconds, no_grad=no_grad)
        report = fix_report(runner, unreached=unreached, progress=say)
    console = make_console(no_color)

    def show(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    words = target_arguments(target, inputs, no_grad)
    reading = command_line("breaks", words, *_same_backend(backend))
    hints = [f"{text} Pass inputs that reach it, or add --unreached." for text in left_out(report)]
    if not report.findings:
        show(no_change(report))
        sys.exit(exit_status([report.inspection]))
    if report.proof is None:
        show(f"{no_change(report)} To read about them: {reading}")
        for hint in hints:
            show(hint)
        sys.exit(1)
    render_change(report, console)
    if not report.holds:
        show("Each fix was proven separately, but together they do not hold. Nothing was written.")
        sys.exit(1)
    if apply:
        for message in write_fix(report).messages:
            show(message)
        print_next_command(console, command_line("verify", words))
    elif report.texts:
        options = ["--unreached"] if unreached else []
        show("Nothing was written. To write it, add --apply.")
        print_next_command(console, command_line("fix", words, *_same_backend(backend), *options, "--apply"))
    for hint in hints:
        show(hint)
    if report.remaining:
        show(f"{remaining(report).removesuffix('.')}: {reading}")
        sys.exit(1)


def _same_backend(backend: str) -> list[str]:
    return [] if backend == "inductor" else ["--backend", backend]


def _next_command(findings: Sequence[Finding], words: Sequence[str], backend: str, proof: bool) -> str:
    """The command to run once causes are known: apply what was proven, or verify what was captured as one graph."""
    if not findings:
        return command_line("verify", words)
    if not proof:
        return command_line("breaks", words, *_same_backend(backend))
    if any(finding.best_proposal is not None for finding in findings):
        return command_line("fix", words, *_same_backend(backend))
    return ""


def _report_capture(file: str, *, as_json: bool, limit: int | None, no_color: bool) -> None:
    """Print the breaks of a capture file with untried advice, and exit."""
    from compile_inspect.capture_file import load_together
    from compile_inspect.commands.show import make_console
    from compile_inspect.fixes.planning import advise_breaks
    from compile_inspect.records.break_reports import BreakReport

    inspections = [inspection for _, inspection in load_together([Path(file)])]
    for inspection in inspections:
        report = BreakReport(inspection, advise_breaks(inspection))
        _print_report(report, as_json=as_json, limit=limit, no_color=no_color, tried=False)
    if not as_json:
        _print_next_for_capture(inspections, file, make_console(no_color))
    sys.exit(exit_status(inspections))


def _print_next_for_capture(inspections: Sequence[Inspection], file: str, console: Any) -> None:
    """Print the command that tries fixes on the target, if the capture names the target."""
    from compile_inspect.reporters.target_arguments import infer_target_arguments

    broken = [inspection for inspection in inspections if inspection.breaks]
    if not broken:
        failed = any(inspection.failures for inspection in inspections)
        print_next_command(console, command_line("show", (file, "failures") if failed else (file,)))
        return
    words = next(filter(None, map(infer_target_arguments, broken)), None)
    if words is not None:
        print_next_command(console, command_line("breaks", words))
        return
    text = "The capture does not say how to call the target: compile-inspect breaks --help explains how to name it."
    console.print(f"{text} Fixes can then be tried.", markup=False, soft_wrap=True)


def _print_report(report: BreakReport, *, as_json: bool, limit: int | None, no_color: bool, tried: bool) -> None:
    from compile_inspect.commands.show import make_console

    console, inspection = make_console(no_color), report.inspection
    if as_json:
        from compile_inspect.serialization import to_data
        from compile_inspect.wording.failures import sentence

        raised = sentence(inspection.failures[0], inspection) if inspection.failures else None
        data = {"breaks": [to_data(item) for item in report.findings[:limit]], "raised": raised}
        console.out(json.dumps(data), highlight=False)
        return
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.reporters.text.break_reports import render_breaks

    render_breaks(report, console, differ(inspection.sources, disk=tried), tried=tried, limit=limit)
