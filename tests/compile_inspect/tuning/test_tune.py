"""The fastest version that agrees, and what it does with calls it was not made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import compile_inspect
from compile_inspect import TargetError
from compile_inspect.records.decision import Decision, TuningOutcome
from compile_inspect.tuning import selection
from compile_inspect.tuning.cache_key import program_key
from compile_inspect.tuning.decision_cache import DecisionCache
from compile_inspect.variants import Task

torch.manual_seed(0)
X = torch.randn(3, 5)


def pointwise(x: Tensor) -> Tensor:
    for _ in range(12):
        x = torch.tanh(x * 1.1 + 0.1)
    return x


def variants_win(patch: pytest.MonkeyPatch) -> None:
    """All are timed, and eager is then said to take ten times as long: which is chosen does not depend on the machine."""
    interleave = selection.interleave

    def timed(calls: Any, **options: Any) -> dict[str, tuple[float, ...]]:
        found = interleave(calls, **options)
        return {name: ((1e-4,) if name == "eager" else (1e-5,)) * len(times) for name, times in found.items()}

    patch.setattr(selection, "interleave", timed)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def fast(kept: Path) -> compile_inspect.Tuned:
    return compile_inspect.tune(pointwise, X, variants=["aot-inductor", "torchscript/trace"], cache=kept)


def test_the_fastest_that_agrees_is_chosen(fast: compile_inspect.Tuned) -> None:
    decision = fast.decision
    assert decision.variant == "aot-inductor" and not decision.from_disk and not decision.gradients
    outcomes = {item.variant: item.outcome for item in decision.results}
    assert outcomes["aot-inductor"] is TuningOutcome.CHOSEN and outcomes["eager"] is TuningOutcome.SLOWER
    times = {item.variant: item.median for item in decision.results if item.median is not None}
    assert times["aot-inductor"] == min(times.values())
    assert "µs" in str(decision) and "aot-inductor" in repr(fast)


def test_other_inputs_go_the_safe_way(fast: compile_inspect.Tuned) -> None:
    torch.testing.assert_close(fast(X), pointwise(X))
    before = fast.fallbacks
    for other in (torch.randn(4, 5), X.double(), torch.randn(5, 3).T, X.clone().requires_grad_()):
        result = fast(other)
        torch.testing.assert_close(result, pointwise(other))
        assert result.requires_grad == other.requires_grad
    assert fast.fallbacks == before + 4


def test_outputs_of_several_calls_are_their_own(fast: compile_inspect.Tuned) -> None:
    inputs = [torch.randn(3, 5) for _ in range(4)]
    results = [fast(x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        torch.testing.assert_close(result, pointwise(x))


def test_an_earlier_decision_is_reused(fast: compile_inspect.Tuned, kept: Path) -> None:
    again = compile_inspect.tune(pointwise, X, cache=kept)
    assert again.decision.from_disk and again.decision.variant == "aot-inductor"
    torch.testing.assert_close(again(X), pointwise(X))


def test_damaged_and_stale_entries_are_dropped(fast: compile_inspect.Tuned, kept: Path, tmp_path: Path) -> None:
    task = Task(pointwise, (X,))
    store = DecisionCache(tmp_path)
    assert store.load(task) is None
    store.save(task, fast.decision, None)
    loaded = store.load(task)
    assert loaded is not None and loaded[0] == fast.decision and loaded[1] is None
    (store.entry(task) / "decision.json").write_text("{")
    assert store.load(task) is None and not store.entry(task).exists()
    package = tmp_path / "package"
    package.write_bytes(b"not a package")
    store.save(task, fast.decision, str(package))
    assert store.load(task) is not None
    (store.entry(task) / "package.pt2").write_bytes(b"changed")
    assert store.load(task) is None and not store.entry(task).exists()
    store.save(task, fast.decision, str(package))  # an honest digest of something that is no package
    built = compile_inspect.tune(pointwise, X, cache=tmp_path, variants=["torchscript/trace"])
    assert not built.decision.from_disk


def test_what_an_entry_depends_on() -> None:
    scale = 2.0

    def function(x: Tensor) -> Tensor:
        return x * scale

    first = program_key(Task(function, (X,)))
    assert program_key(Task(function, (torch.zeros(3, 5),))) == first
    assert program_key(Task(function, (X.double(),))) != first
    assert program_key(Task(function, (X.clone().requires_grad_(),), gradients=True)) != first
    scale = 3.0
    assert program_key(Task(function, (X,))) != first
    assert program_key(Task(lambda x: x * scale + 1, (X,))) != program_key(Task(lambda x: x * scale + 2, (X,)))


@pytest.mark.exhaustive
def test_eager_is_kept_where_nothing_wins() -> None:
    big = torch.randn(300, 300)
    tuned = compile_inspect.tune(torch.mm, big, big, variants=["torchscript/trace"])
    assert tuned.decision.variant in ("eager", "torchscript/trace")
    torch.testing.assert_close(tuned(big, big), big @ big)
    slow = compile_inspect.tune(lambda x: x + 1, X, variants=["inductor"])
    assert slow.decision.variant == "eager" and "beyond the noise" in slow.decision.reason


def test_a_variant_that_disagrees_is_never_used() -> None:
    def branching(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x * 3

    tuned = compile_inspect.tune(branching, X.abs(), variants=["torchscript/trace", "aot-inductor"])
    outcomes = {item.variant: item.outcome for item in tuned.decision.results}
    assert tuned.decision.variant == "eager"
    assert outcomes["torchscript/trace"] is TuningOutcome.REFUSED and outcomes["aot-inductor"] is TuningOutcome.REFUSED
    torch.testing.assert_close(tuned(-X.abs()), -X.abs() * 3)


def test_a_module_keeps_its_face() -> None:
    model = nn.Linear(5, 2)
    tuned = compile_inspect.tune(model, X, variants=["inductor-callable"])
    assert set(tuned.state_dict()) == {"weight", "bias"}
    tuned.eval()
    assert not model.training
    with torch.no_grad():
        torch.testing.assert_close(tuned(X), model(X))
        model.weight.add_(1)
        torch.testing.assert_close(tuned(X), model(X))
        model.double()
        torch.testing.assert_close(tuned(X.double()), model(X.double()))


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, compile_inspect.Tuned]:
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))

    def loss(x: Tensor) -> Tensor:
        return model(x).square().mean()

    with pytest.MonkeyPatch.context() as patch:
        variants_win(patch)
        tuned = compile_inspect.tune(loss, X, gradients=True, variants=["aot-inductor"])
    assert tuned.decision.variant == "aot-inductor", tuned.decision
    return model, tuned


def test_training_steps_are_the_same(trained: tuple[nn.Module, compile_inspect.Tuned]) -> None:
    model, tuned = trained
    assert tuned.decision.gradients
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        x = torch.randn(3, 5)
        (3 * tuned(x)).backward()
        found = [parameter.grad.clone() for parameter in model.parameters()]
        optimizer.zero_grad()
        (3 * model(x).square().mean()).backward()
        for ours, theirs in zip(found, model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs.grad, rtol=1e-4, atol=1e-6)
        optimizer.step()


def test_second_derivatives_are_refused_rather_than_wrong(trained: tuple[nn.Module, compile_inspect.Tuned]) -> None:
    model, tuned = trained
    (gradient,) = torch.autograd.grad(tuned(X), [model[0].weight], create_graph=True)
    with pytest.raises(RuntimeError):
        gradient.sum().backward()


def test_gradients_of_something_larger_than_a_number_are_refused() -> None:
    tuned = compile_inspect.tune(pointwise, X.clone().requires_grad_(), gradients=True, variants=["inductor-callable"])
    refused = next(item for item in tuned.decision.results if item.variant == "inductor-callable")
    assert refused.outcome is TuningOutcome.REFUSED and "one number" in refused.reason


def test_a_budget_of_nothing_tries_nothing() -> None:
    tuned = compile_inspect.tune(pointwise, X, budget=0.0)
    assert tuned.decision.variant == "eager"
    assert {item.outcome for item in tuned.decision.results if item.variant != "eager"} == {TuningOutcome.NOT_TRIED}


def test_mistakes_are_said_at_once() -> None:
    with pytest.raises(TargetError, match="needs a callable"):
        compile_inspect.tune(3)  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="not a variant"):
        compile_inspect.tune(pointwise, X, variants=["fastest"])


def test_an_exception_of_the_function_is_its_own() -> None:
    def broken(x: Tensor) -> Tensor:
        raise LookupError("of the user")

    with pytest.raises(LookupError, match="of the user"):
        compile_inspect.tune(broken, X, variants=["inductor-callable"])(X)


def test_decisions_survive_json() -> None:
    from compile_inspect import serialization

    tuned = compile_inspect.tune(pointwise, X, budget=0.0)
    assert serialization.from_data(Decision, serialization.to_data(tuned.decision)) == tuned.decision


@pytest.mark.exhaustive
def test_in_the_background(tmp_path: Path) -> None:
    tuned = compile_inspect.tune(pointwise, X, background=True, cache=tmp_path)
    assert tuned.decision.variant == "eager" and "another process" in tuned.decision.reason
    torch.testing.assert_close(tuned(X), pointwise(X))
    assert tuned.build.wait(120)
    torch.testing.assert_close(tuned(X), pointwise(X))
    assert tuned.decision.variant == "aot-inductor"
    torch.testing.assert_close(tuned(X), pointwise(X))
    assert compile_inspect.tune(pointwise, X, cache=tmp_path).decision.from_disk


def test_what_cannot_be_traced_runs_eagerly_in_the_background_too() -> None:
    tuned = compile_inspect.tune(lambda x: x * x.sum().item(), X, background=True)
    assert tuned.decision.variant == "eager"
    assert tuned.build.wait(120)
    torch.testing.assert_close(tuned(X), X * X.sum().item())
    assert tuned.decision.variant == "eager" and "No package" in tuned.decision.reason
    assert "value of a tensor" in tuned.decision.results[0].reason, tuned.decision


def test_a_build_that_is_killed() -> None:
    import os
    import signal

    tuned = compile_inspect.tune(pointwise, X, background=True)
    os.kill(tuned.build._process_id, signal.SIGKILL)
    assert tuned.build.wait(60)
    torch.testing.assert_close(tuned(X), pointwise(X))
    assert tuned.decision.variant == "eager" and "status -9" in tuned.decision.results[0].reason
    assert not tuned.build.package.parent.exists()


@pytest.mark.slow
def test_tuning_leaves_state_as_it_was() -> None:
    model = nn.BatchNorm1d(5)
    x, before = torch.randn(3, 5), torch.get_rng_state()
    copy, mean = x.clone(), model.running_mean.clone()
    tuned = compile_inspect.tune(model, x, variants=["aot_eager", "inductor-callable"])
    assert torch.equal(model.running_mean, mean) and model.num_batches_tracked == 0
    assert torch.equal(torch.get_rng_state(), before)
    tuned = compile_inspect.tune(lambda x: x.add_(1), x, variants=["aot_eager", "inductor-callable"])
    assert torch.equal(x, copy)
    assert tuned.decision.variant in ("eager", "aot_eager")
    assert compile_inspect.tune(model, torch.randn(3, 5), background=True).decision.variant == "eager"
    assert torch.equal(model.running_mean, mean) and model.num_batches_tracked == 0


def test_it_stays_in_its_process(fast: compile_inspect.Tuned) -> None:
    import copy
    import pickle

    with pytest.raises(TypeError, match="belongs to its process"):
        pickle.dumps(fast)
    with pytest.raises(TypeError, match="belongs to its process"):
        copy.copy(fast)


def test_progress_is_told_and_ctrl_c_keeps_what_was_found() -> None:
    told: list[tuple[str, float]] = []

    def interrupt(words: str, part: float) -> None:
        told.append((words, part))
        if "inductor-callable" in words:
            raise KeyboardInterrupt

    names = ["torchscript/trace", "inductor-callable", "aot-inductor"]
    tuned = compile_inspect.tune(pointwise, X, variants=names, progress=interrupt)
    outcomes = {item.variant: item.outcome for item in tuned.decision.results}
    assert told[0] == ("running eager", 0.0) and told[-1] == ("timing the variants that agree", 1.0)
    assert outcomes["torchscript/trace"] in (TuningOutcome.SLOWER, TuningOutcome.CHOSEN)
    assert outcomes["inductor-callable"] is outcomes["aot-inductor"] is TuningOutcome.NOT_TRIED
    torch.testing.assert_close(tuned(X), pointwise(X))


def test_a_function_that_changes_by_itself_is_refused_by_every_variant() -> None:
    calls = []

    def counting(x: Tensor) -> Tensor:
        calls.append(1.0)
        return x * len(calls)

    tuned = compile_inspect.tune(counting, X, variants=["aot-inductor", "torchscript/trace", "aot_eager"])
    assert tuned.decision.variant == "eager"
    for item in tuned.decision.results:
        if item.variant != "eager":
            assert item.outcome is TuningOutcome.REFUSED and "eager itself returns a different" in item.reason


def test_fallbacks_that_go_on_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    variants_win(monkeypatch)
    model = nn.Sequential(nn.Linear(5, 5), nn.LeakyReLU(0.1)).requires_grad_(False)
    tuned = compile_inspect.tune(model, X, variants=["torchscript/trace"])
    assert tuned.decision.variant == "torchscript/trace", tuned.decision
    model[1].negative_slope = 0.5
    with pytest.warns(UserWarning, match="negative_slope == 0.1"):
        for _ in range(12):
            torch.testing.assert_close(tuned(X), model(X))
    assert tuned.fallbacks == 12
