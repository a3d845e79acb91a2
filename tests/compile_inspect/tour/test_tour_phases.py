"""The five phases: their answers hold the figures of the run, and say what follows from them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from compile_inspect.errors import TargetError
from compile_inspect.records.breaks import BreakEffect
from compile_inspect.records.timing import MeasurementWarning, Speedup
from compile_inspect.target import Target
from compile_inspect.tour.calls import difference
from compile_inspect.tour.folder import TourFolder
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.machine import Machine, this_machine
from compile_inspect.tour.phases import benchmark
from compile_inspect.tour.phases.basics import BackendComparison, BackendRun, run_backend_comparison
from compile_inspect.tour.phases.benchmark import BatchResult, BenchmarkSuite, run_benchmark_suite
from compile_inspect.tour.phases.dynamo_capture import run_dynamo_exploration
from compile_inspect.tour.phases.graph_breaks import FixedBreak, FixedGraphBreaks, FixedModel, run_fix_graph_breaks
from compile_inspect.tour.phases.inductor_codegen import run_inductor_inspection
from compile_inspect.tour.stages import Stage
from compile_inspect.wording.quantities import seconds

BARE = Machine("2.13.0", "x86_64", 2, 2, missing_requirement="there is no compiler: install one")


def guide_of(folder: Path, machine: Machine = BARE, **options: object) -> Guide:
    return Guide(Console(file=io.StringIO(), width=120), machine, TourFolder(folder), **options)  # type: ignore[arg-type]


def printed(guide: Guide) -> str:
    return guide.console.file.getvalue()  # type: ignore[attr-defined]


@contextmanager
def load(rivals: int = 4) -> Iterator[None]:
    """One processor for this process and for others that do nothing but compute.

    What takes seconds then takes several times as long, whatever else the machine does. The median of calls that take
    microseconds need not: most of them fall between two turns.
    """
    free = os.sched_getaffinity(0)
    burn = "print(flush=True)\nwhile True: pass"
    os.sched_setaffinity(0, {max(free)})
    processes = [subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE) for _ in range(rivals)]
    try:
        for process in processes:
            assert process.stdout and process.stdout.readline()
        yield
    finally:
        os.sched_setaffinity(0, free)
        for process in processes:
            process.kill()
            process.communicate()


def first_calls(comparison: BackendComparison) -> float:
    return sum(run.first_seconds for run in comparison.completed)


def test_phase_1_figures_are_those_of_the_run_and_grow_with_the_load(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    run_backend_comparison(guide=guide)  # what is imported at the first compilation is no part of the comparison
    for _ in range(5):  # other work on the machine may slow down the idle one, too
        idle = run_backend_comparison(guide=guide)
        with load():
            loaded = run_backend_comparison(guide=guide)
        if first_calls(loaded) > 1.5 * first_calls(idle):
            break
    assert [run.backend for run in idle.runs] == ["eager", "aot_eager", "inductor"]
    assert idle.runs[2].unavailable == BARE.missing_requirement and len(idle.completed) == 2
    # Four rivals leave a fifth of a processor.
    assert first_calls(loaded) > 1.5 * first_calls(idle)
    for comparison in (idle, loaded):
        run = comparison.completed[-1]
        assert run.first_seconds > run.later_seconds > 0 and run.difference <= 1e-6
        text = " ".join(comparison.answer())
        assert f"took {seconds(run.first_seconds)} and a later call took {seconds(run.later_seconds)}" in text
        assert f"{run.first_seconds / run.later_seconds:,.0f} times as long" in text
        spent = dict(run.stages)
        assert 0 < spent[Stage.DYNAMO] + spent[Stage.AUTOGRAD] <= run.first_seconds
        assert spent[Stage.INDUCTOR] == spent[Stage.COMPILER] == 0
    assert idle.answer() != loaded.answer()
    assert "Not available here: there is no compiler: install one" in printed(guide)


def test_phase_1_does_not_blame_the_compiler_for_random_numbers_or_state(tmp_path: Path) -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = torch.nn.Buffer(torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    dropout = run_backend_comparison(Target(torch.nn.Dropout(), (torch.ones(8),)), guide=guide_of(tmp_path))
    assert all(run.difference is None for run in dropout.completed)
    assert dropout.answer()[-1].startswith("Dropout draws random numbers")
    counting = run_backend_comparison(Target(Counting(), (torch.ones(3),)), guide=guide_of(tmp_path))
    assert [run.difference for run in counting.completed] == [0.0, 0.0]


def test_differences_know_what_is_no_number() -> None:
    assert difference(torch.tensor(1.0), torch.tensor(torch.nan)) == float("inf")
    assert difference(torch.tensor([torch.nan, 1.0]), torch.tensor([torch.nan, 1.0])) == 0.0
    assert difference(torch.tensor(1 + 5j), torch.tensor(1 + 0j)) == 5.0
    assert difference(torch.ones(1), torch.ones(1, dtype=torch.float64)) == float("inf")
    assert difference({"loss": None, "cache": object()}, {"loss": None, "cache": object()}) == 0.0


def test_phase_1_names_the_largest_stage() -> None:
    stages = ((Stage.DYNAMO, 1.0), (Stage.AUTOGRAD, 0.5), (Stage.INDUCTOR, 2.0), (Stage.COMPILER, 6.0))
    runs = (BackendRun("eager", 1.0, 0.01, 0.0, ((Stage.DYNAMO, 1.0),)), BackendRun("inductor", 10.0, 0.001, 2e-7, stages))
    answer = BackendComparison("Net", 0.01, runs).answer()
    assert "took 10.0 s and a later call took 1.0 ms: 10,000 times as long." in answer[0]
    assert "The largest part is Compiler, 60 %" in answer[1]
    assert "1.00 s with eager. Each was measured once." in answer[2] and "2e-07" in answer[3]


def test_phase_1_does_not_count_what_is_done_once() -> None:
    runs = (BackendRun("inductor", 2.5, 0.001, 0.0, ((Stage.DYNAMO, 1.0), (Stage.COMPILER, 1.2))),)
    answer = BackendComparison("Net", 0.01, runs, setup_seconds=28.4).answer()
    assert "took 2.50 s and a later call took 1.0 ms: 2,500 times as long." in answer[0]
    assert (
        "That does not include one-time setup: before it, the first compilation in this process (of torch.sin) took 28.4 s."
        in answer[1]
    )


@pytest.mark.parametrize(
    ("first", "later", "words"),
    [
        (1.0, 0.9, "less than twice as long"),
        (0.5, 1.0, "less than twice as long"),
        (3.0, 1.0, "3.0 times as long"),
        (50.0, 1.0, "50 times as long"),
        (1.0, 0.0, "too short to compare"),
        (0.0, 1.0, "too short to compare"),
    ],
)
def test_phase_1_says_no_more_than_its_figures(first: float, later: float, words: str) -> None:
    assert words in BackendComparison("Net", 0.01, (BackendRun("inductor", first, later),)).answer()[0]


@pytest.mark.parametrize(
    ("speed", "words"),
    [
        (Speedup(1.3, 1.2, 1.4), "speedup 1.30×."),
        (Speedup(0.7, 0.6, 0.8), "speedup 0.70×."),
        (Speedup(1.3, 0.9, 1.7), "no difference beyond the noise."),
        (Speedup(0.9, 0.8, 1.1), "no difference beyond the noise."),
        (None, "the speedup was not measured."),
    ],
)
def test_phase_3_calls_faster_only_what_is(speed: Speedup | None, words: str) -> None:
    cause = FixedBreak("Net", "net.py:3", "print(x)", "builtin", "GB0059", "taken out", "proven", BreakEffect.SPLIT)
    model = FixedModel("Net", (2, 1), (4, 3), (2e-5, 1e-5), speed)
    assert FixedGraphBreaks((cause,), (model,)).answer()[-1].endswith(words)


def test_phase_2_counts_nodes_line_by_line(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    exploration = run_dynamo_exploration(guide=guide)
    models = {item.model: item for item in exploration.models}
    assert list(models) == ["Perceptron", "InformationScorer", "SalienceScorer", "QueryContentScorer", "Block"]
    assert [len(line.operations) for line in models["Perceptron"].lines] == [2, 1, 1]
    assert models["Perceptron"].lines[0].operations == ("linear", "gelu")
    assert (models["Perceptron"].inputs, models["Perceptron"].parameters, models["Perceptron"].graphs) == (5, 4, 1)
    assert models["Block"].lines[0].operations == ()  # `batch, tokens, width = x.shape`
    # Every call of the graph belongs to some line: nothing is lost or counted twice.
    for item in models.values():
        assert sum(len(line.operations) for line in item.lines) == item.calls, item.model
    assert models["SalienceScorer"].explain_count < models["SalienceScorer"].calls  # explain leaves out methods
    text = " ".join(exploration.answer())
    assert text.startswith("No. Of 20 statements in 5 models, 2 became no node")
    assert "`batch, tokens, width = x.shape`" in text


def test_phase_2_on_a_function_of_the_user(tmp_path: Path) -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        scale = 3
        return x.sin() * scale

    exploration = run_dynamo_exploration(Target(scaled, (torch.ones(3),)), guide=guide_of(tmp_path))
    (model,) = exploration.models
    assert model.model == "scaled" and [len(line.operations) for line in model.lines] == [0, 2]


def test_phase_2_does_not_say_that_an_untaken_branch_was_known(tmp_path: Path) -> None:
    def gated(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 100:
            x = x * 2
        return x.sin()

    exploration = run_dynamo_exploration(Target(gated, (torch.ones(3),)), guide=guide_of(tmp_path))
    assert [len(line.operations) for line in exploration.models[0].lines] == [2, 0, 1]
    assert any(
        "`x = x * 2`, became no node: these inputs may not have reached it." in sentence for sentence in exploration.answer()
    )


def test_phase_2_tells_what_no_line_owns_and_where_the_graph_broke(tmp_path: Path) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    text = " ".join(run_dynamo_exploration(Target(layers, (torch.ones(2, 3),)), guide=guide_of(tmp_path)).answer())
    assert "Sequential: torch recorded no line of the model for 2 nodes" in text and "evaluated it while tracing" not in text

    def chatty(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        print("hi")
        return x * 2

    exploration = run_dynamo_exploration(Target(chatty, (torch.ones(2),)), guide=guide_of(tmp_path))
    text = " ".join(exploration.answer())
    assert f"the graph broke at line {exploration.models[0].lines[1].statement.line}" in text
    assert "evaluated it while tracing" not in text


@pytest.mark.slow
def test_phase_3_fixes_every_breaking_model_and_proves_it(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    result = run_fix_graph_breaks(guide=guide)
    assert [item.model for item in result.breaks] == ["Chatty", "Branching", "Peeking"]
    assert [item.identifier for item in result.breaks] == ["GB0059", "GB0170", "GB0124"]
    assert all(item.fix and "agree" in item.proof for item in result.breaks)
    assert [(model.graphs, model.fullgraph_error) for model in result.models] == [((2, 1), "")] * 3
    assert all(model.seconds is None for model in result.models)  # there is no compiler
    assert "leave 3 graphs; fullgraph=True then works for 3 of 3 models." in result.answer()[1]
    assert "halfway" not in printed(guide).replace('print("halfway")', "")
    fixed = (tmp_path / "breaking_fixed.py").read_text()
    assert "torch.where" in fixed and "torch.where" not in (tmp_path / "breaking.py").read_text()
    # What was written is what was proven: it compiles whole, and computes the same.
    from compile_inspect.target import find_target

    for name in ("chatty", "branching", "peeking"):
        before, after = find_target(f"{tmp_path}/breaking.py:{name}"), find_target(f"{tmp_path}/breaking_fixed.py:{name}")
        after.function.load_state_dict(before.function.state_dict())  # type: ignore[attr-defined]
        whole = torch.compile(after.function, backend="eager", fullgraph=True)
        torch.testing.assert_close(whole(*before.args), before.function(*before.args))


def test_phase_3_says_when_a_whole_function_was_given_up(tmp_path: Path) -> None:
    path = tmp_path / "given_up.py"
    path.write_text(
        "import torch\nfrom compile_inspect import Target\n\n\ndef noisy(x):\n    for _ in range(3):\n        x = x.sin()\n"
        "        print('hi')\n    return x\n\n\nmodel = Target(noisy, (torch.ones(3),))\n"
    )
    guide = guide_of(tmp_path / "tour", user_target=(f"{path}:model", None), quiz=True, read_answer=lambda _: "")
    found = run_fix_graph_breaks(Target(torch.sin), guide=guide)
    assert found.models[0].graphs[0] == 0 and "It skipped the whole function" in found.answer()[0]
    assert "The correct answer in this run is b) it runs everything in eager mode." in printed(guide)


def test_phase_3_needs_the_name_of_a_target(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="fixes change a file"):
        run_fix_graph_breaks(Target(torch.sin, (torch.ones(2),)), guide=guide_of(tmp_path))


def test_phases_4_and_5_say_what_is_missing(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    assert run_inductor_inspection(guide=guide).answer() == ()
    assert run_benchmark_suite(guide=guide).answer() == ()
    assert guide.notes == [BARE.missing_requirement, BARE.missing_requirement]


def result(batch: int, ratio: float, *, spread: float = 0.01, payback: int | None = 100, busy: bool = False) -> BatchResult:
    warnings = (MeasurementWarning.CPU_CONTENTION.value,) if busy else ()
    return BatchResult("Net", batch, ratio * 1e-3, 1e-3, (ratio, ratio - spread, ratio + spread), 5.0, payback, warnings)


def test_phase_5_answers_from_the_sizes_that_were_measured() -> None:
    upward = BenchmarkSuite((result(1, 0.7), result(8, 1.5), result(64, 3.0, payback=1234)), (("Net", "it agrees"),)).answer()
    assert upward[0].startswith("Net: compiling helps from batch 8 on; speedup over eager 0.70× at batch 1, 1.50× at batch 8")
    assert "pays back after 1,234 calls at batch 64" in upward[0]
    assert upward[1].startswith(
        "The largest slowdown is Net at batch 1: a compiled call takes 300.0 µs longer than the 700.0 µs of eager."
    )
    assert upward[2] == "Net: it agrees."
    odd = BenchmarkSuite((result(1, 1.4), result(8, 0.9))).answer()
    assert odd[0].startswith("Net: compiling helps at batch 1; ")
    noisy = BenchmarkSuite((result(1, 1.1, spread=0.3), result(8, 1.2, spread=0.3))).answer()
    assert "no gain beyond the noise at any size tried" in noisy[0]
    busy = BenchmarkSuite((result(1, 1.4), result(8, 99.0, busy=True))).answer()
    assert busy[0].startswith("Net: inconclusive, because other processes used this machine; speedup over eager 1.40")
    assert busy[-1].startswith("Repeat this on an idle machine")
    assert BenchmarkSuite(()).answer() == ()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    """A guide on this machine after phase 4 on one small function of a file."""
    machine = this_machine()
    if not machine.inductor:
        pytest.skip(machine.missing_requirement)
    folder = tmp_path_factory.mktemp("tour")
    return guide_of(folder, replace(machine, gpu=""))


def test_phase_5_times_a_model_of_the_user_at_its_own_batch_and_at_three_others(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    small = replace(guide.folder.target("information"), args=(torch.randn(2, 4, 16),))
    assert benchmark._sizes_of(small, guide) == (1, 2, 8, 64)


@pytest.mark.slow
def test_phases_4_and_5_on_a_small_model(compiled: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "USER_BATCHES", (1,))
    target = compiled.folder.target("information")
    small = replace(target, args=(torch.randn(2, 4, 16),))
    inspection = run_inductor_inspection(small, guide=compiled)
    (model,) = inspection.models
    (kernel,) = model.kernels
    assert kernel.fused and len(kernel.operations) == model.operations >= 7
    assert kernel.lines == ("scorers.py:16", "scorers.py:17", "scorers.py:18")
    assert f"{model.operations} operations of 1 model became 1 launch: 1 fused kernel" in inspection.answer()[0]
    assert kernel.name in inspection.answer()[1]
    assert "#include" in printed(compiled)
    suite = run_benchmark_suite(small, guide=compiled)
    assert [item.batch for item in suite.of("InformationScorer")] == [1, 2]
    for item in suite.results:
        assert item.eager_seconds > 0 and item.speedup[1] <= item.speedup[0] <= item.speedup[2]
        assert f"{item.speedup[0]:.2f}× at batch {item.batch}" in " ".join(suite.answer())
    # A cold build takes a process of its own: the last size has one.
    assert [item.build_seconds is not None for item in suite.results] == [False, True]
    assert suite.agreements[0][1].startswith("it agrees with eager")
    capture = compiled.captures["InformationScorer"]
    assert len(capture.timings) == len(capture.agreements) == 1 and len(list(capture.kernels())) == 1


@pytest.mark.exhaustive
def test_phase_5_says_what_was_measured_under_load(compiled: Guide) -> None:
    small = replace(compiled.folder.target("information"), args=(torch.randn(2, 4, 16),))
    idle = run_benchmark_suite(small, guide=compiled)
    with load():
        loaded = run_benchmark_suite(small, guide=compiled)
    # Four rivals leave a fifth of a processor, and the answer says what was measured then.
    assert (loaded.results[-1].build_seconds or 0.0) > 1.5 * (idle.results[-1].build_seconds or 0.0) > 0
    assert loaded.answer() != idle.answer()
    for item in loaded.results:
        assert f"{item.speedup[0]:.2f}× at batch {item.batch}" in " ".join(loaded.answer())
