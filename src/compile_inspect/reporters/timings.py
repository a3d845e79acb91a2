"""Timings as the texts and numbers that the terminal, Markdown and CSV share, and their export to files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from compile_inspect.errors import InspectError
from compile_inspect.records.timing import (
    Build,
    CacheUse,
    Measurement,
    MeasurementWarning,
    Memory,
    Payback,
    Speedup,
    Summary,
    Timing,
)
from compile_inspect.serialization import to_data
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import TIMES, count, seconds, size, sizes

FORMATS = {"json": "json", "csv": "csv", "md": "markdown", "markdown": "markdown"}
"""Suffixes of exported files, and the format each stands for."""

ORDER_DEPENDENT = "warm, order-dependent"
"""The label of a build that was timed only in the measuring process."""
COLD_NOTE = "cold: a build in a separate process with an empty cache folder{median}; the payback counts a cold build"
WARM_NOTE = "warm: a build in a separate process with the caches of the cold build"
ORDER_DEPENDENT_NOTE = (
    f"{ORDER_DEPENDENT}: a build in the measuring process, which reuses caches of the builds before it; "
    "it does not show when a build pays back"
)

COLUMNS = ("Variant", "Median", "95 % interval", "Speedup", "Build", "Payback (calls)", "Memory", "Warnings")
NUMBERS = (
    "variant",
    "refused",
    "samples",
    "median_seconds",
    "low_seconds",
    "high_seconds",
    "mean_seconds",
    "deviation_seconds",
    "outliers",
    "speedup",
    "speedup_low",
    "speedup_high",
    "build_cold_seconds",
    "build_warm_seconds",
    "build_order_dependent_seconds",
    "build_caches",
    "payback_calls",
    "payback_low",
    "payback_high",
    "peak_bytes",
    "warnings",
)


def cells(item: Measurement) -> tuple[str, ...]:
    """One measurement, a text for each of `COLUMNS`."""
    if item.summary is None:
        return (item.variant, "cannot run", *[""] * (len(COLUMNS) - 3), one_line(item.refusal))
    return (
        item.variant,
        seconds(item.summary.median),
        interval(item.summary),
        speedup(item.speedup),
        build_time(item.build),
        payback_text(item.payback),
        memory_text(item.memory),
        ", ".join(warning_name(warning) for warning in item.warnings),
    )


def warning_name(warning: MeasurementWarning) -> str:
    """The short name of a warning.

    >>> warning_name(MeasurementWarning.SLOW_FIRST_CALL)
    'slow first call'
    """
    return warning.name.lower().replace("_", " ").replace("cpu", "CPU")


def interval(summary: Summary) -> str:
    """The ends of the interval.

    >>> interval(Summary(9, 0.001, 0.0009, 0.0012, 0.001, 0.0)), interval(Summary(9, 0.02, 0.019, 0.021, 0.02, 0.0))
    ('900.0 µs–1.2 ms', '19.0–21.0 ms')
    """
    low, high = seconds(summary.low), seconds(summary.high)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(' ' + unit) and ' ' not in unit else low}–{high}"


def speedup(speed: Speedup | None) -> str:
    """The speedup over eager, with a trailing `?` if its interval contains 1.

    >>> speedup(Speedup(2.0, 1.9, 2.1)), speedup(Speedup(1.05, 0.9, 1.2))
    ('2.00×', '1.05×?')
    """
    if speed is None:
        return ""
    return f"{speed.ratio:.2f}{TIMES}" + ("?" if speed.low <= 1.0 <= speed.high else "")


def build_time(build: Build | None) -> str:
    """The build time: cold and warm in separate processes, or else in the measuring process, with a label.

    >>> build_time(Build(0.5, cold_seconds=9.0, warm_seconds=3.5)), build_time(Build(0.5))
    ('9.00 s cold, 3.50 s warm', '500.0 ms warm, order-dependent')
    """
    if build is None or build.cache_use is CacheUse.NOT_NEEDED:
        return ""
    if build.cold_seconds is not None:
        warm = "" if build.warm_seconds is None else f", {seconds(build.warm_seconds)} warm"
        return f"{seconds(build.cold_seconds)} cold{warm}"
    return f"{seconds(build.seconds)} {ORDER_DEPENDENT}"


def build_notes(timing: Timing) -> list[str]:
    """Notes that explain the builds, and why a cold or warm build is missing."""
    measurements = [item for point in timing.points for item in point.measurements if item.build and build_time(item.build)]
    builds = [(item.variant, item.build) for item in measurements if item.build is not None]
    notes = []
    if any(build.cold_seconds is not None for _, build in builds):
        most = max(len(build.cold_samples) for _, build in builds)
        notes.append(COLD_NOTE.format(median=f", the median of {most}" if most > 1 else ""))
    if any(build.warm_seconds is not None for _, build in builds):
        notes.append(WARM_NOTE)
    if any(build.cold_seconds is None for _, build in builds):
        notes.append(ORDER_DEPENDENT_NOTE)
    for state in ("cold", "warm"):
        missing: dict[str, dict[str, None]] = {}
        for name, build in builds:
            lacks_cold = build.cold_seconds is None
            if lacks_cold if state == "cold" else build.warm_seconds is None and build.reason and not lacks_cold:
                missing.setdefault(build.reason, {})[one_line(name)] = None
        for reason, names in missing.items():
            notes.append(f"no {state} build of {', '.join(names)}" + (f": {one_line(reason)}" if reason else ""))
    return notes


def payback_text(payback: Payback | None) -> str:
    """After how many calls the build pays back.

    >>> payback_text(Payback(5000, 4800, 5300)), payback_text(Payback(None, None, None)), payback_text(Payback(None, 900, None))
    ('5,000 (4,800–5,300)', 'never', 'unclear (900–never)')
    >>> payback_text(Payback(5000, 900, None)), payback_text(Payback(5000, 3000, 9000))
    ('unclear (900–never)', 'unclear (3,000–9,000)')
    """
    if payback is None:
        return ""
    if payback.never_pays:
        return "never"
    high = "never" if payback.high is None else f"{payback.high:,}"
    return f"{'unclear' if payback.is_unclear else f'{payback.calls:,}'} ({payback.low or 0:,}–{high})"


def memory_text(memory: Memory | None) -> str:
    """The peak memory; `-` if unknown."""
    return "-" if memory is None or memory.peak_bytes is None else size(memory.peak_bytes)


def heading(timing: Timing) -> tuple[str, ...]:
    """What was timed, and on which hardware."""
    passes = "forward and backward" if timing.gradients else "forward"
    hardware = timing.hardware if timing.device != "cpu" else count(timing.threads, "thread")
    ended = f"interrupted while {one_line(timing.interrupted_during)}" if timing.interrupted_during else ""
    parts = (one_line(timing.target), passes, timing.device, one_line(hardware), f"torch {one_line(timing.torch)}")
    return (*parts, ended) if ended else parts


def as_json(timings: Sequence[Timing]) -> str:
    """All data, including raw samples; NaN and infinities become null."""
    return json.dumps({"timings": [_finite(to_data(timing)) for timing in timings]}, indent=1)


def as_csv(timings: Sequence[Timing]) -> str:
    """One line per variant and size, with times in seconds; without raw samples."""
    axes = list(dict.fromkeys(name for timing in timings for point in timing.points for name in point.sizes))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["target", "device", "gradients", *axes, *NUMBERS])
    for timing in timings:
        for point in timing.points:
            for item in point.measurements:
                at = [point.sizes.get(name, "") for name in axes]
                writer.writerow([timing.target, timing.device, timing.gradients, *at, *_numbers(item)])
    return text.getvalue()


def _numbers(item: Measurement) -> Iterator[object]:
    summary, speed, build, pays = item.summary, item.speedup, item.build, item.payback
    yield from (item.variant, item.refusal, len(item.samples))
    yield from (
        (summary.median, summary.low, summary.high, summary.mean, summary.deviation, len(summary.outliers))
        if summary
        else [""] * 6
    )
    yield from (speed.ratio, speed.low, speed.high) if speed else [""] * 3
    yield from (build.cold_seconds, build.warm_seconds, build.seconds, build.cache_use.name) if build else [""] * 4
    yield from (("never" if pays.calls is None else pays.calls), pays.low, pays.high) if pays else [""] * 3
    yield "" if item.memory is None else item.memory.peak_bytes
    yield " ".join(warning.name for warning in item.warnings)


def as_markdown(timings: Sequence[Timing]) -> str:
    """One table per size."""
    lines: list[str] = []
    for timing in timings:
        lines += [" · ".join(_escaped(part) for part in heading(timing)), ""]
        for point in timing.points:
            if point.sizes:
                lines += [f"**{_escaped(sizes(point.sizes))}**", ""]
            lines += ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 2) + "|---|"]
            lines += ["| " + " | ".join(_escaped(cell) for cell in cells(item)) + " |" for item in point.measurements]
            lines.append("")
        lines += [f"- {_escaped(note)}" for note in build_notes(timing)]
        lines += [f"- {_escaped(warning_name(warning))}: {warning.value}" for warning in all_warnings(timing)]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def all_warnings(timing: Timing) -> list[MeasurementWarning]:
    """The warnings of all measurements, in the order of the enum."""
    reported = {warning for point in timing.points for item in point.measurements for warning in item.warnings}
    return [warning for warning in MeasurementWarning if warning in reported]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def format_of(path: Path, named: str | None) -> str:
    """The format to write: the named one, else by the suffix of the file.

    >>> format_of(Path("a.md"), None), format_of(Path("a.txt"), "csv")
    ('markdown', 'csv')
    """
    format_name = FORMATS.get((named or path.suffix.removeprefix(".")).lower())
    if format_name is None:
        source = f"--format {named}" if named else f"the suffix of {path}"
        raise InspectError(f"{source} is not one of json, csv and md: end the file name in .json, .csv or .md, or add --format")
    return format_name


def export(timings: Sequence[Timing], path: Path, *, named: str | None = None) -> None:
    """Write timings to a file, in the named format or by its suffix."""
    write = {"json": as_json, "csv": as_csv, "markdown": as_markdown}[format_of(path, named)]
    try:
        path.write_text(write(timings), encoding="utf-8")
    except OSError as error:
        raise InspectError(f"the timings cannot be written to {path}: {error.strerror or error}") from error


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
