from __future__ import annotations

import logging
import warnings
from dataclasses import replace

import pytest
import torch
from lesson_state import guide_with_compiler, guide_without_compiler, unchanged

from compile_inspect import torch_private
from compile_inspect.records import Inspection
from compile_inspect.records.runtime import CudaGraphEvent, CudaGraphOutcome
from compile_inspect.target import Target
from compile_inspect.torch_private.dynamo_state import silence_loggers
from compile_inspect.torch_private.tour import collect_torch_messages
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.generated_code import GeneratedCode
from compile_inspect.tour.topics.mode_comparison import Effect, ModeComparison, ModeRun
from compile_inspect.tour.topics.modes import _cuda_graph_outcome, run_mode_comparison

unchanged = pytest.fixture(autouse=True)(unchanged)
with_compiler = pytest.fixture(guide_with_compiler)
without_compiler = pytest.fixture(guide_without_compiler)


def comparison() -> ModeComparison:
    default = ModeRun("default", (), 3.0, 2e-5, (1.9e-5, 2.1e-5), generated=2, library_calls=2, same_kernels=True)
    overhead = replace(
        default,
        mode="reduce-overhead",
        settings=("triton.cudagraphs = True",),
        call_seconds=3e-5,
        call_interval=(2.9e-5, 3.1e-5),
        changed_lines=("assert_size(x)",),
        cuda_graphs=CudaGraphOutcome.NO_EFFECT,
    )
    lite = replace(
        default,
        mode="lite",
        call_seconds=9e-5,
        call_interval=(8.9e-5, 9.1e-5),
        generated=0,
        library_calls=6,
        same_kernels=False,
    )
    return ModeComparison("Model", "CPU", 1e-5, (default, lite, overhead))


def test_the_answer_is_made_of_the_results() -> None:
    told = comparison().answer()
    text = " ".join(told)
    assert (
        "On this CPU reduce-overhead generated the same kernels as default; calls took 30.0 µs, and 20.0 µs in default. This "
        "run does not show whether" in text
    )
    assert "changed 1 line, such as `assert_size(x)`" in text
    assert "lite made a difference (different kernels or library calls): 0 generated kernels and 6 library calls" in text
    assert "reduce-overhead requested CUDA graphs and did not get them, without an error or a warning" in text
    assert "default had the fastest call of Model, 20.0 µs. Without torch.compile a call took 10.0 µs" in text
    default, *others = comparison().runs
    later = replace(default, call_seconds=8e-5, call_interval=(7.9e-5, 8.1e-5), build_seconds=7.0)
    slower = ModeComparison("Model", "CPU", 1e-5, (later, *others))
    assert "default had the fastest call of Model, 80.0 µs" in slower.answer()[-1] and "7.00 s" in slower.answer()[-1]
    last = replace(default, call_seconds=1e-3, call_interval=(0.9e-3, 1.1e-3))
    slowest = ModeComparison("Model", "CPU", 1e-5, (last, *others))
    assert "lite had the fastest call of Model, 90.0 µs" in slowest.answer()[-1]  # reduce-overhead is the default again


@pytest.mark.parametrize(
    ("interval", "other"),
    [
        ((1.9e-5, 2.1e-5), (1.8e-5, 2.2e-5)),  # equal within noise
        ((1.9e-5, 9.5e-5), (8.9e-5, 9.1e-5)),  # one of them noisy
        (None, (8.9e-5, 9.1e-5)),  # missing
        ((1.9e-5, 2.1e-5), None),
    ],
)
def test_no_mode_is_called_the_quickest_by_chance(
    interval: tuple[float, float] | None, other: tuple[float, float] | None
) -> None:
    default, lite, _ = comparison().runs
    runs = (replace(default, call_interval=interval), replace(lite, call_interval=other))
    answer = ModeComparison("Model", "CPU", 1e-5, runs).answer()
    assert "had the fastest call" not in " ".join(answer)
    assert "This run does not show which of the modes that differ is fastest" in answer[-1]
    assert "no difference beyond the noise" in answer[0]


def test_the_same_code_shows_how_far_times_can_be_trusted() -> None:
    default, lite, _ = comparison().runs
    default = replace(default, call_seconds=5.9e-5, call_interval=(5.8e-5, 6.0e-5))
    same = replace(default, mode="reduce-overhead", call_seconds=10.2e-5, call_interval=(10.1e-5, 10.3e-5))
    found = ModeComparison("Model", "CPU", 1e-5, (default, lite, same))
    assert 1.7 < found.spread < 1.8
    answer = found.answer()
    assert answer[0].endswith(
        "calls took 102.0 µs, and 59.0 µs in default. Their code is identical, so this is the noise of the measurement."
    )
    assert "had the fastest call" not in " ".join(answer)  # 59 and 90 µs are nearer than 59 and 102


def test_another_library_call_is_named() -> None:
    default, lite, _ = comparison().runs
    lines = ("assert_size(x, 'torch.ops.mm')", "extern_kernels.addmm(a)", "extern_kernels.bias_addmm(a)")
    tuned = replace(default, mode="max-autotune", same_kernels=False, changed_lines=lines)
    assert "with extern_kernels.bias_addmm instead" in ModeComparison("Model", "CPU", 1e-5, (default, tuned)).answer()[0]
    other = replace(lite, changed_lines=lines)  # more calls than by default: one does not stand for another
    assert "instead" not in ModeComparison("Model", "CPU", 1e-5, (default, other)).answer()[0]


def test_effects_follow_from_what_was_seen() -> None:
    default, lite, overhead = comparison().runs
    assert (default.effect, lite.effect, overhead.effect) == (Effect.NONE, Effect.KERNELS, Effect.WRAPPER)
    assert replace(overhead, cuda_graphs=CudaGraphOutcome.RECORDED).effect is Effect.CUDA_GRAPHS
    assert replace(overhead, cuda_graphs=CudaGraphOutcome.USED).effect is Effect.WRAPPER  # meant to, and recorded none
    assert replace(lite, left_out="too slow").effect is Effect.LEFT_OUT


def code(*calls: str, kernel: str = "kernel = 1", number: int = 0) -> GeneratedCode:
    lines = [f"# AOT ID: ['{number}_inference']", kernel, "", "class Runner:", "    def call(self):"]
    return GeneratedCode.of("\n".join([*lines, *(f"        {call}" for call in calls)]))


def test_code_is_compared_without_comments() -> None:
    one = code("cpp_fused_0(x)")
    same = code("cpp_fused_0(x)  # line 3", kernel="kernel = 1  # first", number=1)
    assert one == same and one.compare(same) == (True, ())
    assert one.compare(code("assert_size(x)", "cpp_fused_0(x)")) == (True, ("assert_size(x)",))
    assert one.compare(code("cpp_fused_0(x)", kernel="kernel = 2")) == (False, ())
    assert not one.compare(code("extern_kernels.mm(x)"))[0]


def test_without_a_compiler_the_settings_are_still_shown(without_compiler: Guide) -> None:
    found = run_mode_comparison(guide=without_compiler)
    assert without_compiler.notes == [without_compiler.machine.missing_requirement]
    assert found.completed == () and found.answer() == ()
    settings = {run.mode: run.settings for run in found.runs}
    assert settings["reduce-overhead"] == ("triton.cudagraphs = True",)
    assert set(settings) == set(torch_private.mode_settings()) >= {"default", "max-autotune"}


@pytest.mark.exhaustive
def test_every_mode_runs_and_cuda_graphs_come_to_nothing_on_a_cpu(with_compiler: Guide) -> None:
    found = run_mode_comparison(guide=with_compiler)
    assert with_compiler.notes == []
    runs = {run.mode: run for run in found.completed}
    assert set(runs) == set(torch_private.mode_settings())
    assert all(run.build_seconds > run.call_seconds > 0 and run.difference < 1e-5 for run in found.completed)
    for mode in ("reduce-overhead", "max-autotune"):  # the second may find a quicker product, the first searches for none
        assert runs[mode].cuda_graphs is CudaGraphOutcome.NO_EFFECT
    assert runs["reduce-overhead"].same_kernels
    assert runs["default"].effect is Effect.NONE and runs["default"].generated > 0
    assert runs["lite"].effect is Effect.KERNELS and runs["lite"].library_calls > runs["default"].library_calls


def test_the_spread_is_blamed_only_where_it_can_be() -> None:
    default, _, overhead = comparison().runs
    near = replace(overhead, call_seconds=2.05e-5, call_interval=(2.0e-5, 2.1e-5))
    assert ModeComparison("Model", "CPU", 1e-5, (default, near)).answer()[0].endswith("no difference beyond the noise.")
    assert "This run does not show" in comparison().answer()[0]  # 30 and 20 µs, with other lines around the kernels


def test_where_nothing_differs_nothing_is_chosen_among_those_that_do() -> None:
    default, _, overhead = comparison().runs
    text = ModeComparison("Model", "CPU", 1e-5, (default, overhead)).answer()[-1]
    assert text.startswith("A call of Model took 20.0 µs in default. Without torch.compile a call took 10.0 µs")


def test_what_was_said_is_quoted() -> None:
    default, _, overhead = comparison().runs
    text = " ".join(
        ModeComparison("Model", "CPU", 1e-5, (default, replace(overhead, messages=("mind this", "and that")))).answer()
    )
    assert "the first message was: mind this." in text and "without an error" not in text


def test_skipped_graphs_come_with_the_reason() -> None:
    default, _, overhead = comparison().runs

    def told(outcome: CudaGraphOutcome, skipped: str) -> str:
        run = replace(overhead, cuda_graphs=outcome, skip_reason=skipped)
        return " ".join(ModeComparison("Model", "GPU", 1e-5, (default, run)).answer())

    assert "torch skipped them: mutated inputs." in told(CudaGraphOutcome.SKIPPED, "mutated inputs")
    assert "some were skipped: mutated inputs." in told(CudaGraphOutcome.RECORDED, "mutated inputs")
    assert "skipped" not in told(CudaGraphOutcome.RECORDED, "")
    assert "none was recorded" in told(CudaGraphOutcome.USED, "")
    assert "without an error" not in told(CudaGraphOutcome.SKIPPED, "mutated inputs")


def test_what_torch_means_to_use_is_not_yet_recorded() -> None:
    def became(*outcomes: CudaGraphOutcome) -> CudaGraphOutcome | None:
        return _cuda_graph_outcome(
            replace(Inspection(), cuda_graphs=tuple(CudaGraphEvent("0/0", outcome) for outcome in outcomes))
        )

    used, recorded, skipped = CudaGraphOutcome.USED, CudaGraphOutcome.RECORDED, CudaGraphOutcome.SKIPPED
    assert became(used, skipped) is skipped and became(used) is used and became() is None
    assert became(used, recorded) is recorded and became(skipped, recorded, used) is recorded


def test_descriptions_of_kernels_are_not_kernels() -> None:
    def triton(name: str, cudagraphs: bool, numbers: str = "tmp0 + 1") -> GeneratedCode:
        kernel = (
            f"{name} = async_compile.triton('{name}', '''\n@triton_heuristics.pointwise(\n    size_hints={{'x': 64}},\n"
            f"    triton_meta={{'constants': {{}}, 'enable_fp_fusion': {cudagraphs}}},\n"
            f"    inductor_meta={{'autotune_hints': set(), 'store_cubin': {cudagraphs}}},\n)\n"
            f"@triton.jit\ndef {name}(x):\n    tmp1 = {numbers}\n''')"
        )
        return code(f"{name}.run(x)", kernel=kernel)

    one = triton("triton_poi_fused_add_0", False)
    assert one.compare(triton("triton_poi_fused_add_0", True)) == (True, ())
    assert not one.compare(triton("triton_poi_fused_add_0", True, "tmp0 + 2"))[0]


def test_what_torch_says_is_heard_and_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("torch._inductor")
    with silence_loggers(), collect_torch_messages() as said:
        log.warning("skipping %s\n  because", "this")
        logging.getLogger("torch._dynamo.somewhere").warning("a limit was hit")
        log.info("nobody sees this")
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert said == ["skipping this because", "a limit was hit", "mind the gap"]
    assert capfd.readouterr().err == ""


def test_without_a_compiler_nothing_is_asked_and_nothing_printed(
    without_compiler: Guide, capsys: pytest.CaptureFixture[str]
) -> None:
    def chatty(x: torch.Tensor) -> torch.Tensor:
        print("hello from the model")
        return x.sin()

    without_compiler.quiz, without_compiler.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    run_mode_comparison(Target(chatty, (torch.ones(3),)), guide=without_compiler)
    assert capsys.readouterr().out == ""


def test_a_model_on_the_cpu_is_told_of_the_cpu(without_compiler: Guide) -> None:
    without_compiler.machine = replace(without_compiler.machine, gpu="a GPU of another model")
    found = run_mode_comparison(Target(torch.sin, (torch.ones(3),)), guide=without_compiler)
    assert found.device == "CPU" and found.eager_seconds > 0


def test_a_mode_that_fails_is_no_reason_to_leave_the_others_out(with_compiler: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    from compile_inspect.tour.topics import modes

    default = comparison().runs[0]

    def run(target: Target, mode: str, device: str, *, deterministic: bool) -> tuple[ModeRun, GeneratedCode]:
        if mode == "reduce-overhead":
            raise RuntimeError("no such thing")
        return replace(default, mode=mode), code("cpp_fused_0(x)")

    monkeypatch.setattr(modes, "_run", run)
    with_compiler.quiz, with_compiler.read_answer = True, lambda question: "c"
    found = run_mode_comparison(Target(torch.sin, (torch.ones(3),)), guide=with_compiler)
    assert with_compiler.notes == ["mode reduce-overhead failed: RuntimeError: no such thing"]
    assert "reduce-overhead" not in [run.mode for run in found.completed] and len(found.completed) > 2 and found.answer()
    assert "Correct: c) it raises an error" in with_compiler.console.file.getvalue()


def test_code_in_parts_for_cuda_graphs_calls_the_same_kernels() -> None:
    """As Inductor writes it on a GPU: with CUDA graphs the calls stand in a function of their own, before the method."""
    kernel = "triton_poi_fused_sin_0 = async_compile.triton('''\n    inductor_meta={'x': 1}\n    tl.store(a)\n''')\n"
    ready = "async_compile.wait(globals())\ndel async_compile\n"
    plain = f"{kernel}\n{ready}\nclass Runner:\n    def call(self, args):\n        triton_poi_fused_sin_0.run(buf0, 8)\n"
    parts = (
        f"from torch._C import stream\n{kernel.replace('1}', '2}')}\ndef partition_0(args):\n"
        f"    triton_poi_fused_sin_0.run(buf1, 8)\n    return (buf1, )\n\n{ready}\nclass Runner:\n    def call(self, args):\n"
        "        return self.partitions[0](args)\n"
    )
    same, changed = GeneratedCode.of(plain).compare(GeneratedCode.of(parts))
    assert same and changed
    other, _ = GeneratedCode.of(plain).compare(GeneratedCode.of(parts.replace("sin", "cos")))
    assert not other
