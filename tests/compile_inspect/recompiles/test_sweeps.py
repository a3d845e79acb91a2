"""Sweeps over sizes and values: predictions match torch.compile, counted with and without our machinery."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from compile_inspect.recompiles import Call, compare, observe, predict, temporary_attribute
from compile_inspect.target import Target


def pointwise(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1) * x


def matrix_product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x @ weight).relu()


def branching(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.shape[0] > 10 else x - 1


def aligned(x: torch.Tensor) -> torch.Tensor:
    return x.exp() if x.shape[0] % 8 == 0 else x.cos()


def concatenated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y], dim=0) * 2


def shared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y + y


def powered(x: torch.Tensor, exponent: int) -> torch.Tensor:
    return x**exponent + exponent


def looped(x: torch.Tensor, times: int) -> torch.Tensor:
    for _ in range(times):
        x = x.sin()
    return x


def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


def flagged(x: torch.Tensor, negative: bool, mode: str = "sum") -> torch.Tensor:
    return getattr(-x if negative else x, mode)()


def listed(items: list[torch.Tensor]) -> torch.Tensor:
    return sum(item.sum() for item in items)  # type: ignore[return-value]


def reshaped(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, 2).sum(1)


def unrolled(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([row.sum() for row in x])


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    torch._dynamo.graph_break()
    return y.sin() if y.shape[0] > 10 else y.cos()


def inner(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def calling(x: torch.Tensor) -> torch.Tensor:
    return inner(x).sum() + inner(x.flatten()).sum()


def depending(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].sum() if x.sum() > 4 else x * 3


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.steps = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.steps


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return x + self.seen


class Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


BLOCK = Block()
SCALE = 2


def with_global(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def rows(*sizes: int, width: int = 4) -> list[Call]:
    return [Call((torch.ones(size, width),)) for size in sizes]


def wide(*shapes: tuple[int, ...]) -> list[Call]:
    return [Call((torch.ones(*shape),)) for shape in shapes]


def pairs(*sizes: tuple[int, int]) -> list[Call]:
    return [Call((torch.ones(one, 4), torch.ones(other, 4))) for one, other in sizes]


def valued(*values: Any) -> list[Call]:
    return [Call((torch.ones(3, 4), value)) for value in values]


def products(*sizes: int) -> list[Call]:
    weight = torch.ones(4, 5)
    return [Call((torch.ones(size, 4), weight)) for size in sizes]


def marked(*sizes: int, dimension: int = 0, firmly: bool = True) -> list[Call]:
    calls = rows(*sizes)
    for call in calls:
        (torch._dynamo.mark_dynamic if firmly else torch._dynamo.maybe_mark_dynamic)(call.args[0], dimension)
    return calls


def attributes(*values: int) -> list[Call]:
    return [
        Call((torch.ones(2, 4),), around=lambda value=value: temporary_attribute(BLOCK, "steps", value)) for value in values
    ]  # type: ignore[misc]


def global_values(*values: int) -> list[Call]:
    import sys

    here = sys.modules[__name__]
    return [Call((torch.ones(2, 4),), around=lambda value=value: temporary_attribute(here, "SCALE", value)) for value in values]  # type: ignore[misc]


def dtypes(*kinds: torch.dtype) -> list[Call]:
    return [Call((torch.ones(3, 4, dtype=kind),)) for kind in kinds]


def devices(*names: str) -> list[Call]:
    return [Call((torch.ones(3, 4, device=name),)) for name in names]


def gradients(*wanted: bool) -> list[Call]:
    return [Call((torch.ones(3, 4, requires_grad=each),)) for each in wanted]


def modes(*around: Callable[[], Any]) -> list[Call]:
    return [Call((torch.ones(3, 4, requires_grad=True),), around=each) for each in around]


def transposed() -> list[Call]:
    return [Call((torch.ones(3, 4),)), Call((torch.ones(4, 3).t(),)), Call((torch.ones(3, 4),)), Call((torch.ones(4, 5).t(),))]


def sliced(*sizes: int) -> list[Call]:
    whole = torch.ones(100, 4)
    return [Call((whole[:size],)) for size in sizes]


def the_same_twice() -> list[Call]:
    x = torch.ones(3, 4)
    return [Call((x, x)), Call((x, torch.ones(3, 4))), Call((x, x))]


def lists(*lengths: int) -> list[Call]:
    return [Call(([torch.ones(3)] * length,)) for length in lengths]


def autocast() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@dataclass(frozen=True)
class Sweep:
    name: str
    function: Callable[..., Any]
    calls: Callable[[], list[Call]]
    dynamic: bool | None = None
    limit: int | None = None


EAGER, NO_GRAD = contextlib.nullcontext, torch.no_grad
SWEEPS = [
    Sweep("pointwise", pointwise, lambda: rows(3, 4, 5, 3, 8)),
    Sweep("pointwise with 1 and 0", pointwise, lambda: rows(4, 1, 0, 5, 6, 1, 0)),
    Sweep("pointwise from 1", pointwise, lambda: rows(1, 2, 3, 1)),
    Sweep("pointwise from 0", pointwise, lambda: rows(0, 2, 0, 3)),
    Sweep("pointwise dynamic", pointwise, lambda: rows(3, 4, 1, 0, 5), True),
    Sweep("pointwise dynamic from 1", pointwise, lambda: rows(1, 4, 1, 5), True),
    Sweep("pointwise static", pointwise, lambda: rows(3, 4, 5, 3, 4), False),
    Sweep("pointwise static to the limit", pointwise, lambda: rows(*range(2, 14), 3), False),
    Sweep("pointwise static to a limit of 3", pointwise, lambda: rows(2, 3, 4, 5, 2, 6), False, 3),
    Sweep("pointwise, limit of 1", pointwise, lambda: rows(2, 3, 2), None, 1),
    Sweep("both dimensions", pointwise, lambda: wide((3, 4), (5, 4), (5, 6), (7, 8), (8, 8))),
    Sweep("other ranks", pointwise, lambda: wide((3,), (3, 4), (3, 4, 5), (4,), (5, 6), (2, 3, 4))),
    Sweep("square sizes", pointwise, lambda: wide((3, 3), (4, 4), (4, 5), (5, 5))),
    Sweep("square sizes, dynamic", pointwise, lambda: wide((3, 3), (4, 4), (4, 5), (5, 5)), True),
    Sweep("matrix product", matrix_product, lambda: products(3, 8, 5, 1, 0)),
    Sweep("matrix product, dynamic", matrix_product, lambda: products(3, 8, 5, 1, 4), True),
    Sweep("matrix product, inner size", matrix_product, lambda: products(4, 5, 6), True),
    Sweep("branch", branching, lambda: rows(3, 5, 10, 11, 12, 64, 1, 9)),
    Sweep("branch, dynamic", branching, lambda: rows(3, 11, 4, 12, 1), True),
    Sweep("branch, static", branching, lambda: rows(3, 11, 4, 12, 3), False),
    Sweep("eighths", aligned, lambda: rows(8, 16, 24, 12, 9, 1, 0, 32)),
    Sweep("eighths, dynamic", aligned, lambda: rows(8, 9, 16, 10), True),
    Sweep("concatenation", concatenated, lambda: pairs((2, 3), (2, 4), (5, 4), (3, 3), (1, 2), (0, 2))),
    Sweep("concatenation of equal sizes", concatenated, lambda: pairs((2, 2), (3, 3), (3, 4), (1, 1)), True),
    Sweep("shared dimension", shared, lambda: pairs((2, 2), (3, 3), (4, 4), (1, 1))),
    Sweep("shared dimension, broadcast", shared, lambda: pairs((2, 2), (3, 1), (1, 4), (5, 5), (6, 1))),
    Sweep("the same tensor twice", shared, the_same_twice),
    Sweep("module", BLOCK, lambda: rows(3, 4, 5, 1, 0, 3)),
    Sweep("module, dynamic", BLOCK, lambda: rows(3, 4, 1), True),
    Sweep("module attribute", BLOCK, lambda: attributes(2, 3, 4, 2, 5)),
    Sweep("module attribute, dynamic", BLOCK, lambda: attributes(2, 3, 4, 2), True),
    Sweep("module that counts", Counter(), lambda: rows(3, 3, 3, 3)),
    Sweep("module that counts to the limit", Counter(), lambda: rows(*[3] * 6), None, 4),
    Sweep("running statistics", Normed(), lambda: rows(3, 4, 5)),
    Sweep("built-in module", torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), lambda: rows(3, 4, 5)),
    Sweep("int argument", powered, lambda: valued(2, 3, 4, 1, 0, 2)),
    Sweep("int argument, dynamic", powered, lambda: valued(2, 3, 4, 1, 0, -1), True),
    Sweep("int argument, static", powered, lambda: valued(2, 3, 2, 4), False),
    Sweep("int as a count", looped, lambda: valued(2, 3, 4, 3, 2, 5)),
    Sweep("int, then float, then bool", powered, lambda: valued(2, 2.0, True, 2)),
    Sweep("float argument", scaled, lambda: valued(0.5, 1.5, 2.5, 0.5)),
    Sweep("float argument, dynamic", scaled, lambda: valued(0.5, 1.5, 2.5), True),
    Sweep("float argument, static", scaled, lambda: valued(0.5, 1.5, 0.5), False),
    Sweep("not a number", scaled, lambda: valued(float("nan"), float("nan"), float("inf"), 1.0)),
    Sweep("flags", flagged, lambda: [*valued(True, False, True), Call((torch.ones(3, 4), True), {"mode": "mean"})]),
    Sweep("global", with_global, lambda: global_values(2, 3, 4, 2)),
    Sweep("dtypes", pointwise, lambda: dtypes(torch.float32, torch.float64, torch.float16, torch.float32)),
    Sweep("devices", pointwise, lambda: devices("cpu", "meta", "cpu", "meta")),
    Sweep("autocast", BLOCK, lambda: [*rows(3), Call(rows(3)[0].args, around=autocast), *rows(3)]),
    Sweep("wish for a gradient", pointwise, lambda: gradients(False, True, False)),
    Sweep("grad mode", pointwise, lambda: modes(EAGER, NO_GRAD, EAGER, torch.inference_mode)),
    Sweep("strides", pointwise, transposed),
    Sweep("views of one base", pointwise, lambda: sliced(3, 4, 5)),
    Sweep("marked", pointwise, lambda: marked(3, 4, 5)),
    Sweep("marked, from 1", pointwise, lambda: marked(3, 1, 4)),
    Sweep("marked in a branch", branching, lambda: marked(3, 4, 11, 12)),
    Sweep("perhaps marked", pointwise, lambda: marked(1, 3, 4, firmly=False)),
    Sweep("marked after unmarked", pointwise, lambda: [*rows(3), *marked(4), *rows(5)]),
    Sweep("marked, but unrolled", unrolled, lambda: marked(3, 4)),
    Sweep("unrolled", unrolled, lambda: rows(2, 3, 4, 2, 5)),
    Sweep("lists", listed, lambda: lists(1, 2, 3, 2, 1)),
    Sweep("reshape that fails for some", reshaped, lambda: rows(2, 3, 4, width=3)),
    Sweep("graph break", broken, lambda: rows(3, 4, 11, 12, 1)),
    Sweep("graph break, dynamic", broken, lambda: rows(3, 4, 11, 12, 1), True),
    Sweep("graph break in a function called twice", calling, lambda: rows(3, 4, 5, 1)),
    Sweep("values decide", depending, lambda: rows(3, 4, 1, 0, 5)),
]

ALIKE = {
    "pointwise from 0", "pointwise dynamic from 1", "pointwise static to the limit", "matrix product, inner size",
    "branch, static", "eighths, dynamic", "module, dynamic", "module attribute, dynamic", "module that counts",
    "int argument, static", "float argument, static", "graph break, dynamic",
}  # fmt: skip
"""Sweeps of which each part is in another one too: the function with other sizes, the sizes or values with another one."""


def plain_count(sweep: Sweep) -> tuple[list[int], list[bool]]:
    """For each graph, the call it was compiled for, and which calls raised: torch alone, from a reset."""
    torch._dynamo.reset()
    compiled_for: list[int] = []
    raised = []

    def backend(graph: Any, inputs: Sequence[Any]) -> Any:
        compiled_for.append(index)
        return graph.forward

    before = {name: value for name, value in vars(sweep.function).items() if isinstance(value, int)}
    limit = torch._dynamo.config.recompile_limit if sweep.limit is None else sweep.limit
    with torch._dynamo.config.patch(recompile_limit=limit):
        function = torch.compile(sweep.function, backend=backend, dynamic=sweep.dynamic)
        for index, call in enumerate(sweep.calls()):  # noqa: B007 (the backend reads it)
            with call.context():
                try:
                    function(*call.args, **call.kwargs)
                    raised.append(False)
                except Exception:
                    raised.append(True)
    vars(sweep.function).update(before)
    torch._dynamo.reset()
    return compiled_for, raised


QUICK = [sweep for sweep in SWEEPS if sweep.name not in ALIKE][::2]


@pytest.mark.parametrize(
    "sweep", [pytest.param(sweep, id=sweep.name, marks=[pytest.mark.slow] * (sweep not in QUICK)) for sweep in SWEEPS]
)
def test_prediction_matches_torch_compile(sweep: Sweep) -> None:
    compiled_for, raised = plain_count(sweep)
    calls, target = sweep.calls(), Target(sweep.function)
    forecast = predict(target, calls, dynamic=sweep.dynamic, limit=sweep.limit)
    assert list(forecast.first_calls) == compiled_for
    assert [call.error is not None for call in forecast.calls] == raised
    assert all(item.failures for item in forecast.recompiles if item.is_reusable)
    observed = observe(target, calls, dynamic=sweep.dynamic, limit=sweep.limit)
    assert compare(forecast, observed).differences == ()
    assert observed.graph_count == forecast.graph_count == len(compiled_for)


def test_there_are_many_sweeps() -> None:
    names = {sweep.name for sweep in SWEEPS}
    assert names >= ALIKE and len(names) == len(SWEEPS) and len(names - ALIKE) >= 50
