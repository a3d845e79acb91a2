"""A forecast leaves the process as it was: compiled code, counters, configuration, random numbers, the target."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._dynamo.config

import compile_inspect
from compile_inspect.errors import TargetError
from compile_inspect.recompiles import Call, observe, predict, temporary_attribute
from compile_inspect.recompiles.calls import as_calls, clone_inputs
from compile_inspect.target import Target


def rows(*sizes: int) -> list[Call]:
    return [Call((torch.ones(size, 4),)) for size in sizes]


def own(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1 if x.shape[0] > 10 else x.cos()


def helper(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * 2


def with_helper(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1


class Drifting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.last = x.shape[0]
        return self.norm(x) + torch.rand_like(x)


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Any) -> tuple[Any, list[Any]]:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return torch.compile(function, backend=backend), graphs


@pytest.mark.parametrize("function", [own, with_helper, torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())])
def test_the_users_compiled_code_is_still_in_use_and_goes_on_as_without_us(function: Any) -> None:
    mine, graphs = compiled(function)
    mine(torch.ones(3, 4))
    before = len(graphs)
    predict(Target(function), rows(3, 4, 11, 12, 1), limit=3)
    mine(torch.ones(3, 4))
    assert len(graphs) == before
    for size in (4, 5, 6):  # nothing was learnt about sizes either: one recompile, then dynamic
        mine(torch.ones(size, 4))
    assert len(graphs) == 2 * before


@pytest.fixture(params=[False, True], ids=["", "frozen"])
def perhaps_frozen(request: pytest.FixtureRequest) -> Iterator[None]:
    """Servers freeze what the garbage collector knows, which then lists none of it."""
    if request.param:
        gc.freeze()
    yield
    gc.unfreeze()


def test_what_the_user_compiled_before_does_not_matter_to_a_forecast(perhaps_frozen: None) -> None:
    frozen = gc.get_freeze_count() > 0
    expected = predict(Target(own), rows(3, 4, 11, 12))
    mine, _ = compiled(own)
    for size in range(2, 30):
        mine(torch.ones(size, 4))
    with torch._dynamo.config.patch(recompile_limit=2):
        limited = torch.compile(own, backend="eager", dynamic=False)
        for size in range(30, 40):
            limited(torch.ones(size, 4))
    again = predict(Target(own), rows(3, 4, 11, 12))
    assert again.compilations == expected.compilations
    assert again.limits == expected.limits == ()
    assert [call.used_compilations for call in again.calls] == [call.used_compilations for call in expected.calls]
    assert (gc.get_freeze_count() > 0) is frozen


def test_a_compiled_function_is_forecast_as_the_function_in_it() -> None:
    mine, graphs = compiled(own)
    assert predict(Target(mine), rows(3, 4)).graph_count == 2
    assert predict(Target(torch.compile(Drifting(), backend="eager")), rows(3)).graph_count == 1
    assert graphs == []


def test_counters_configuration_code_and_globals_are_what_they_were() -> None:
    mine, _ = compiled(own)
    mine(torch.ones(3, 4))
    utils, frames = torch._dynamo.utils, torch._dynamo.convert_frame

    def state() -> Any:
        return (
            {name: dict(group) for name, group in utils.counters.items()},
            dict(utils.compilation_time_metrics),
            len(utils._compilation_metrics),
            frames.FRAME_COUNTER,
            dict(frames.FRAME_COMPILE_COUNTER),
            [reference() for reference in frames.input_codes.seen],
            torch._dynamo.config.get_config_copy(),  # type: ignore[attr-defined]
            own.__code__,
            torch.random.get_rng_state().tolist(),
            {name for name in globals() if name.startswith("__import_")},
        )

    before = state()
    predict(Target(own), rows(3, 4, 11), limit=2)
    observe(Target(with_helper), rows(3, 4, 11), limit=2)
    assert state() == before
    assert own.__code__ is before[7]


def test_code_that_was_never_compiled_has_nothing_on_it_afterwards() -> None:
    predict(Target(own), rows(3, 4))
    assert torch._dynamo.eval_frame._debug_get_cache_entry_list(own.__code__) == []


def test_what_the_target_holds_is_put_back() -> None:
    model = Drifting()
    mean = model.norm.running_mean
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    forecast = predict(Target(model), rows(3, 3, 3))
    assert forecast.recompiles  # it counts its calls
    assert model.calls == 0 and not hasattr(model, "last") and model.norm.running_mean is mean
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_inputs_are_not_changed() -> None:
    def clears(x: torch.Tensor) -> torch.Tensor:
        return x.zero_()

    x = torch.ones(3)
    predict(Target(clears), [((x,), {}), ((x,), {})])
    assert x.tolist() == [1, 1, 1]


def test_a_recording_under_way_hears_nothing_of_it() -> None:
    mine, _ = compiled(own)
    with compile_inspect.record() as recording:
        mine(torch.ones(3, 4))
        predict(Target(own), rows(3, 4, 11))
        mine(torch.ones(4, 4))
    inspection = recording.inspection
    assert [item.id for item in inspection.compilations] == ["0/0", "0/1"]
    assert [item.compilation for item in inspection.recompiles] == ["0/1"]
    assert inspection.recompiles[0].latest_failure is not None
    assert not inspection.missing_evidence


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    marked = rows(3, 4)
    for call in marked:
        torch._dynamo.mark_dynamic(call.args[0], 0)

    def unrolled(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([row.sum() for row in x])

    def talking(x: torch.Tensor) -> torch.Tensor:
        print("called")
        return x.reshape(int(x.sum()), 2)

    predict(Target(talking), rows(3, 4))
    forecast = predict(Target(unrolled), marked)
    assert all(call.error is not None and "dynamic" in call.error for call in forecast.calls)
    predict(Target(own), rows(*range(2, 8)), dynamic=False, limit=2)
    assert capfd.readouterr() == ("", "")


def test_the_limit_and_what_runs_without_a_graph() -> None:
    forecast = predict(Target(own), rows(2, 3, 4, 5, 3), dynamic=False, limit=2)
    assert forecast.recompile_limit == 2 and forecast.first_calls == (0, 1)
    (hit,) = forecast.limits
    assert (hit.call, hit.function, hit.limit, hit.value, hit.frame) == (2, "own", "recompile_limit", 2, "0")
    assert hit.failure is not None and hit.failure.actual == "4"
    assert forecast.eager_calls == (2, 3)
    assert forecast.calls[4].used_compilations == ("0/1",)
    assert predict(Target(own), rows(2)).recompile_limit == torch._dynamo.config.recompile_limit


def test_the_guard_that_fails() -> None:
    forecast = predict(Target(own), rows(3, 4, 11))
    size, condition = forecast.recompiles
    assert size.cause is not None and (size.cause.variable, size.cause.expected, size.cause.actual) == ("x", "3", "4")
    assert size.cause.earlier_version == "0/0" and size.symbols
    assert condition.cause is not None
    assert (condition.cause.variable, condition.cause.actual) == ("x.size()[0]", "11")
    assert "10" in (condition.cause.expected or "")
    assert condition.cause.location is not None and condition.cause.location.function == "own"


def test_frames_after_a_graph_break_are_counted_apart() -> None:
    forecast = predict(Target(with_helper), rows(3, 4))
    assert forecast.break_count == 1
    assert len({item.id.partition("/")[0] for item in forecast.compilations}) >= 2
    assert len(forecast.graphs) < len(forecast.compilations)  # before the break there is nothing to compute


def test_calls_that_raise_are_told_and_the_others_go_on() -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 3)

    forecast = predict(Target(picky), [Call((torch.ones(size),)) for size in (3, 4, 6)])
    assert [call.error is not None for call in forecast.calls] == [False, True, False]


@pytest.mark.parametrize("inputs", [[], [torch.ones(1)], [(torch.ones(1),)]])
def test_odd_inputs_are_refused(inputs: Any) -> None:
    with pytest.raises(TargetError):
        predict(Target(own), inputs)


def test_an_odd_limit_is_refused() -> None:
    with pytest.raises(TargetError, match="limit is 0"):
        predict(Target(own), rows(1), limit=0)


def test_copies_are_what_dynamo_takes_the_originals_for() -> None:
    base = torch.arange(20.0).reshape(5, 4)
    tensors = {
        "plain": base.clone(),
        "transposed": base.t().clone(memory_format=torch.preserve_format),
        "view": base[1:3],
        "expanded": torch.ones(1, 4).expand(3, 4),
        "empty": torch.ones(0, 4),
        "wishing": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "bits": torch.ones(2).view(torch.int32),
        "conjugate": torch.ones(2, dtype=torch.complex64).conj(),
    }
    torch._dynamo.mark_dynamic(tensors["plain"], 0)
    _, copies = clone_inputs(((), tensors))
    for name, tensor in tensors.items():
        copy = copies[name]
        assert torch.equal(copy, tensor) and copy.stride() == tensor.stride(), name
        assert type(copy) is type(tensor) and copy.requires_grad == tensor.requires_grad, name
        if name not in ("bits", "conjugate"):
            assert copy._is_view() == tensor._is_view(), name
        assert not tensor.numel() or copy.data_ptr() != tensor.data_ptr(), name
    assert copies["plain"]._dynamo_dynamic_indices == {0}
    assert copies["plain"]._dynamo_dynamic_indices is not tensors["plain"]._dynamo_dynamic_indices
    (one, other), _ = clone_inputs(((tensors["plain"], tensors["plain"]), {}))
    assert one is other


def test_calls_from_bare_inputs_and_the_situation_of_a_call() -> None:
    (call,) = as_calls([((1,), {"k": 2})])
    assert call.inputs == ((1,), {"k": 2}) and call.leaves() == [1, 2]
    with Call(around=torch.no_grad).context():
        assert not torch.is_grad_enabled()
    with temporary_attribute(sys, "odd_name_of_ours", 1):
        assert sys.odd_name_of_ours == 1  # type: ignore[attr-defined]
    assert not hasattr(sys, "odd_name_of_ours")
