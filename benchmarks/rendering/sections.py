"""The sections of docs/reference/results.md: what each benchmark measures, and how its file becomes tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stored_results import Document, unpack

from rendering import compile_tables, solver_growth, solver_mechanisms, solver_quality, solver_speed, solver_tables
from rendering.page import Section


def records_of(document: Document, make: Any = None) -> Any:
    """The records of a file: its summary, or those made of its samples."""
    if document["summary"] is not None:
        return document["summary"]
    return make(document["samples"]) if make else document["samples"]


def _tiers(document: Document) -> str:
    """The three parts of solver_speed.py tiers; a part without results is left out."""
    titles = {
        "problems": "Published problems, empty caches:",
        "long": "Many runs one after the other from random starts, tolerance 1e-8, empty caches:",
        "kept": "With the package of an earlier process:",
    }
    parts = document["summary"] or {part: solver_speed.tier_records(runs) for part, runs in document["samples"].items()}
    return "\n\n".join(f"{titles[part]}\n\n{solver_speed.tier_table(parts[part])}" for part in titles if parts.get(part))


def _scale_picture(document: Document, path: Path, digest: str) -> None:
    solver_growth.draw_scale(records_of(document, solver_growth.scale_records), path, digest)


def _phase_picture(document: Document, path: Path, digest: str) -> None:
    solver_growth.draw_phases(records_of(document, solver_growth.phase_records), path, digest)


def _quality(document: Document) -> str:
    link = "[Data profiles, every problem, and how each solver was run](../explanation/solver-quality.md)."
    return f"{solver_quality.readme_table(document['samples'])}\n\n{link}"


def _units(document: Document) -> str:
    link = (
        "[The worth of each mechanism and threshold of the solver](../explanation/solver-mechanisms.md) is a page of its own."
    )
    return f"{solver_mechanisms.unit_table(unpack(document['samples']))}\n\n{link}"


COMPILE_SECTIONS = (
    Section(
        "What recording costs",
        "recorder_overhead",
        "Compile time of a two-layer GPT-2, forward and backward, with all caches off: plain, with everything recorded, and "
        "with two other ways of looking at a compilation. Every measurement is a fresh process; ratios are to plain in the "
        "same round.",
        lambda document: compile_tables.overhead_table(records_of(document, compile_tables.overhead_records)),
    ),
    Section(
        "How recording grows",
        "recorder_scale",
        "Compile time, plain and recorded, of a chain of operations with a matrix product every tenth (forward and "
        "backward, Inductor, empty cache), and of one function that is compiled again for every length (backend "
        "`aot_eager`). The last column is the time of `compile-inspect show FILE summary` on the capture.",
        lambda document: compile_tables.growth_table(records_of(document)),
    ),
    Section(
        "The report page",
        "report_page",
        "Size of a report, time to write it, and speed in headless Chromium, with a browser of its own for every round. The "
        "page responds when its script has come to rest; a line is lit when its counterparts are, and the slowest of a "
        "hundred lines counts; the last column is the longest pause between two frames while the drawn graph is dragged and "
        "zoomed.",
        lambda document: compile_tables.page_table(records_of(document)),
    ),
    Section(
        "The guard of a tuned callable",
        "guard_cost",
        "Time of the check in front of a tuned callable beside the eager call. In a row, the checks read what is in the "
        "processor's caches; after the model, they read what its weights have evicted.",
        lambda document: compile_tables.guard_table(records_of(document)),
    ),
    Section(
        "tune on a CPU",
        "tune_cpu",
        "Microseconds per call of eager, of every mode of `torch.compile`, and of what `tune` returns, its guard included: "
        "medians of interleaved samples in one process.",
        lambda document: compile_tables.tune_table(records_of(document), "cpu"),
    ),
    Section(
        "tune on an H200",
        "tune_cuda",
        "The same on a GPU, every call synchronized. A raw replay is the recorded CUDA graph alone: no inputs, no check, no "
        "outputs.",
        lambda document: compile_tables.tune_table(records_of(document), "cuda"),
    ),
    Section(
        "tune on an H200, beside the mode without CUDA graphs",
        "tune_cuda_no_cudagraphs",
        "The same with `max-autotune-no-cudagraphs` and `reduce-overhead` only.",
        lambda document: compile_tables.tune_table(records_of(document), "cuda"),
    ),
    Section(
        "Payback",
        "payback",
        "After how many calls a build has paid back: predicted from 50 calls, and observed by calling eager and compiled "
        "code in turns until the sums cross. Where that takes longer than the limit, the observed payback is the build "
        "divided by the mean gain of all calls. A prediction whose interval is wider than a factor of two is reported as "
        "unclear.",
        lambda document: compile_tables.payback_table(records_of(document)),
    ),
    Section(
        "Builds in any order",
        "build_order",
        "Build times and paybacks of the same variants in several orders, each run in a process of its own with an empty "
        "cache. A range is that of the medians of each order, a spread its largest value by its smallest.",
        lambda document: compile_tables.build_order_table(records_of(document)),
    ),
)
SOLVER_SECTIONS = (
    Section(
        "Problems solved, beside other solvers",
        "solver_quality",
        "How many problems with a known optimum each solver solved, and the median of its evaluations over those that every "
        "solver of the column solved. A problem is solved at the first point evaluated with violation ≤ 1e-6 and f within 1e-6 "
        "of the optimum, within 10,000 evaluations and 60 seconds. A false convergence report is one from a run that evaluated "
        "no such point; on a nonconvex problem it may have found another local minimizer.",
        _quality,
    ),
    Section(
        "Time to PyGRANSO's own quality",
        "solver_speed_published",
        "PyGRANSO and `nonsmooth.pygranso` with the same function, start and options; the target is the quality of the "
        "point at which PyGRANSO ends. Start of the process and imports are not counted.",
        lambda document: solver_speed.published_table(document["samples"]),
    ),
    Section(
        "What the solver adds to its evaluations",
        "solver_speed_overhead",
        'Run time by the time of the evaluations made, each measured by itself at points of the run; `compile="never"`.',
        lambda document: solver_speed.overhead_table(records_of(document, solver_speed.overhead_records)),
    ),
    Section(
        "Where the time goes",
        "solver_speed_phases",
        "The share of each phase in a run, and of PyGRANSO's run the share of its evaluations.",
        lambda document: "",
        _phase_picture,
        "Stacked bars: the share of each phase, for each problem, ours above PyGRANSO's",
    ),
    Section(
        'compile="auto"',
        "solver_speed_tiers",
        'Run time with `compile="never"` by that with `compile="auto"`, in processes that take turns.',
        _tiers,
    ),
    Section(
        "Many inequalities",
        "solver_speed_constraints",
        "Time of runs on a convex problem in 50 variables within random half-spaces. PyGRANSO's times per iteration "
        "are those of another day, and an iteration of one solver does not do the same work as one of the other.",
        lambda document: solver_speed.constraint_table(records_of(document, solver_speed.constraint_records)),
    ),
    Section(
        "Many variables",
        "solver_speed_scale",
        "Time per iteration and memory of runs of 40 iterations on a separable nonsmooth problem with a kink in every "
        "variable and 20 pairs of limited memory. At n = 1,000 the kinks are read from the program; above 5,000 kinks they are "
        "not. Growth is the exponent of time between two rows: 1 is linear. Memory is the peak of the process minus its size "
        "before the run.",
        lambda document: solver_growth.scale_table(records_of(document, solver_growth.scale_records)),
        _scale_picture,
        "Time per iteration and peak memory against the number of variables, both axes logarithmic",
    ),
    Section(
        "On an H200",
        "solver_speed_gpu",
        "Runs in float64 on the GPU. The kernels are loaded before the clock starts. Idle is the part of a run during which "
        "the device neither computes nor copies, by torch's profiler.",
        lambda document: solver_growth.gpu_table(records_of(document, solver_growth.gpu_records)),
    ),
    Section(
        "Kinks read from the program",
        "composite_problems",
        'Evaluations (values and Jacobians) with `structure="auto"` and with "off", from the same start.',
        lambda document: (
            f"{solver_tables.composite_summary(document['samples'])} [Every problem, beside Clarabel and "
            "IPOPT](../explanation/what-the-solver-sees.md#what-visible-kinks-save)."
        ),
    ),
    Section(
        "Constraints with kinks",
        "kinked_constraints",
        "Evaluations of at most 3,000, with default options, on four sets: inequalities of known problems merged into their "
        "maximum, the maximum of convex quadratics, several such maxima, and equalities that describe surfaces with edges.",
        lambda document: solver_tables.kinked_table(document["samples"]),
    ),
    Section(
        "Random problems in bad units",
        "solver_random",
        "Random problems of fifteen families, with variables, objective and constraints multiplied by random factors. A "
        "false proof is one that an independent check refutes.",
        _units,
    ),
    Section(
        "Libraries for quadratic programs",
        "qp_libraries",
        "The programs of 14 runs, solved by the native active-set method and by libraries called from Python: geometric "
        "means of the time by that of the native method, one program at a time (cold) and in the order of the run with the "
        "last answer as the start (in sequence), and the estimated time of a whole run.",
        lambda document: solver_tables.qp_summary_table(document["samples"]["problems"]),
    ),
    Section(
        "Matrices and processor time with many variables",
        "solver_scale",
        "Processor time and memory of 75 iterations on a function with a kink in every variable, free, in a ball, or with a "
        "given sum; and updates and products of the solver's matrices.",
        lambda document: "\n\n".join(
            [
                solver_tables.growth_table(document["samples"]["runs"]),
                solver_tables.matrix_table(document["samples"]["matrices"]),
            ]
        ),
    ),
)
PARTS = (("compile_inspect", COMPILE_SECTIONS), ("nonsmooth", SOLVER_SECTIONS))
