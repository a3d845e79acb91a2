"""Captures as one HTML file: the recording, the conclusions, and the fixes that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from compile_inspect import __version__
from compile_inspect.records import Inspection
from compile_inspect.records.fixes import Finding, sort_by_cost

if TYPE_CHECKING:
    from rich.console import Console

    from compile_inspect.records import Timing
    from compile_inspect.records.break_reports import BreakReport, FixReport
    from compile_inspect.records.lessons import Lesson
    from compile_inspect.records.recompile_forecast import RecompileForecast
    from compile_inspect.reporters.html import CaptureReport

_WIDTH = 100


def html(
    captures: Sequence[tuple[str, Inspection]],
    *,
    title: str = "",
    comparison: bool = False,
    whole: bool = False,
    lessons: Sequence[Lesson] = (),
    sentence: str = "",
    origin: str = "",
) -> str:
    """The page of some captures, each with a name.

    Several captures are processes of one program, or with `comparison` two versions to compare. `whole` leaves
    nothing out, however large the page becomes.

    With `lessons` it is the page of a tour: they come first, and the captures are their models, if any.
    `sentence` summarizes the lessons (how many, in what time), and `origin` names the machine.

    >>> page = html([("empty", Inspection())])
    >>> page.startswith("<!doctype html>"), "Nothing was compiled" in page
    (True, True)
    """
    from compile_inspect.reporters.html import Limits, Tour, render

    if comparison and len(captures) != 2:
        raise ValueError(f"a comparison needs two captures, not {len(captures)}")
    if comparison and lessons:
        raise ValueError(f"a comparison has no lessons, but {len(lessons)} were passed: leave out one of the two")
    if not lessons and (sentence or origin):
        raise ValueError(f"{sentence or origin!r} describes lessons, but there are none: pass them with lessons=")
    name = title or " and ".join(label for label, _ in captures[:2])
    reports = [_capture_report(label, inspection) for label, inspection in captures]
    generator = f"compile-inspect {__version__}"
    limits = Limits.none() if whole else None
    tour = Tour(lessons, sentence, origin) if lessons else None
    heading = f"{name} · compile-inspect" if name else "compile-inspect"
    return render(reports, title=heading, generator=generator, comparison=comparison, limits=limits, tour=tour)


def _capture_report(label: str, inspection: Inspection) -> CaptureReport:
    from compile_inspect.advice.accidental_guards import accidental_guards
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.recompiles.root_causes import root_causes
    from compile_inspect.reporters.html import CaptureReport
    from compile_inspect.wording.quantities import count

    findings, unmatched = findings_of(inspection)
    causes = count(unmatched, "cause")
    note = f"Fixes for {causes} of graph breaks that this capture does not contain are not shown."
    notes = [note] if unmatched else []
    diff = differ(inspection.sources)
    return CaptureReport(label, inspection, findings, accidental_guards(inspection), diff, notes, root_causes(inspection))


def findings_of(inspection: Inspection) -> tuple[tuple[Finding, ...], int]:
    """The causes of graph breaks with their trials, and how many trials match no cause."""
    from compile_inspect.fixes.planning import advise_breaks

    tried = {_key(finding): finding for finding in inspection.findings}
    advised_findings = advise_breaks(inspection)
    unmatched = len(tried.keys() - {_key(finding) for finding in advised_findings})
    return sort_by_cost(tuple(tried.get(_key(finding), finding) for finding in advised_findings)), unmatched


def _key(finding: Finding) -> tuple[str, str, int, str]:
    place = finding.cause.own_location or finding.cause.location
    if place is None:
        return finding.cause.kind, "", 0, ""
    return finding.cause.kind, place.file, place.line, place.code.strip()


def summary_text(inspection: Inspection) -> str:
    """The summary of a capture, without color.

    >>> print(summary_text(Inspection()))
    Nothing was compiled during the recording.
    """
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.reporters.text import summary, summary_details

    console, output = _buffer_console()
    summary.render_overview([inspection], console)
    summary_details.render(inspection, console, ShowOptions())
    return _trimmed(output)


def timing_text(timing: Timing) -> str:
    """The tables of a timing, without color."""
    from compile_inspect.reporters.options import ShowOptions
    from compile_inspect.reporters.text.timing import print_timing

    console, output = _buffer_console()
    print_timing(timing, console, ShowOptions())
    return _trimmed(output)


def breaks_text(report: BreakReport) -> str:
    """The graph breaks of a target with their fixes, without color."""
    from compile_inspect.fixes.diffs import differ
    from compile_inspect.reporters.text.break_reports import render_breaks

    console, output = _buffer_console()
    render_breaks(report, console, differ(report.inspection.sources, disk=True))
    return _trimmed(output)


def fix_text(report: FixReport) -> str:
    """A proven fix, without color."""
    from compile_inspect.reporters.text.break_reports import render_fix

    console, output = _buffer_console()
    render_fix(report, console)
    return _trimmed(output)


def forecast_text(forecast: RecompileForecast) -> str:
    """A prediction of recompiles with remedies, without color."""
    from compile_inspect.reporters.text.forecast import render, render_comparison, render_treatments

    console, output = _buffer_console()
    render(forecast, console)
    if forecast.comparison is not None:
        render_comparison(forecast.comparison, console)
    render_treatments(forecast.causes, console)
    return _trimmed(output)


def _buffer_console() -> tuple[Console, StringIO]:
    from rich.console import Console

    output = StringIO()
    return Console(file=output, width=_WIDTH, color_system=None, markup=False, emoji=False, highlight=False), output


def _trimmed(output: StringIO) -> str:
    return "\n".join(line.rstrip() for line in output.getvalue().strip("\n").split("\n"))
