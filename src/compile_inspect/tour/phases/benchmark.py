"""Phase 5 of the tour: eager and compiled calls over batch sizes, what the build costs, and when it pays back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compile_inspect.records.timing import Doubt
from compile_inspect.tour.calls import batch_of, model_name
from compile_inspect.wording.quantities import TIMES, count, seconds

if TYPE_CHECKING:
    from compile_inspect.records.timing import Measurement, Timing
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

BATCHES = {"mlp": (1, 64, 512), "information": (1, 16, 64), "block": (16,)}
"""The models to time and their batch sizes; sizes differ from earlier phases, so that every build is real."""
USER_BATCHES = (1, 8, 64)
_SAMPLE_SECONDS = 0.6
_SHORT_CALL_SECONDS = 1e-3
"""For shorter eager calls, the fixed overhead of a compiled call can make it slower."""
CHOICES = ("at every batch size tried", "at some batch sizes", "at none")


@dataclass(frozen=True)
class BatchResult:
    """Eager and compiled at one batch size; `speedup` comes with the ends of its 95 % interval."""

    model: str
    batch: int
    eager_seconds: float
    compiled_seconds: float
    speedup: tuple[float, float, float]
    build_seconds: float | None
    """A cold build in a separate process; None where none was timed."""
    payback: int | None
    """Calls until a cold build pays back; None where it never does or the samples leave it open."""
    doubts: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        """Whether other processes used so much of the machine that the numbers decide nothing."""
        return Doubt.BUSY.value in self.doubts

    @property
    def helps(self) -> bool:
        """Whether it is faster beyond the noise of the samples."""
        return self.speedup[1] > 1.0

    @property
    def hurts(self) -> bool:
        """Whether it is slower beyond the noise of the samples."""
        return self.speedup[2] < 1.0


@dataclass(frozen=True)
class BenchmarkSuite:
    """The measurements of `run_benchmark_suite`."""

    results: tuple[BatchResult, ...]
    agreements: tuple[tuple[str, str], ...] = ()
    """For each model, a sentence on whether the compiled model agrees with eager."""

    def of(self, model: str) -> tuple[BatchResult, ...]:
        """The results of a model, by batch size."""
        return tuple(sorted((item for item in self.results if item.model == model), key=lambda item: item.batch))

    def answer(self) -> tuple[str, ...]:
        """From which batch size on compiling helps, with the numbers of this run."""
        sentences = [self._model_sentence(model) for model in dict.fromkeys(item.model for item in self.results)]
        slowest = min(self.results, key=lambda item: item.speedup[0], default=None)
        extra = 0.0 if slowest is None else slowest.compiled_seconds - slowest.eager_seconds
        if slowest is not None and slowest.hurts and extra > 0 and not slowest.busy:
            explanation = (
                " Checking guards and entering compiled code has a fixed cost, which such a short call does not recover."
                if slowest.eager_seconds < _SHORT_CALL_SECONDS
                else ""
            )
            sentences.append(
                f"The largest slowdown is {slowest.model}{_at(slowest.batch)}: a compiled call takes {seconds(extra)} longer "
                "than the "
                f"{seconds(slowest.eager_seconds)} of eager.{explanation}"
            )
        sentences += [f"{model}: {sentence}." for model, sentence in self.agreements]
        if any(item.busy for item in self.results):
            sentences.append("Repeat this on an idle machine: python -m compile_inspect.benchmark.")
        return tuple(sentences)

    def _model_sentence(self, model: str) -> str:
        results = self.of(model)
        gains = [item for item in results if item.helps]
        speedups = "speedup over eager " + ", ".join(f"{item.speedup[0]:.2f}{TIMES}{_at(item.batch)}" for item in results)
        if any(item.busy for item in results):
            return f"{model}: inconclusive, because other processes used this machine; {speedups}."
        if not gains:
            return f"{model}: no gain beyond the noise at any size tried; {speedups}."
        upward = gains == list(results[-len(gains) :]) and len(results) > 1
        where = f"from batch {gains[0].batch} on" if upward else ", ".join(_at(item.batch).strip() for item in gains)
        last = gains[-1]
        payback = f" and pays back after {count(last.payback, 'call')}{_at(last.batch)}" if last.payback else ""
        build = "" if last.build_seconds is None else f" A cold build took {seconds(last.build_seconds)}{payback}."
        return f"{model}: compiling helps {where or 'here'}; {speedups}.{build}"


def _at(batch: int) -> str:
    """The batch size of a measurement; empty where no input has one."""
    return f" at batch {batch}" if batch else ""


def run_benchmark_suite(target: Target | None = None, *, guide: Guide | None = None) -> BenchmarkSuite:
    """Time models eagerly and compiled at several batch sizes, interleaved, and check that the results agree."""
    from compile_inspect import torch_private
    from compile_inspect.agreement.api import verify
    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    if not guide.machine.inductor:
        guide.note(guide.machine.missing_requirement)
        return BenchmarkSuite(())
    subject = "the model" if target else "the MLP"
    guide.ask(f"At which batch sizes is {subject} faster compiled than eager on this machine?", CHOICES)
    if target is not None:
        benchmarks = [(target, _sizes_of(target, guide))]
    else:
        benchmarks = [(guide.model(name), sizes) for name, sizes in BATCHES.items()]
    results: list[BatchResult] = []
    agreements = []
    for item, sizes in benchmarks:
        name = model_name(item)
        item = replace(item, gradients=False, further=())
        with guide.working(f"timing {name} at batch {', '.join(map(str, sizes)) or 'as given'}"), silence():
            timing = _time(item, sizes)
        with guide.working(f"comparing {name} with eager"), silence():
            torch_private.forget_compiled_code()
            agreement = verify(item, variants=["inductor"], samples=1, blame=False)
        results += _results(name, timing, batch_of(item))
        agreements.append((name, agreement.variants[0].reason))
        capture = guide.captures.get(name)
        if capture is not None:
            guide.captures[name] = replace(capture, timings=(timing,), agreements=(agreement,))
    suite = BenchmarkSuite(tuple(results), tuple(agreements))
    _show(suite, guide)
    return suite


def _time(target: Target, sizes: tuple[int, ...]) -> Timing:
    """Eager and compiled at every size; a cold build, which needs a separate process, at the last size only."""
    from compile_inspect.timing.api import measure

    def measure_at(batches: tuple[int, ...], builds: int) -> Timing:
        sweep = {"batch": list(batches)} if batches else None
        return measure(target, variants=["inductor"], seconds=_SAMPLE_SECONDS, sweep=sweep, builds=builds, warm=False)

    last = measure_at(sizes[-1:], builds=1)
    return last if len(sizes) < 2 else replace(last, points=(*measure_at(sizes[:-1], builds=0).points, *last.points))


def _sizes_of(target: Target, guide: Guide) -> tuple[int, ...]:
    """The batch sizes that the user's model accepts; none where its inputs have no batch dimension."""
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.timing.sweep import points
    from compile_inspect.variants import Task

    accepted: list[int] = []
    if not batch_of(target):
        return ()
    for size in sorted({*USER_BATCHES, batch_of(target)} - {0}):
        try:
            ((_, task),) = points(Task.of(target), {"batch": [size]})
            with torch.no_grad(), silence():
                task.function(*task.args, **task.kwargs)
        except Exception as error:
            guide.note(
                f"{model_name(target)} does not accept a batch of {size} ({type(error).__name__}), so this size is left out"
            )
        else:
            accepted.append(size)
    return tuple(accepted)


def _results(name: str, timing: Timing, batch: int) -> list[BatchResult]:
    results = []
    for point in timing.points:
        eager, compiled = point.of("eager"), point.of("inductor")
        if eager is None or compiled is None:
            continue
        if eager.summary and compiled.summary and compiled.speed and compiled.build:
            speedup = (compiled.speed.ratio, compiled.speed.low, compiled.speed.high)
            doubts = tuple(dict.fromkeys(doubt.value for item in (eager, compiled) for doubt in item.doubts))
            medians = eager.summary.median, compiled.summary.median
            size = point.sizes.get("batch", batch)
            cold = compiled.build.cold_seconds
            results.append(BatchResult(name, size, *medians, speedup, cold, _calls(compiled), doubts))
    return results


def _calls(measurement: Measurement) -> int | None:
    payback = measurement.payback
    return None if payback is None or payback.unclear else payback.calls


def _payback_text(item: BatchResult) -> str:
    if item.payback is not None:
        return count(item.payback, "call")
    return "never" if item.hurts else "not timed" if item.build_seconds is None else "unclear"


def _show(suite: BenchmarkSuite, guide: Guide) -> None:
    columns = [
        "Model",
        ">Batch",
        ">Eager",
        ">Compiled",
        ">Speedup over eager",
        ">95 % interval",
        ">Cold build",
        ">Pays back after",
    ]
    rows = [
        [
            item.model,
            str(item.batch),
            seconds(item.eager_seconds),
            seconds(item.compiled_seconds),
            f"{item.speedup[0]:.2f}{TIMES}",
            f"{item.speedup[1]:.2f} to {item.speedup[2]:.2f}",
            "not timed" if item.build_seconds is None else seconds(item.build_seconds),
            _payback_text(item),
        ]
        for item in suite.results
    ]
    guide.table("Eager and compiled calls, interleaved", columns, rows)
    for doubt in dict.fromkeys(doubt for item in suite.results for doubt in item.doubts):
        guide.remark(f"Warning: {doubt}.")
    first = suite.of(suite.results[0].model) if suite.results else ()
    if first and not any(item.busy for item in first):
        guide.reveal(0 if all(item.helps for item in first) else 1 if any(item.helps for item in first) else 2)
