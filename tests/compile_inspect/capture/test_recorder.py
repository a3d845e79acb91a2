"""`record`: what it leaves in torch, and how recordings live together."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch
import torch._dynamo.convert_frame
import torch._dynamo.output_graph
import torch._dynamo.symbolic_convert
import torch._inductor.debug
import torch._inductor.scheduler

import compile_inspect
from compile_inspect.capture import recorder
from compile_inspect.errors import CaptureError
from compile_inspect.records import BreakEffect, Stage
from conftest import fresh_function


def fresh(body: str = "return x * 2"):
    return fresh_function(body, torch=torch)


def observed() -> list[object]:
    return [
        torch._dynamo.symbolic_convert.InstructionTranslatorBase.log_graph_break,
        torch._dynamo.output_graph.OutputGraph.call_user_compiler,
        torch._dynamo.convert_frame.compile_frame,
        torch._dynamo.convert_frame.exceeds_recompile_limit,
        torch._inductor.debug.set_kernel_post_grad_provenance_tracing,
        torch._inductor.scheduler.WhyNoFuse.__call__,
        len(torch._dynamo.convert_frame._bytecode_hooks),
    ]


def test_nothing_of_ours_is_left_behind() -> None:
    import logging

    before, handlers = observed(), list(logging.getLogger("torch.__trace").handlers)
    with compile_inspect.record():
        torch.compile(fresh(), backend="eager")(torch.ones(2))
        assert observed() != before
    assert observed() == before
    assert [item for item in logging.getLogger("torch.__trace").handlers if item not in handlers] == []


def test_recordings_nest_and_each_sees_its_own_time() -> None:
    with compile_inspect.record() as outer:
        torch.compile(fresh(), backend="eager")(torch.ones(2))
        with compile_inspect.record() as inner:
            torch.compile(fresh("return x + 1"), backend="eager")(torch.ones(2))
        torch.compile(fresh("return x - 1"), backend="eager")(torch.ones(2))
    operations = [tuple(graph.call_counts) for graph in outer.inspection.graphs_at(Stage.DYNAMO)]
    assert operations == [("operator.mul",), ("operator.add",), ("operator.sub",)]
    (graph,) = inner.inspection.graphs_at(Stage.DYNAMO)
    assert tuple(graph.call_counts) == ("operator.add",)
    assert inner.inspection.environment == outer.inspection.environment
    assert inner.inspection.user_line(graph.nodes[-2].stack) is not None


def test_recordings_may_end_in_any_order() -> None:
    first, second = compile_inspect.record(), compile_inspect.record()
    first.start()
    second.start()
    torch.compile(fresh(), backend="eager")(torch.ones(2))
    first.stop()
    torch.compile(fresh("return x + 1"), backend="eager")(torch.ones(2))
    second.stop()
    assert len(first.inspection.compilations) == 1
    assert len(second.inspection.compilations) == 2


def test_nothing_compiled_and_nothing_held() -> None:
    with compile_inspect.record() as recording:
        pass
    assert recording.inspection.compilations == ()
    assert recording.inspection.environment.torch == torch.__version__


def test_the_evidence_so_far_can_be_read_while_recording() -> None:
    with compile_inspect.record() as recording:
        torch.compile(fresh(), backend="eager")(torch.ones(2))
        so_far = recording.inspection
        assert not so_far.complete
        assert len(so_far.compilations) == 1
    assert recording.inspection.complete


def test_an_exception_passes_through_and_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    with pytest.raises(ValueError, match="mine"), compile_inspect.record(path):
        torch.compile(fresh(), backend="eager")(torch.ones(2))
        raise ValueError("mine")
    loaded = compile_inspect.load(path)
    assert loaded.complete and len(loaded.compilations) == 1


def test_file_and_memory_tell_the_same(tmp_path: Path) -> None:
    with compile_inspect.record(tmp_path / "a.inspection") as on_disk, compile_inspect.record() as in_memory:
        torch.compile(fresh("return torch.relu(x).sum()"), backend="aot_eager")(torch.ones(2, requires_grad=True))
    loaded = compile_inspect.load(tmp_path / "a.inspection")
    assert loaded == on_disk.inspection
    for name in ("compilations", "graphs", "breaks", "guards", "stacks", "bytecode"):
        assert getattr(loaded, name) == getattr(in_memory.inspection, name)


def test_a_file_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    path.write_text("precious")
    with pytest.raises(CaptureError, match="exists already"):
        compile_inspect.record(path).start()
    assert path.read_text() == "precious"
    with compile_inspect.record(path, force=True):
        pass
    assert compile_inspect.load(path).complete


def test_a_missing_directory_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="does not exist"):
        compile_inspect.record(tmp_path / "no" / "a.inspection").start()


def test_a_recording_starts_once() -> None:
    recording = compile_inspect.record()
    with recording:
        pass
    with pytest.raises(CaptureError, match="can be started only once"):
        recording.start()


def test_compilations_in_threads() -> None:
    programs = [fresh(f"return x * {number}") for number in range(4)]
    failures: list[BaseException] = []

    def work(program) -> None:
        try:
            torch.compile(program, backend="eager")(torch.ones(3))
        except BaseException as error:
            failures.append(error)

    with compile_inspect.record() as recording:
        threads = [threading.Thread(target=work, args=(program,)) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(recording.inspection.compilations) == 4
    assert len(recording.inspection.graphs_at(Stage.DYNAMO)) == 4
    assert recording.inspection.missing_evidence == ()


def test_no_tensor_of_the_program_is_kept_alive() -> None:
    import gc
    import weakref

    with compile_inspect.record() as recording:
        x = torch.ones(64, 64, requires_grad=True)
        torch.compile(fresh("return (x @ x).sum()"), backend="aot_eager")(x).backward()
        torch._dynamo.reset()
        reference = weakref.ref(x)
        del x
        gc.collect()
        assert reference() is None
    assert recording.inspection.compilations


def test_own_sources_are_kept_and_library_sources_are_not() -> None:
    def here(x):
        return x.cos()

    with compile_inspect.record() as recording:
        torch.compile(here, backend="eager")(torch.ones(2))
    assert "def test_own_sources_are_kept" in recording.inspection.sources[__file__]
    assert not any("site-packages" in name for name in recording.inspection.sources)
    assert recording.inspection.library_sources == {}


def test_limit_of_recompiles() -> None:
    program = fresh("return x * 2")
    compiled = torch.compile(program, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=3), compile_inspect.record() as recording:
        for size in range(2, 8):
            compiled(torch.ones(size))
    inspection = recording.inspection
    (limit,) = inspection.limits
    assert (limit.limit, limit.value, limit.function) == ("recompile_limit", 3, program.__name__)
    assert limit.last_reason == "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    assert [item.function for item in inspection.recompiles] == [program.__name__] * len(inspection.recompiles)
    assert [item.latest_failure.actual for item in inspection.recompiles if item.latest_failure] == ["3", "4", "5"]
    assert [item.outcome.name for item in inspection.compilations][:3] == ["COMPILED"] * 3


def test_a_frame_that_is_skipped_has_its_cause() -> None:
    program = fresh("for _ in range(2):\n    with open('/dev/null') as f:\n        x = x + 1\nreturn x")
    with compile_inspect.record() as recording:
        torch.compile(program, backend="eager")(torch.ones(2))
    inspection = recording.inspection
    assert [item.outcome.name for item in inspection.compilations] == ["SKIPPED"]
    # Torch tells two breaks in one message: the call, and that it stands in a loop. The call is the cause.
    (cause,) = inspection.breaks
    assert (cause.kind, cause.identifier) == ("Failed to trace builtin operator", "GB0059")
    assert cause.effect is BreakEffect.SKIPPED
    assert cause.location is not None and cause.location.line == 3


@pytest.mark.skipif(not hasattr(os, "fork") or torch.cuda.is_available(), reason="needs fork, which CUDA does not survive")
def test_a_forked_child_leaves_its_parents_capture_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    with compile_inspect.record(path) as recording:
        torch.compile(fresh(), backend="eager")(torch.ones(2))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.compile(fresh("return x + 1"), backend="eager")(torch.ones(2))
                recording.stop()
                status = 0
            finally:
                os._exit(status)  # whatever happens, the child must not go on with the tests
        assert os.waitpid(child, 0)[1] == 0
    loaded = compile_inspect.load(path)
    assert loaded.complete and len(loaded.compilations) == 1


def test_a_recording_in_memory_can_be_saved_later(tmp_path: Path) -> None:
    with compile_inspect.record() as recording:
        torch.compile(fresh(), backend="eager")(torch.ones(2))
    recording.save(tmp_path / "a.inspection")
    assert compile_inspect.load(tmp_path / "a.inspection") == recording.inspection


def test_the_programs_exception_is_not_hidden_by_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("assembly is broken")

    monkeypatch.setattr(recorder, "assemble", fail)
    with pytest.raises(ValueError, match="mine"), compile_inspect.record(tmp_path / "a.inspection"):
        raise ValueError("mine")
    with (
        pytest.raises(CaptureError, match="the recorded events are in"),
        compile_inspect.record(tmp_path / "b.inspection"),
    ):
        torch.compile(fresh(), backend="eager")(torch.ones(2))
    monkeypatch.undo()
    partial = compile_inspect.load(tmp_path / "b.inspection")
    assert not partial.complete and len(partial.compilations) == 1


@pytest.mark.parametrize(("dynamic", "own"), [(True, None), (False, None), (None, None), (True, "cache_size_limit")])
def test_what_dynamic_switches_is_not_the_programs_setting(dynamic: bool | None, own: str | None) -> None:
    changes = {} if own is None else {own: 3}
    with torch._dynamo.config.patch(**changes), compile_inspect.record() as recording:
        torch.compile(fresh(), backend="eager", dynamic=dynamic)(torch.ones(3))
    changed = {name.rpartition(".")[2] for name in recording.inspection.environment.configuration}
    assert not changed & {"assume_static_by_default", "automatic_dynamic_shapes"}


def test_what_dynamic_switched_earlier_is_no_setting_either() -> None:
    torch.compile(fresh(), backend="eager", dynamic=True)(torch.ones(3))
    with compile_inspect.record() as recording:
        torch.compile(fresh(), backend="eager")(torch.ones(3))
    assert "torch._dynamo.config.assume_static_by_default" not in recording.inspection.environment.configuration


def test_a_setting_of_the_programs_is_kept() -> None:
    with torch._dynamo.config.patch(assume_static_by_default=False), compile_inspect.record() as recording:
        torch.compile(fresh(), backend="eager")(torch.ones(3))
    assert recording.inspection.environment.configuration["torch._dynamo.config.assume_static_by_default"] is False
