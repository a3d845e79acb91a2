"""Forecasts held against what is seen."""

from __future__ import annotations

from dataclasses import replace

import torch

from compile_inspect.recompiles import Call, compare, observe, predict
from compile_inspect.target import Target


def branching(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.shape[0] > 10 else x.cos()


CALLS = [Call((torch.ones(size, 4),), label=f"batch={size}") for size in (3, 4, 11, 12)]


def test_agreement_and_what_is_said_where_there_is_none() -> None:
    target = Target(branching)
    forecast, observed = predict(target, CALLS), observe(target, CALLS)
    assert compare(forecast, observed).agrees and observed.backend == "eager"
    assert [call.label for call in observed.calls] == ["batch=3", "batch=4", "batch=11", "batch=12"]
    fewer = replace(forecast, compilations=forecast.compilations[:2])
    assert compare(fewer, observed).differences == ("0/2 of branching occurred at call 2 and was not predicted",)
    more = replace(observed, compilations=observed.compilations[:2])
    assert compare(forecast, more).differences == ("0/2 of branching was predicted for call 2 and did not occur",)
    later = replace(forecast, compilations=(*forecast.compilations[:2], replace(forecast.compilations[2], call=3)))
    assert compare(later, observed).differences == ("0/2 is branching at call 2, predicted was branching at call 3",)
    limited = predict(target, CALLS, limit=2)
    assert any("limits are hit" in sentence for sentence in compare(limited, observed).differences)
    raising = replace(observed, calls=(replace(observed.calls[0], error="an error"), *observed.calls[1:]))
    assert compare(forecast, raising).differences == ("call 0 raises an error, predicted was none",)


def test_other_backends() -> None:
    target = Target(branching)
    seen = observe(target, CALLS, backend="aot_eager")
    assert compare(predict(target, CALLS), seen).agrees and seen.backend == "aot_eager"

    def own(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        return graph.forward

    assert observe(target, CALLS, backend=own).backend == "own"


def test_looking_up_a_compilation() -> None:
    forecast = predict(Target(branching), CALLS)
    found = forecast.compilation("0/1")
    assert found is not None and found.call == 1 and found.is_recompile
    assert forecast.compilation("7/0") is None
