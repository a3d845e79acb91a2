"""Compiled code that is known to be wrong, each caught, and blamed on what is at fault."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_inspect import verify
from compile_inspect.agreement import compare, make_reference
from compile_inspect.records import BlameStage, DifferenceKind, VariantAgreement, Verdict
from compile_inspect.variants import Task, variant

pytestmark = pytest.mark.usefixtures("unhurried")

HERE = __file__


def only(function: Callable[..., Any], *args: Any, name: str, **choices: Any) -> VariantAgreement:
    return verify(function, *args, variants=[name], **choices).variant(name)


def line_of(function: Callable[..., Any], text: str) -> int:
    lines, first = python_inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x * 2
    return x - 1


def with_relu(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = torch.relu(y)
    return z.cos() + y


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 7


def gradient_inside(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda value: Scaled.apply(value).sin().sum())(x)  # type: ignore[no-any-return,no-untyped-call]


def pulled_back(x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    _, pull = torch.func.vjp(lambda value: torch.stack([value.sum(), torch.trace(value)]), x)
    return torch.vmap(lambda vector: pull(vector)[0])(vectors)  # type: ignore[no-any-return]


def test_a_branch_that_torchscript_froze() -> None:
    found = only(branching, torch.ones(3), name="torchscript/trace")
    assert found.verdict is Verdict.DISAGREES
    assert found.differences[0].kind is DifferenceKind.VALUE
    assert found.blame is not None and found.blame.stage is BlameStage.TRACING
    assert found.blame.location is not None
    assert (found.blame.location.file, found.blame.location.line) == (HERE, line_of(branching, "if x.sum()"))
    assert found.blame.location.code == "if x.sum() > 0:"


def test_a_branch_that_torch_compile_follows() -> None:
    assert only(branching, torch.ones(3), name="aot_eager").verdict is Verdict.AGREES


def scaled_by_closure() -> Callable[[torch.Tensor], torch.Tensor]:
    scale, weight = 3.0, torch.eye(4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight * scale).tanh()

    return function


@pytest.mark.parametrize("name", ["inductor-callable", pytest.param("aot-inductor", marks=pytest.mark.exhaustive)])
def test_a_number_of_the_closure_that_a_graph_froze(name: str) -> None:
    function = scaled_by_closure()
    found = only(function, torch.ones(2, 4), name=name)
    assert found.verdict is Verdict.ASSUMES
    assert found.assumptions == ("scale stays 3.0",)  # the tensor is an input of the graph and is followed
    assert found.reason == "it agrees with eager as long as scale stays 3.0"
    assert torch.equal(function(torch.ones(1, 4)), torch.full((1, 4), 3.0).tanh())  # put back


def test_a_tensor_of_the_closure_that_torchscript_froze() -> None:
    found = only(scaled_by_closure(), torch.ones(2, 4), name="torchscript/trace")
    assert found.assumptions == ("scale stays 3.0", "weight is not replaced by another tensor")


def test_a_number_given_that_a_graph_froze() -> None:
    def power(x: torch.Tensor, exponent: int) -> torch.Tensor:
        return x**exponent

    assert only(power, torch.ones(3) * 2, 2, name="inductor-callable").assumptions == ("exponent stays 2",)
    assert only(power, torch.ones(3) * 2, 2, name="aot_eager").verdict is Verdict.AGREES


def test_an_attribute_of_a_module_that_a_graph_froze() -> None:
    class Gain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = 2
            self.unused = 5

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.gain

    module = Gain()
    assert only(module, torch.ones(3), name="inductor-callable").assumptions == ("gain stays 2",)
    assert module.gain == 2 and module.unused == 5


def test_a_constant_that_torch_compile_was_told_not_to_guard() -> None:
    class Gain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = 2.0
            self.guarded = 3.0

        @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
        def current(self) -> float:
            return self.gain

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.current() + self.guarded

    found = only(Gain(), torch.ones(3), name="aot_eager")
    assert found.verdict is Verdict.ASSUMES and found.assumptions == ("gain stays 2.0",)


def test_numpy_inside_is_frozen_and_found() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * float(x.detach().numpy().max())

    assert only(function, torch.ones(3), name="torchscript/trace").verdict is Verdict.DISAGREES


@pytest.mark.parametrize("name", ["eager-backend", "aot_eager"])
def test_a_custom_backward_that_dynamo_dropped(name: str) -> None:
    found = only(gradient_inside, torch.tensor([0.5, -1.0]), name=name)
    assert found.verdict is Verdict.DISAGREES
    assert found.blame is not None and found.blame.stage is BlameStage.DYNAMO
    first = found.differences[0]
    assert float(first.eager) == pytest.approx(7 * float(first.variant))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inductor", pytest.param("inductor-callable", marks=pytest.mark.exhaustive)])
def test_the_row_of_torch_trace(name: str) -> None:
    inputs = torch.randn(3, 3), torch.eye(2)
    found = verify(pulled_back, *inputs, variants=["aot_eager", name])
    assert found.variant("aot_eager").verdict is Verdict.AGREES
    assert not found.agrees
    item = found.variant(name)
    assert item.verdict is Verdict.DISAGREES and item.blame is not None
    assert item.blame.stage is BlameStage.INDUCTOR
    assert "index_put" in item.blame.operation
    assert item.blame.location is not None and item.blame.location.line == line_of(pulled_back, "torch.vmap")


def wrong_backends() -> list[str]:
    backends = torch.compiler.list_backends(exclude_tags=())
    return [name for name in backends if name.startswith("relu_") and name.endswith("_error_TESTING_ONLY")]


@pytest.mark.parametrize("name", wrong_backends())
@pytest.mark.parametrize("gradients", [False, True])
def test_backends_that_torch_made_wrong(name: str, gradients: bool) -> None:
    found = only(with_relu, torch.randn(5, requires_grad=gradients), name=name)
    assert found.verdict is (Verdict.DISAGREES if "accuracy" in name else Verdict.REFUSED)
    assert found.blame is not None and found.blame.stage is BlameStage.BACKEND
    assert found.blame.operation == "torch.relu" and found.blame.location is not None
    assert (found.blame.location.file, found.blame.location.line) == (HERE, line_of(with_relu, "torch.relu"))
    assert found.blame.location.code == "z = torch.relu(y)"


def test_torch_has_an_accuracy_backend_to_test_with() -> None:
    assert "relu_accuracy_error_TESTING_ONLY" in wrong_backends()


@pytest.mark.slow
@pytest.mark.parametrize("gradients", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_fault_put_into_inductor(gradients: bool, fresh_inductor_with_wrong_relu: None) -> None:
    found = verify(with_relu, torch.randn(7, requires_grad=gradients), variants=["aot_eager", "inductor", "inductor-callable"])
    assert found.variant("aot_eager").verdict is Verdict.AGREES
    for name in ("inductor", "inductor-callable"):
        item = found.variant(name)
        assert item.verdict is Verdict.DISAGREES and item.blame is not None
        assert item.blame.stage is BlameStage.INDUCTOR and "relu" in item.blame.operation
        assert item.blame.location is not None and item.blame.location.line == line_of(with_relu, "torch.relu")


@pytest.fixture
def fresh_inductor_with_wrong_relu() -> Any:
    from torch._inductor import config

    torch.compiler.reset()
    with config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy", "fx_graph_cache": False}):
        yield
    torch.compiler.reset()


def test_a_wrong_gradient_alone_is_caught() -> None:
    """A backend that is right forward and wrong backward."""

    def backend(graph: Any, example: Any) -> Any:
        from torch._dynamo.backends.common import aot_autograd

        def doubled(inner: Any, inputs: Any) -> Any:
            return lambda *tensors: [item * 2 if torch.is_tensor(item) else item for item in inner(*tensors)]

        return aot_autograd(fw_compiler=lambda inner, inputs: inner, bw_compiler=doubled)(graph, example)

    task = Task(with_relu, (torch.randn(5, requires_grad=True),), {}, True)
    compiled = torch.compile(with_relu, backend=backend)
    prepared = variant("aot_eager").prepare(task)
    prepared = type(prepared)(prepared.variant, lambda *args: task.run(compiled, args, {}), None, 0.0)
    found = compare(task, prepared)
    assert not found.agrees
    assert {item.name for item in found.differences} == {"gradient of x"}


def test_an_effect_that_is_dropped_is_caught() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        x.add_(1)
        return y

    task = Task(function, (torch.ones(3),))
    prepared = variant("eager").prepare(Task(function, (torch.ones(3),)))
    wrong = type(prepared)(variant("aot_eager"), lambda x: task.run(lambda x: x * 2, (x,), {}), None, 0.0)
    found = compare(task, wrong, reference=make_reference(task, samples=0))
    assert [(item.kind, item.name) for item in found.differences] == [(DifferenceKind.SIDE_EFFECT, "x after the call")]
