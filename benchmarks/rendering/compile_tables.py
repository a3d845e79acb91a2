"""Tables of the benchmarks of compile_inspect, made of records; transcribed results are such records already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rendering.tables import geometric_mean, median, spread, table

Record = dict[str, Any]

WAYS = {
    "plain": "plain `torch.compile`",
    "recorded": "everything recorded, capture written",
    "tlparse": "`TORCH_TRACE`, then tlparse",
    "explain": "`torch._dynamo.explain`, then compile",
}
TUNE_LIMITS = {"cpu": 200e-6, "cuda": 300e-6}
"""Seconds per call in the best mode up to which a workload counts as small: there the cost of a call matters."""
TUNED = ("tune", "tune, outputs reused", "raw", "eager")
"""The columns of a tuning table that are not modes of torch.compile."""


def overhead_records(samples: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Record]:
    """A record for each way of looking at a compilation."""
    return [
        {
            "way": way,
            "wall_seconds": [run["wall"] for run in runs],
            "wall_ratio": [run["wall"] / plain["wall"] for run, plain in zip(runs, samples["plain"], strict=True)],
            "cpu_ratio": [run["cpu"] / plain["cpu"] for run, plain in zip(runs, samples["plain"], strict=True)],
        }
        for way, runs in samples.items()
    ]


def overhead_table(records: Sequence[Record]) -> str:
    """Compile time with recording and with other tools, by that without."""
    rows = [
        [WAYS[one["way"]], f"{median(one['wall_seconds']):.1f} s", spread(one["wall_ratio"], 4), spread(one["cpu_ratio"], 4)]
        for one in records
    ]
    return table(["way", "wall time", "ratio of wall time", "ratio of CPU time"], rows)


def growth_table(records: Sequence[Record]) -> str:
    """Recording of larger graphs and of more recompiles."""
    rows = [
        [
            f"{one['size']:,} {one['case']}",
            f"{median(one['plain_seconds']):.1f} s",
            f"{median(one['recorded_seconds']):.1f} s",
            spread(one["ratio"], 4),
            f"{one['capture_megabytes']:.2f} MB",
            f"{one['summary_seconds']:.2f} s",
        ]
        for one in records
    ]
    return table(["size", "plain", "recorded", "ratio", "capture", "`show summary`"], rows)


def page_table(records: Sequence[Record]) -> str:
    """Size and speed of reports."""

    def milliseconds(values: Sequence[float]) -> str:
        return f"{median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})"

    columns = ("first_paint_ms", "answers_ms", "line_lit_ms", "longest_pause_ms")
    rows = [
        [
            one["capture"],
            f"{one['nodes']:,}",
            f"{one['page_megabytes']:.2f} MB",
            f"{one['written_seconds']:.1f} s",
            *(milliseconds(one[column]) for column in columns),
        ]
        for one in records
    ]
    headings = ["capture", "nodes", "page", "written in", "first paint", "responds after", "line lit after", "longest pause"]
    return table(headings, rows)


def guard_table(records: Sequence[Record]) -> str:
    """The check in front of a tuned callable beside the eager call."""
    rows = []
    for one in records:
        cells = [one["program"], f"{1e6 * one['eager_seconds']:.0f}"]
        for figure, ratios in (("check_seconds", "ratios"), ("check_after_model_seconds", "ratios_after_model")):
            low, middle, high = min(one[ratios]), median(one[ratios]), max(one[ratios])
            cells += [f"{1e6 * one[figure]:.1f}", f"{middle:.1%} ({low:.1%} to {high:.1%})"]
        rows.append(cells)
    headings = ["program", "eager call, µs", "check in a row, µs", "÷ eager", "check after the model, µs", "÷ eager"]
    return table(headings, rows)


def mode_ratio(record: Record) -> float:
    """The time of the best mode of torch.compile by that of `tune`."""
    return _best_mode(record) / median(record["times"]["tune"])


def small_workloads(records: Sequence[Record], device: str) -> list[Record]:
    """The workloads whose calls are short even in the best mode."""
    return [one for one in records if _best_mode(one) < TUNE_LIMITS[device]]


def mean_mode_ratio(records: Sequence[Record], device: str) -> tuple[float, int]:
    """The geometric mean of best mode ÷ tune over the small workloads, and how many these are."""
    small = small_workloads(records, device)
    return geometric_mean(mode_ratio(one) for one in small), len(small)


def _best_mode(record: Record) -> float:
    return min(median(times) for way, times in record["times"].items() if way not in TUNED)


def tune_table(records: Sequence[Record], device: str) -> str:
    """Microseconds of every way, and what they come to."""
    present = {way: None for one in records for way in one["times"]}
    modes = [way for way in present if way not in TUNED]
    columns = [way for way in ("eager", *modes, "tune", "tune, outputs reused", "raw") if way in present]
    rows = []
    for one in records:
        cells = [f"{1e6 * median(one['times'][way]):.1f}" if way in one["times"] else "–" for way in columns]
        rows.append([one["workload"], *cells, one["chosen"], f"{mode_ratio(one):.2f}"])
    names = {"raw": "raw replay"} | {mode: mode.removeprefix("inductor/") for mode in modes}
    lines = [table(["workload", *(names.get(way, way) for way in columns), "chosen", "best mode ÷ tune"], rows), ""]
    if small_workloads(records, device):
        mean, count = mean_mode_ratio(records, device)
        limit = f"{1e6 * TUNE_LIMITS[device]:.0f} µs"
        lines.append(f"- Geometric mean of best mode ÷ tune over the {count} workloads under {limit} a call: **{mean:.2f}**")
    worst = max(median(one["times"]["tune"]) / median(one["times"]["eager"]) for one in records)
    lines.append(f"- `tune` ÷ eager, largest: {worst:.3f}")
    replays = [median(one["times"]["tune"]) / median(one["times"]["raw"]) for one in records if "raw" in one["times"]]
    if replays:
        lines.append(f"- `tune` ÷ raw replay: {min(replays):.2f} to {max(replays):.2f}")
    return "\n".join(lines)


def payback_table(records: Sequence[Record]) -> str:
    """Predicted beside observed paybacks, and how many predictions are within a quarter."""
    headings = ["workload", "variant", "build", "predicted from 50 calls", "observed", "how observed", "error"]
    printed = [one for one in records if not one["unclear"] and one["predicted_calls"] and one["observed_calls"]]
    errors = [abs(one["predicted_calls"] / one["observed_calls"] - 1) for one in printed]
    lines = [table(headings, [payback_row(one) for one in records])]
    if errors:
        close = sum(error <= 0.25 for error in errors)
        text = f"Of {len(errors)} predictions that `bench` prints as a number, {close} are within 25 %"
        lines += ["", f"{text}; the largest error is {100 * max(errors):.0f} %."]
    return "\n".join(lines)


def payback_row(record: Record) -> list[str]:
    """One workload and variant."""

    def calls(number: int | None) -> str:
        return "never" if number is None else f"{number:,}"

    predicted, observed = record["predicted_calls"], record["observed_calls"]
    if predicted is None or observed is None:
        error = "both never" if predicted is observed else "they disagree"
    else:
        error = f"{100 * (predicted / observed - 1):+.0f} %" + (", reported as unclear" if record["unclear"] else "")
    return [
        record["workload"],
        record["variant"],
        f"{record['build_seconds']:.1f} s",
        f"{calls(predicted)} ({calls(record['low_calls'])} to {calls(record['high_calls'])})",
        calls(observed),
        "by counting calls" if record["crossed"] else f"from the mean of {calls(record['calls'])} calls",
        error,
    ]


def build_order_table(samples: Mapping[str, Any]) -> str:
    """Builds and paybacks of the same variants in several orders."""
    runs = samples["runs"]
    rows = []
    for workload in dict.fromkeys(run["workload"] for run in runs):
        mine = [run for run in runs if run["workload"] == workload]
        for variant in sorted({name for run in mine for name in run["variants"]}):
            by_order: dict[str, list[Record]] = {}
            for run in mine:
                by_order.setdefault(",".join(run["order"]), []).append(run["variants"][variant])
            cells = [workload, variant]
            for key in ("order_dependent_seconds", "cold_seconds", "cold_cpu_seconds", "warm_seconds", "payback_calls"):
                cells += _order_cells([_middle(builds, key) for builds in by_order.values()], key)
            rows.append(cells)
    headings = [
        "workload", "variant", "in the measuring process", "spread", "cold", "spread", "cold, CPU time", "spread", "warm",
        "payback in calls", "spread",
    ]  # fmt: skip
    return table(headings, rows)


def _middle(records: Sequence[Record], key: str) -> float | None:
    """The median of a figure; a payback that `bench` itself calls unclear is none."""
    clear = [one for one in records if key != "payback_calls" or not one["unclear"]]
    known = [one[key] for one in clear if one[key] is not None]
    return median(known) if known else None


def _order_cells(medians: Sequence[float | None], key: str) -> list[str]:
    """The range over the orders and, but for warm builds, its spread."""
    known = [value for value in medians if value is not None]
    if len(known) < len(medians):
        return ["never or unclear" if key == "payback_calls" else "not known", ""]
    low, high = min(known), max(known)
    text = f"{low:,.0f} to {high:,.0f}" if key == "payback_calls" else f"{low:.1f} to {high:.1f} s"
    return [text] if key == "warm_seconds" else [text, f"{high / low:.2f}"]
