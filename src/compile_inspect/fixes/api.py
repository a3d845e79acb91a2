"""`breaks` and `fix`: the graph breaks of a target with fixes that were tried, and the proven fixes as one change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from compile_inspect.errors import TargetError
from compile_inspect.fixes.diffs import differ
from compile_inspect.fixes.files import write as write_files
from compile_inspect.fixes.planning import CombinedFix, advise_breaks, combine_fixes, fullgraph_sentence, try_proposals
from compile_inspect.fixes.source_names import specification_of
from compile_inspect.fixes.trial_runner import TrialRunner
from compile_inspect.records.break_reports import BreakReport, FixReport
from compile_inspect.records.fixes import Finding
from compile_inspect.target import Target, target_of_call

Progress = Callable[[str], object]

_BREAKS_OPTIONS = ("inputs", "backend", "seconds", "proof", "progress")
_FIX_OPTIONS = ("inputs", "backend", "seconds", "write", "unreached", "progress")
_RUNNING: ContextVar[bool] = ContextVar("compile_inspect_trials_running", default=False)


def breaks(
    function: Callable[..., Any] | Target | str,
    /,
    *args: Any,
    inputs: str | None = None,
    backend: str = "inductor",
    seconds: float = 0.5,
    proof: bool = True,
    progress: Progress | None = None,
    **kwargs: Any,
) -> BreakReport:
    """Find what breaks the graph of a function, explain each cause, and try fixes for it.

    `function` is a callable at the top level of a file, called with `args` and `kwargs`; a `Target`; or a specification such
    as `"model.py:model"`, whose inputs `inputs` names. The program is loaded again from its files for each trial, so state
    that changed since the import does not count, and a script must keep its own work under `if __name__ == "__main__":`. If
    the callable has no name at the top level of a file, `TargetError` says what to do.

    Each proposal is tried on a copy: the break must be gone, and values and gradients must agree with the original in eager
    mode. No file is changed. `seconds` is how long each fix is timed (0: not at all). With `proof=False` nothing is tried.
    `progress` is called with a sentence before each step.

        report = compile_inspect.breaks(model, x)
        print(report)
        for finding in report.findings:
            print(finding.advice.reason, finding.best_proposal)
    """
    with _trials("breaks"):
        runner = _trial_runner(function, args, kwargs, inputs, backend, seconds, "breaks", _BREAKS_OPTIONS)
        return break_report(runner, proof=proof, progress=progress)


def fix(
    function: Callable[..., Any] | Target | str,
    /,
    *args: Any,
    inputs: str | None = None,
    backend: str = "inductor",
    seconds: float = 0.5,
    write: bool = False,
    unreached: bool = False,
    progress: Progress | None = None,
    **kwargs: Any,
) -> FixReport:
    """Combine the proven fixes for the graph breaks of a function into one change, and prove that change.

    `function`, `args`, `kwargs` and the options are those of `breaks`. With `write=True` the files are written if the change
    holds as a whole; git or a backup beside each file can undo that, and `messages` of the result say how. Fixes that change
    lines which no input reaches are left out, since nothing is proven about them, unless `unreached=True`. Settings of torch
    are returned but never written: run them before anything is compiled.

        result = compile_inspect.fix(model, x)
        print(result.diff)
        if result.holds and not result.remaining:
            compile_inspect.fix(model, x, write=True)
    """
    with _trials("fix"):
        runner = _trial_runner(function, args, kwargs, inputs, backend, seconds, "fix", _FIX_OPTIONS)
        report = fix_report(runner, unreached=unreached, progress=progress)
    return write_fix(report) if write else report


def break_report(
    runner: TrialRunner, *, proof: bool = True, fullgraph: bool = True, progress: Progress | None = None
) -> BreakReport:
    """Like `breaks`, for a program that is already loaded; `fullgraph=False` does not try `fullgraph=True`."""
    say = progress or (lambda _: None)
    inspection = runner.inspection
    findings = _try(runner, say) if proof else advise_breaks(inspection, disk=True)
    sentence = ""
    if proof and fullgraph and not inspection.failures and (inspection.breaks or not inspection.nothing_compiled):
        say("trying fullgraph=True …")
        sentence = fullgraph_sentence(runner, findings)
    return BreakReport(inspection, findings, sentence, runner.backend)


def fix_report(runner: TrialRunner, *, unreached: bool = False, progress: Progress | None = None) -> FixReport:
    """Like `fix`, for a program that is already loaded; nothing is written."""
    say = progress or (lambda _: None)
    findings = _try(runner, say)
    say("trying all of them at once …")
    combined = combine_fixes(runner, findings, unreached=unreached)
    report = FixReport(runner.inspection, findings, remaining=findings, backend=runner.backend)
    return report if combined is None else _with_change(report, combined, runner)


def write_fix(report: FixReport) -> FixReport:
    """Write the files of a change that holds as a whole; any other report is returned as it is."""
    return replace(report, messages=tuple(write_files(report.texts))) if report.holds else report


def _with_change(report: FixReport, combined: CombinedFix, runner: TrialRunner) -> FixReport:
    return replace(
        report,
        proof=combined.proof,
        included=combined.findings,
        remaining=combined.remaining,
        diff=differ(report.inspection.sources, disk=True)(combined.proposal),
        settings=tuple(setting.code for setting in combined.proposal.settings),
        texts=runner.texts(combined.proposal),
    )


def _try(runner: TrialRunner, say: Progress) -> tuple[Finding, ...]:
    return try_proposals(runner, on_trial=lambda title: say(f"trying: {title} …"))


def _trial_runner(
    function: Callable[..., Any] | Target | str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: str | None,
    backend: str,
    seconds: float,
    caller: str,
    options: tuple[str, ...],
) -> TrialRunner:
    if isinstance(function, str):
        example = None
        if args or kwargs:
            if inputs is not None:
                raise TargetError(f"{function} has inputs twice: leave out inputs={inputs!r} or the arguments")
            example = Target(_named_elsewhere, args, kwargs)
        return TrialRunner(function, inputs, backend=backend, seconds=seconds, example=example)
    if inputs is not None:
        raise TargetError(f'inputs={inputs!r} needs a target that is named as "file.py:name": pass the inputs themselves')
    target = target_of_call(function, args, kwargs, caller=caller, options=options)
    return TrialRunner(specification_of(target.function), backend=backend, seconds=seconds, example=target)


def _named_elsewhere() -> None:
    """The function of a target whose callable a specification names."""


@contextlib.contextmanager
def _trials(caller: str) -> Iterator[None]:
    """Refuse calls from a program that is being loaded for a trial: it would load itself forever."""
    if _RUNNING.get():
        raise TargetError(
            f"the program calls compile_inspect.{caller} when it is imported, and trials import it: "
            'put the call under if __name__ == "__main__":'
        )
    token = _RUNNING.set(True)
    try:
        yield
    finally:
        _RUNNING.reset(token)
