"""If a collector raises, the program goes on and the capture says what is missing."""

from __future__ import annotations

import pytest
import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config

import compile_inspect
from compile_inspect import torch_private
from compile_inspect.capture import recorder
from compile_inspect.capture.collectors import COLLECTORS
from compile_inspect.capture.collectors.base import Collector
from compile_inspect.capture.tap import Tap
from compile_inspect.journal import MemoryJournal
from conftest import fresh_function, quick_first


def fresh_program():
    """A function that torch has not compiled before, and its input."""
    program = fresh_function("y = (x.sin() * 2 + 1).sum()\nprint('hello')\nreturn y")
    return program, torch.ones(4, requires_grad=True)


def run_recorded(monkeypatch: pytest.MonkeyPatch, collectors, capsys: pytest.CaptureFixture[str], backend: str = "inductor"):
    monkeypatch.setattr(recorder, "tap", Tap(collectors))
    program, x = fresh_program()
    with compile_inspect.record() as recording:
        compiled = torch.compile(program, backend=backend)
        result = compiled(x)
        result.backward()
        compiled(torch.ones(5, requires_grad=True))
    output = capsys.readouterr()
    assert output.out == "hello\nhello\n"
    # Torch may warn about the machine; nothing of ours may show.
    assert "injected" not in output.err and "Traceback" not in output.err
    assert torch.allclose(result, (x.sin() * 2 + 1).sum())
    assert torch.allclose(x.grad, 2 * x.cos())
    return recording.inspection


def break_collector(broken: type[Collector]) -> type[Collector]:
    """The same collector with every method that sees evidence raising."""

    def fail(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("injected")

    methods = [name for name in vars(broken) if name.startswith("_on_") or name in ("on_trace", "flush")]
    assert methods, f"{broken.__name__} has nothing to break"
    return type(broken.__name__, (broken,), dict.fromkeys(methods, fail))


@pytest.fixture(autouse=True)
def no_stored_graphs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    # The scheduler must run, so that its collectors have something to fail at.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "faults-cache"))
    with inductor_config.patch(fx_graph_cache=False), functorch_config.patch(enable_autograd_cache=False):
        yield


@pytest.mark.parametrize("broken", quick_first(COLLECTORS, 6), ids=lambda collector: collector.__name__)
def test_a_collector_that_raises(broken, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    collectors = [break_collector(item) if item is broken else item for item in COLLECTORS]
    # Something to see for the two collectors that have nothing to do otherwise.
    something = {"triton.cudagraphs": broken.name == "cuda graphs", "fx_graph_cache": broken.name == "caches"}
    with inductor_config.patch(something):
        inspection = run_recorded(monkeypatch, collectors, capsys)
    (missing,) = {(item.collector, item.reason) for item in inspection.missing_evidence}
    assert missing == (broken.name, "ZeroDivisionError: injected")
    assert inspection.complete
    present = {
        "frames": bool(inspection.compilations and inspection.compilations[0].outcome.name == "COMPILED"),
        "phases": bool(inspection.phases),
        "graphs": bool(inspection.graphs and inspection.graphs[0].stage.name == "DYNAMO"),
        "graph breaks": bool(inspection.breaks),
        "guards": bool(inspection.guards),
        "recompiles": bool(inspection.recompiles),
        "generated code": any(lowering.code for lowering in inspection.lowerings),
        "bytecode": bool(inspection.bytecode),
        "environment": bool(inspection.environment.torch),
    }
    assert {name for name, there in present.items() if not there} <= {broken.name}
    assert present.get(broken.name, False) is False


@pytest.mark.parametrize("method", ["__init__", "observations", "flush", "on_listener"])
def test_any_part_of_a_collector_may_raise(method, monkeypatch, capsys) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError("injected")

    first = COLLECTORS[1]
    broken = type(first.__name__, (first,), {method: fail})
    inspection = run_recorded(monkeypatch, [broken, *COLLECTORS[2:]], capsys, backend="eager")
    assert inspection.breaks and inspection.guards


def test_a_journal_that_raises(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(self: MemoryJournal, event: object) -> None:
        if event["kind"] != "end":
            raise OSError("disk full")

    monkeypatch.setattr(MemoryJournal, "append", fail)
    inspection = run_recorded(monkeypatch, COLLECTORS, capsys, backend="eager")
    assert inspection.compilations == ()


def test_a_hook_that_this_torch_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_private, "BUILD_GUARDS", torch_private.HookPoint("torch._dynamo.guards", "NoSuchClass.method"))
    inspection = run_recorded(monkeypatch, COLLECTORS, capsys, backend="eager")
    (missing,) = inspection.missing_evidence
    assert missing.collector == "guards"
    assert "has no torch._dynamo.guards:NoSuchClass.method" in missing.reason
    assert inspection.guards  # their text still comes with torch's event


def test_an_unknown_torch_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_private, "OLDEST_TESTED", (98, 0))
    monkeypatch.setattr(torch_private, "NEWEST_TESTED", (99, 0))
    inspection = run_recorded(monkeypatch, COLLECTORS, capsys, backend="eager")
    (missing,) = inspection.missing_evidence
    assert missing.collector == "torch version"
    assert "tested with (98.0 to 99.0)" in missing.reason
    assert missing.times == 1
    assert not inspection.environment.torch_supported
    assert inspection.breaks and inspection.guards
