"""Phase 5 of the tour: eager against compiled over batch sizes, what the build costs, and when it has paid back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compile_inspect.records.timing import Doubt
from compile_inspect.tour.calls import batch_of, model_name
from compile_inspect.wording.quantities import count, seconds

if TYPE_CHECKING:
    from compile_inspect.records.timing import Measurement, Timing
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

BATCHES = {"mlp": (1, 64, 512), "information": (1, 16, 64), "block": (16,)}
"""The models that are timed, and at which batch sizes; other ones than before, so that every build is a real one."""
OWN_BATCHES = (1, 8, 64)
_SECONDS = 0.6
_LITTLE = 1e-3
"""Where an eager call takes less, what a compiled one adds to every call can be what makes it slower."""
CHOICES = ("at every size that is tried", "at some of them", "at none")


@dataclass(frozen=True)
class BatchResult:
    """Eager and compiled at one batch size. `speed` is how many times faster, with the ends of its 95 % interval."""

    model: str
    batch: int
    eager_seconds: float
    compiled_seconds: float
    speed: tuple[float, float, float]
    build_seconds: float | None
    """A cold build, in a process of its own; None where none was timed."""
    payback: int | None
    """Calls until a cold build is paid back; None: never, or not to be told from these samples."""
    doubts: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        """Whether other processes had so much of the machine that the figures decide nothing."""
        return Doubt.BUSY.value in self.doubts

    @property
    def helps(self) -> bool:
        """Whether it is faster beyond the noise of the samples."""
        return self.speed[1] > 1.0

    @property
    def hurts(self) -> bool:
        """Whether it is slower beyond the noise of the samples."""
        return self.speed[2] < 1.0


@dataclass(frozen=True)
class BenchmarkSuite:
    """What `run_benchmark_suite` has measured."""

    results: tuple[BatchResult, ...]
    agreements: tuple[tuple[str, str], ...] = ()
    """Whether the compiled model computes what eager does: the model, and a sentence."""

    def of(self, model: str) -> tuple[BatchResult, ...]:
        """The results of a model, by batch size."""
        return tuple(sorted((item for item in self.results if item.model == model), key=lambda item: item.batch))

    def answer(self) -> tuple[str, ...]:
        """From which batch size on it helps, in figures of this run."""
        told = [self._about(model) for model in dict.fromkeys(item.model for item in self.results)]
        slow = min(self.results, key=lambda item: item.speed[0], default=None)
        more = 0.0 if slow is None else slow.compiled_seconds - slow.eager_seconds
        if slow is not None and slow.hurts and more > 0 and not slow.busy:
            why = (
                " Checking guards and entering compiled code has a price of its own, which so little work does not win back."
                if slow.eager_seconds < _LITTLE
                else ""
            )
            told.append(
                f"Worst is {slow.model}{_at(slow.batch)}: a compiled call takes {seconds(more)} more than the "
                f"{seconds(slow.eager_seconds)} of eager.{why}"
            )
        told += [f"{model}: {sentence}." for model, sentence in self.agreements]
        if any(item.busy for item in self.results):
            told.append("Repeat it on an idle machine: python -m compile_inspect.benchmark.")
        return tuple(told)

    def _about(self, model: str) -> str:
        found = self.of(model)
        gains = [item for item in found if item.helps]
        listed = ", ".join(f"{item.speed[0]:.2f}{_at(item.batch)}" for item in found)
        if any(item.busy for item in found):
            return f"{model}: nothing is decided, for other processes used this machine; times as fast as eager: {listed}."
        if not gains:
            return f"{model}: at no size tried is it faster beyond the noise; times as fast as eager: {listed}."
        upward = gains == list(found[-len(gains) :]) and len(found) > 1
        where = f"from batch {gains[0].batch} on" if upward else ", ".join(_at(item.batch).strip() for item in gains)
        last = gains[-1]
        paid = f", paid back after {count(last.payback, 'call')}{_at(last.batch)}" if last.payback else ""
        built = "" if last.build_seconds is None else f" A cold build took {seconds(last.build_seconds)}{paid}."
        return f"{model}: it helps {where or 'here'}; times as fast as eager: {listed}.{built}"


def _at(batch: int) -> str:
    """Where a figure was taken; nothing to say where no input has a batch."""
    return f" at batch {batch}" if batch else ""


def run_benchmark_suite(target: Target | None = None, *, guide: Guide | None = None) -> BenchmarkSuite:
    """Time models eagerly and compiled at several batch sizes, in turn, and see whether they agree."""
    from compile_inspect import torch_private
    from compile_inspect.agreement.api import verify
    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    if not guide.machine.inductor:
        guide.note(guide.machine.lacking)
        return BenchmarkSuite(())
    asked = "the model" if target else "the MLP"
    guide.guess(f"From which batch size on is {asked} faster compiled than eager, on this machine?", CHOICES)
    if target is not None:
        chosen = [(target, _sizes_of(target, guide))]
    else:
        chosen = [(guide.model(name), sizes) for name, sizes in BATCHES.items()]
    results: list[BatchResult] = []
    agreements = []
    for item, sizes in chosen:
        name = model_name(item)
        item = replace(item, gradients=False, further=())
        with guide.working(f"timing {name} at batch {', '.join(map(str, sizes)) or 'as given'}"), silence():
            timing = _timed(item, sizes)
        with guide.working(f"comparing {name} with eager"), silence():
            torch_private.forget_compiled_code()
            agreement = verify(item, variants=["inductor"], samples=1, blame=False)
        results += _results(name, timing, batch_of(item))
        agreements.append((name, agreement.variants[0].reason))
        known = guide.captures.get(name)
        if known is not None:
            guide.captures[name] = replace(known, timings=(timing,), agreements=(agreement,))
    suite = BenchmarkSuite(tuple(results), tuple(agreements))
    _show(suite, guide)
    return suite


def _timed(target: Target, sizes: tuple[int, ...]) -> Timing:
    """Eager and compiled at every size; a cold build, which takes a process of its own, at the last size only."""
    from compile_inspect.timing.api import measure

    def at(some: tuple[int, ...], builds: int) -> Timing:
        sweep = {"batch": list(some)} if some else None
        return measure(target, variants=["inductor"], seconds=_SECONDS, sweep=sweep, builds=builds, warm=False)

    last = at(sizes[-1:], builds=1)
    return last if len(sizes) < 2 else replace(last, points=(*at(sizes[:-1], builds=0).points, *last.points))


def _sizes_of(target: Target, guide: Guide) -> tuple[int, ...]:
    """The batch sizes that a model of the user takes; none where its inputs cannot be repeated along a batch."""
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.timing.sweep import points
    from compile_inspect.variants import Task

    taken: list[int] = []
    if not batch_of(target):
        return ()
    for size in sorted({*OWN_BATCHES, batch_of(target)} - {0}):
        try:
            ((_, task),) = points(Task.of(target), {"batch": [size]})
            with torch.no_grad(), silence():
                task.function(*task.args, **task.kwargs)
        except Exception as error:
            guide.note(f"{model_name(target)} does not take a batch of {size} ({type(error).__name__}): it is left out")
        else:
            taken.append(size)
    return tuple(taken)


def _results(name: str, timing: Timing, batch: int) -> list[BatchResult]:
    found = []
    for point in timing.points:
        eager, compiled = point.of("eager"), point.of("inductor")
        if eager is None or compiled is None:
            continue
        if eager.summary and compiled.summary and compiled.speed and compiled.build:
            speed = (compiled.speed.ratio, compiled.speed.low, compiled.speed.high)
            doubts = tuple(dict.fromkeys(doubt.value for item in (eager, compiled) for doubt in item.doubts))
            medians = eager.summary.median, compiled.summary.median
            size = point.sizes.get("batch", batch)
            cold = compiled.build.cold_seconds
            found.append(BatchResult(name, size, *medians, speed, cold, _calls(compiled), doubts))
    return found


def _calls(measurement: Measurement) -> int | None:
    payback = measurement.payback
    return None if payback is None or payback.unclear else payback.calls


def _paid_back(item: BatchResult) -> str:
    if item.payback is not None:
        return count(item.payback, "call")
    return "never" if item.hurts else "not timed" if item.build_seconds is None else "unclear"


def _show(suite: BenchmarkSuite, guide: Guide) -> None:
    columns = ["Model", ">Batch", ">Eager", ">Compiled", ">Times as fast", ">95 % interval", ">Cold build", ">Paid back after"]
    rows = [
        [
            item.model,
            str(item.batch),
            seconds(item.eager_seconds),
            seconds(item.compiled_seconds),
            f"{item.speed[0]:.2f}",
            f"{item.speed[1]:.2f} to {item.speed[2]:.2f}",
            "not timed" if item.build_seconds is None else seconds(item.build_seconds),
            _paid_back(item),
        ]
        for item in suite.results
    ]
    guide.table("Eager and compiled, in turn", columns, rows)
    for doubt in dict.fromkeys(doubt for item in suite.results for doubt in item.doubts):
        guide.say(f"To keep in mind: {doubt}.")
    first = suite.of(suite.results[0].model) if suite.results else ()
    if first and not any(item.busy for item in first):
        guide.settle(0 if all(item.helps for item in first) else 1 if any(item.helps for item in first) else 2)
