"""Measurements: compile time, samples of calls, agreement with eager, caches and CUDA graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compile_inspect.records import CacheOutcome, CompilationOutcome, CudaGraphOutcome, Inspection
from compile_inspect.records.agreement import Agreement, VariantAgreement, Verdict
from compile_inspect.records.timing import Build, Measurement, Timing
from compile_inspect.reporters import timings as timing_words
from compile_inspect.reporters.html.places import Places
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.failures import sentence

Data = dict[str, Any]

_OUTCOME_TONES = {
    CompilationOutcome.COMPILED: "good",
    CompilationOutcome.FAILED: "bad",
    CompilationOutcome.SKIPPED: "warn",
    CompilationOutcome.UNFINISHED: "warn",
}
_CACHE_TONES = {CacheOutcome.HIT: "good", CacheOutcome.BYPASS: "warn"}
_GRAPH_TONES = {CudaGraphOutcome.USED: "good", CudaGraphOutcome.RECORDED: "good", CudaGraphOutcome.SKIPPED: "warn"}
_VERDICT_TONES = {
    Verdict.AGREES: "good",
    Verdict.ASSUMES: "good",
    Verdict.DISAGREES: "bad",
    Verdict.RANDOM: "warn",
    Verdict.NONDETERMINISTIC: "warn",
}
_MAX_SAMPLES = 400


def number(value: float | None) -> float | None:
    """A number that JSON can represent; None for NaN and infinities.

    >>> number(0.123456789123), number(float("nan"))
    (0.12345679, None)
    """
    return float(f"{value:.8g}") if value is not None and math.isfinite(value) else None


def origin_of(inspection: Inspection) -> float:
    """The start of the earliest phase or compilation."""
    starts = [phase.start for phase in inspection.phases] + [item.started for item in inspection.compilations if item.started]
    return min((start for start in starts if math.isfinite(start)), default=0.0)


def compilations_of(inspection: Inspection, places: Places) -> list[Data]:
    """Every compilation, in the order of the capture."""
    origin = origin_of(inspection)
    failures = {item.compilation: f"{sentence(item, inspection)}\n{item.message}" for item in inspection.failures}
    return [
        {
            "id": words(item.id),
            "name": function_name(item.function),
            "place": places.place(item.file, item.line, item.function),
            "outcome": item.outcome.value,
            "tone": _OUTCOME_TONES.get(item.outcome, "plain"),
            "backend": words(item.backend or ""),
            "started": None if item.started is None else number(item.started - origin),
            "seconds": number(item.seconds),
            "backward_seconds": number(item.backward_seconds),
            "operations": item.graph_calls,
            "guards": item.guard_count,
            "symbols": [[words(name), words(value)] for name, value in item.dynamic_symbols.items()],
            "recompile": item.is_recompile,
            "resume": item.is_resume,
            "attempts": item.attempts,
            "restart_reasons": [words(reason) for reason in item.restart_reasons],
            "failure": paragraph(failures.get(item.id, item.failure or "")),
        }
        for item in inspection.compilations
    ]


def time_of(inspection: Inspection, *, most: int) -> tuple[Data, int]:
    """Compile time as its longest phases, and how many were left out."""
    origin = origin_of(inspection)
    phases = [item for item in inspection.phases if math.isfinite(item.start) and math.isfinite(item.seconds)]
    selected = set(map(id, sorted(phases, key=lambda item: -item.seconds)[:most]))
    threads = {thread: position for position, thread in enumerate(dict.fromkeys(item.thread for item in phases))}
    selected_phases = sorted(
        (item for item in phases if id(item) in selected), key=lambda item: (threads[item.thread], item.start, item.depth)
    )
    data = {
        "total": number(inspection.compile_seconds),
        "phases": [
            {
                "name": words(item.name),
                "compilation": words(item.compilation or ""),
                "start": number(item.start - origin),
                "seconds": number(item.seconds),
                "own": number(item.own_seconds),
                "depth": max(0, item.depth),
                "thread": threads[item.thread],
            }
            for item in selected_phases
        ],
    }
    return data, len(phases) - len(selected_phases)


def timings_of(timings: Sequence[Timing]) -> list[Data]:
    """Every timing."""
    return [
        {
            "target": words(timing.target),
            "device": words(timing.device),
            "hardware": words(timing.hardware),
            "torch": words(timing.torch),
            "threads": timing.threads,
            "gradients": timing.gradients,
            "interrupted": words(timing.interrupted_during),
            "notes": [paragraph(note) for note in timing_words.build_notes(timing)],
            "points": [
                {
                    "sizes": [[words(name), size] for name, size in point.sizes.items()],
                    "inputs": [words(item) for item in point.inputs],
                    "measurements": [_measurement(item) for item in point.measurements],
                }
                for point in timing.points
            ],
        }
        for timing in timings
    ]


def _measurement(item: Measurement) -> Data:
    summary, speed, pays = item.summary, item.speedup, item.payback
    # A subset of the samples: a plot of thousands shows no more than one of hundreds.
    step = max(1, math.ceil(len(item.samples) / _MAX_SAMPLES))
    return {
        "variant": words(item.variant),
        "refused": words(item.refusal),
        "samples": [number(value) for value in item.samples[::step] if math.isfinite(value)],
        "median": None if summary is None else number(summary.median),
        "low": None if summary is None else number(summary.low),
        "high": None if summary is None else number(summary.high),
        "speed": None if speed is None else [number(speed.ratio), number(speed.low), number(speed.high)],
        "build": None if item.build is None else _build(item.build),
        "payback": None
        if pays is None
        else {
            "calls": pays.calls,
            "low": pays.low,
            "high": pays.high,
            "unclear": pays.is_unclear,
            "gain": number(pays.gain_seconds) or 0.0,
        },
        "peak_bytes": None if item.memory is None else item.memory.peak_bytes,
        "warnings": [warning.value for warning in item.warnings],
        "assumes": [words(text) for text in item.assumptions],
    }


def _build(build: Build) -> Data:
    return {
        "cold": number(build.cold_seconds),
        "warm": number(build.warm_seconds),
        "order_dependent": number(build.seconds),
        "text": timing_words.build_time(build),
    }


def agreements_of(agreements: Sequence[Agreement], places: Places) -> list[Data]:
    """Every comparison with eager."""
    return [
        {
            "name": words(agreement.function),
            "gradients": agreement.gradients,
            "points": [words(point) for point in agreement.points],
            "notes": [paragraph(note) for note in agreement.notes],
            "variants": [
                {
                    "name": words(item.name),
                    "verdict": item.verdict.value,
                    "tone": _VERDICT_TONES.get(item.verdict, "plain"),
                    "reason": paragraph(item.reason),
                    "differences": [paragraph(str(difference)) for difference in item.differences],
                    "assumptions": [paragraph(text) for text in item.assumptions],
                    "notes": [paragraph(text) for text in (*_why_eager(item), *item.notes, *_not_probed(item))],
                    "blame": "" if item.blame is None else paragraph(item.blame.message),
                    "place": None if item.blame is None else places.of(item.blame.location),
                }
                for item in agreement.variants
            ],
        }
        for agreement in agreements
    ]


def _why_eager(item: VariantAgreement) -> list[str]:
    return [] if item.eager_reason is None else [item.eager_reason.value]


def _not_probed(item: VariantAgreement) -> list[str]:
    """What the comparison did not probe, in one paragraph."""
    return [f"Not probed: {'; '.join(item.not_probed)}"] if item.not_probed else []


def caches_of(inspection: Inspection) -> list[Data]:
    """Every cache lookup."""
    return [
        {
            "cache": words(item.cache),
            "outcome": item.outcome.value,
            "tone": _CACHE_TONES.get(item.outcome, "plain"),
            "compilation": words(item.compilation or ""),
            "reason": words(item.reason),
            "saved": number(item.seconds_saved),
        }
        for item in inspection.caches
    ]


def cuda_graphs_of(inspection: Inspection, places: Places) -> list[Data]:
    """The outcomes of requests for CUDA graphs."""
    return [
        {
            "outcome": item.outcome.value,
            "tone": _GRAPH_TONES.get(item.outcome, "plain"),
            "reason": words(item.reason),
            "compilation": words(item.compilation or ""),
            "direction": item.direction.name.lower(),
            "times": item.times,
            "place": places.of(item.location),
        }
        for item in inspection.cuda_graphs
    ]
