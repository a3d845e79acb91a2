"""Tables of the solver's other benchmarks, made of what they store."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rendering.tables import duration, geometric_mean, mean_with_interval, median, number, spread, status_words, table

Record = dict[str, Any]

MAX_OBJECTIVE_DIFFERENCE = 1e-4
"""Relative difference of objectives up to which two answers count as the same."""
KINK_WAYS = ("kinks_read", "kinks_not_read")


def composite_ratios(records: Iterable[Record]) -> list[float]:
    """Evaluations with kinks read from the program ÷ those without."""
    return [_work(one["kinks_read"]) / _work(one["kinks_not_read"]) for one in records]


def _work(run: Record) -> int:
    """Values and Jacobians together."""
    return int(run["values"] + run["jacobians"])


def composite_summary(records: Sequence[Record]) -> str:
    """How many problems were proven, and the mean ratio."""
    ratios = composite_ratios(records)
    proven = [sum(one[way]["status"] == "STATIONARY" for one in records) for way in KINK_WAYS]
    return (
        f"Proven stationary: {proven[0]} of {len(records)} with kinks read from the program, {proven[1]} without. "
        f"Geometric mean of the ratios: {geometric_mean(ratios):.3f}, the largest {max(ratios):.2f}."
    )


def composite_table(records: Sequence[Record]) -> str:
    """A row for each problem."""
    rows = []
    for one, ratio in zip(records, composite_ratios(records), strict=True):
        read, stepped = (one[way] for way in KINK_WAYS)
        difference = (read["f"] - stepped["f"]) / (1 + abs(stepped["f"]))
        same = abs(difference) <= MAX_OBJECTIVE_DIFFERENCE
        cells = [_composite_cell(read), _composite_cell(stepped)]
        ratio_cell = f"{ratio:.3f}" + ("" if same else ", higher f" if difference > 0 else ", lower f")
        rows.append([one["problem"], read["kinks"], read["active"], *cells, ratio_cell, _composite_peer(one)])
    headings = [
        "problem", "kinks", "at the solution", "kinks read: evaluations, seconds", "not read: evaluations, seconds", "ratio",
        "other solver: difference in f, seconds",
    ]  # fmt: skip
    return table(headings, rows)


def _composite_peer(record: Record) -> str:
    """How far our objective is above the peer's, its seconds, and whether it ends at the same kinks."""
    peer, read = record.get("peer"), record["kinks_read"]
    if peer is None:
        return "–"
    difference = (read["f"] - peer["f"]) / (1 + abs(peer["f"]))
    kinks = "same kinks" if peer["active"] == read["active"] else f"{peer['active']} kinks"
    return f"{peer['name']} {difference:+.0e}, {peer['seconds']:.2f}, {kinks}"


def _composite_cell(run: Record) -> str:
    status = "" if run["status"] == "STATIONARY" else f" ({status_words(run['status'])})"
    return f"{_work(run)}, {run['seconds']:.2f}{status}"


def kinked_table(samples: Mapping[str, Sequence[Record]]) -> str:
    """A row for each set of problems whose constraints have kinks."""

    def mean(problems: Sequence[Record], key: str) -> str:
        means = [statistics.fmean(one[key]) for one in problems if one[key]]
        return f"{geometric_mean(means):.1f}" if means else "–"

    rows = []
    for name, problems in samples.items():
        starts = len(problems[0]["evaluations"])
        stationary, better = (sum(one[key] for one in problems) for key in ("stationary", "better_without_kinks"))
        evaluations = [mean(problems, key) for key in ("evaluations", "evaluations_without_kinks")]
        rows.append([name, f"{len(problems)} × {starts}", stationary, *evaluations, better if evaluations[1] != "–" else "–"])
    headings = [
        "set", "problems × starts", "proven stationary", "evaluations, geometric mean", "same problems without kinks",
        "runs with a lower f without kinks",
    ]  # fmt: skip
    return table(headings, rows)


def random_table(runs: Sequence[Record]) -> str:
    """A row for each family of random problems, and one for all."""
    rows = []
    for family in [*dict.fromkeys(run["family"] for run in runs), None]:
        own = [run for run in runs if family is None or run["family"] == family]
        counts = [sum(run[name] for run in own) for name in ("solved", "proven", "false")]
        mean = geometric_mean(max(run["evaluations"], 1) for run in own)
        rows.append([family or "all", len(own), *counts, f"{mean:.1f}"])
    return table(["family", "runs", "solved", "proven", "false", "evaluations, geometric mean"], rows)


def random_comparison(old: Sequence[Record], new: Sequence[Record]) -> str:
    """Two versions on the problems that both have; the ratio of evaluations over those that both solved."""

    def key(run: Record) -> tuple[Any, ...]:
        return run["family"], run["size"], run["seed"], run["decades"]

    before = {key(run): run for run in old}
    pairs = [(before[key(run)], run) for run in new if key(run) in before]
    rows = []
    for family in [*dict.fromkeys(run["family"] for _, run in pairs), None]:
        own = [pair for pair in pairs if family is None or pair[0]["family"] == family]
        names = ("solved", "proven", "false")
        counts = [f"{sum(one[name] for one, _ in own)} → {sum(two[name] for _, two in own)}" for name in names]
        ratios = [two["evaluations"] / one["evaluations"] for one, two in own if one["solved"] and two["solved"]]
        rows.append([family or "all", len(own), *counts, mean_with_interval(ratios)])
    return table(["family", "runs", "solved", "proven", "false", "evaluations, new ÷ old"], rows)


def qp_libraries(problems: Mapping[str, Record]) -> list[str]:
    """The libraries that were measured beside the native method."""
    return [name for name in next(iter(problems.values()))["libraries"] if name != "native"]


def qp_summary_table(problems: Mapping[str, Record]) -> str:
    """A row for each library: means over all problems."""
    count = sum(one["measured"] for one in problems.values())
    rows = []
    for name in ["native", *qp_libraries(problems)]:
        means = [
            geometric_mean(median(_qp_ratios(one, name, way)) for one in problems.values()) for way in ("cold", "sequence")
        ]
        residuals = [one["libraries"][name]["cold_residuals"] for one in problems.values()]
        rows.append([
            name,
            *(number(mean) for mean in means),
            number(geometric_mean(qp_effect(one, name, "QP") for one in problems.values())),
            number(max(one["largest"] for one in residuals), 2),
            f"{sum(one['large'] for one in residuals)} of {count}",
            sum(one["missing"] for one in residuals),
        ])  # fmt: skip
    headings = [
        "library", "time, cold", "time, in sequence", "whole run, estimated", "largest KKT residual", "residual over 1e-7",
        "no answer",
    ]  # fmt: skip
    return table(headings, rows)


def qp_problem_tables(problems: Mapping[str, Record]) -> str:
    """The programs of each problem, and the ratio of each library on them."""
    rows = []
    for problem, measured in problems.items():
        runs = measured["runs"]["native"]
        rows.append([
            problem, measured["recorded"], "{} to {}".format(*measured["sizes"]),
            duration(_seconds_per_program(measured, "native", "cold")),
            duration(_seconds_per_program(measured, "native", "sequence")),
            f"{100 * median([one['QP'] / one['seconds'] for one in runs]):.0f} %",
            duration(median([one["QP"] / one["programs"] for one in runs])),
        ])  # fmt: skip
    headings = ["problem", "programs", "entries", "native, cold", "native, sequence", "QP share of a run", "QP in the run"]
    names = qp_libraries(problems)
    text = [table(headings, rows), ""]
    for way in ("cold", "sequence"):
        rows = [[problem, *(spread(_qp_ratios(one, name, way)) for name in names)] for problem, one in problems.items()]
        text += [f"Time ÷ time of the native method, {way}:", "", table(["problem", *names], rows), ""]
    for kind in ("QP", "no C"):
        rows = [[problem, *(number(qp_effect(one, name, kind)) for name in names)] for problem, one in problems.items()]
        text += [f"Time of a whole run ÷ that of a native run, {kind}:", "", table(["problem", *names], rows), ""]
    return "\n".join(text)


def _seconds_per_program(measured: Record, name: str, way: str) -> float:
    """The mean time of a program, the median of all rounds."""
    return median(measured["libraries"][name][way]) / int(measured["measured"])


def _qp_ratios(measured: Record, name: str, way: str) -> list[float]:
    """One ratio of times for each round."""
    libraries = measured["libraries"]
    return [one / ours for one, ours in zip(libraries[name][way], libraries["native"][way], strict=False)]


def qp_effect(measured: Record, name: str, kind: str) -> float:
    """The time of a whole run where a library solves the programs ÷ that of a native run, both for one evaluation."""

    def per_evaluation(method: str, *keys: str) -> float:
        return median([sum(one[key] for key in keys) / one["evaluations"] for one in measured["runs"][method]])

    programs = measured["recorded"] / measured["recorded_evaluations"]
    method = "native" if kind == "QP" else "python"
    rest = per_evaluation(method, "seconds") - per_evaluation(method, "QP")
    return (rest + programs * _seconds_per_program(measured, name, "sequence")) / per_evaluation("native", "seconds")


def growth_table(runs: Sequence[Record]) -> str:
    """Time and memory of runs with many variables (solver_scale.py)."""
    rows = [
        [
            f"{one['size']:,}", one["kind"], one["matrix"], one["evaluations"],
            f"{1e3 * one['seconds'] / one['iterations']:.0f}", f"{1e3 * one['seconds'] / one['evaluations']:.1f}",
            f"{one['share_of_the_function']:.0%}", f"{one['memory'] / 1e6:.0f}",
            "—" if one["pairs"] is None else f"{one['pairs'] / 1e6:.0f}",
        ]
        for one in runs
    ]  # fmt: skip
    headings = [
        "n", "problem", "matrix", "evaluations", "ms / iteration", "ms / evaluation", "of which the function", "MB",
        "pairs, MB",
    ]  # fmt: skip
    return table(headings, rows)


def matrix_table(matrices: Sequence[Record]) -> str:
    """Microseconds of updates and products of the solver's matrices (solver_scale.py)."""
    rows = [
        [f"{one['size']:,}", one["matrix"], f"{one['update_us']:.0f}", *(f"{value:.0f}" for value in one["product_us"])]
        for one in matrices
    ]
    return table(["n", "matrix", "update, µs", "product with 1 column, µs", "with 2", "with 12"], rows)
