"""What verify looks at besides random numbers, and what it says it has not looked at."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest
import torch
from other_arithmetic import Reordered
from random_programs import EXPRESSIONS
from torch import Tensor

from compile_inspect import Target, TargetError, verify
from compile_inspect.agreement import compare, make_reference
from compile_inspect.agreement.inputs import clone_inputs, generate_inputs, same_signature
from compile_inspect.agreement.rounding import perturbed_run
from compile_inspect.records import DifferenceKind, Verdict
from compile_inspect.variants import Prepared, Task, variant

pytestmark = pytest.mark.usefixtures("unhurried")


def against(right: Any, wrong: Any, *args: Any, gradients: bool = False, samples: int = 3) -> Any:
    task = Task(right, args, {}, gradients)
    claimed = Prepared(variant("aot_eager"), lambda *given, **named: task.run(wrong, given, named), None, 0.0)
    return compare(task, claimed, samples=samples)


def test_ten_percent_of_a_softmax_in_bfloat16_are_not_rounding() -> None:
    x = torch.randn(4, 16).bfloat16()
    assert against(lambda x: x.softmax(-1), lambda x: x.float().softmax(-1).bfloat16(), x).agrees
    found = against(lambda x: x.softmax(-1), lambda x: x.softmax(-1) * 1.1, x)
    assert found.differences[0].kind is DifferenceKind.VALUE


def test_a_maximum_stays_equal_to_its_source_under_disturbance() -> None:
    def is_largest(s: Tensor) -> Tensor:
        s = s.exp() / 3
        return (s == s.amax(-1, keepdim=True)).float() + (s == s.max(-1, keepdim=True).values).float()

    x = torch.randn(50, 40)
    for seed in range(5):
        assert torch.equal(perturbed_run(Task(is_largest, (x,)), seed)(x).result, is_largest(x))
    assert not against(is_largest, lambda s: is_largest(s) * 0.5, x).agrees


def test_every_operation_of_the_random_programs_can_be_disturbed() -> None:
    x, y = torch.randn(4, 5, requires_grad=True), torch.randn(4, 5)
    for expression in EXPRESSIONS:
        source = "lambda x, y: " + expression.format(a="x", b="y", n=4, m=5)
        task = Task(eval(source, {"torch": torch, "F": torch.nn.functional}), (x, y))
        plain = task.function(x, y)
        assert perturbed_run(task, 1)(x, y).result.shape == plain.shape, expression
        if plain.requires_grad:
            found = perturbed_run(replace(task, gradients=True), 1)(x, y)
            assert found.gradients[0].shape == x.shape and found.gradients[0].isfinite().all(), expression


def two_pass(x: Tensor) -> Tensor:
    return (x - x.mean()).square().sum() / (x.numel() - 1)


def in_another_order(x: Tensor) -> Tensor:
    return (x - x.amax()).exp().view(1000, -1).sum(0).sum().log() + x.amax()


@pytest.mark.parametrize(
    ("one", "other", "shift"),
    [
        (torch.var, two_pass, 0.0),
        (torch.var, two_pass, 10.0),
        (torch.var, lambda x: x.double().var().to(x.dtype), 0.0),
        (torch.var, lambda x: x.double().var().to(x.dtype), 10.0),
        (torch.sum, lambda x: x.cumsum(0)[-1], 0.0),
        (torch.sum, lambda x: x.cumsum(0)[-1], 10.0),
        (torch.mean, lambda x: x.flip(0).view(1000, -1).mean(1).mean(), 0.0),
        (torch.mean, lambda x: x.flip(0).view(1000, -1).mean(1).mean(), 10.0),
        (lambda x: x.logsumexp(0), in_another_order, 10.0),
        # What is added to all is taken away before the powers are: the same sum once more.
        pytest.param(lambda x: x.logsumexp(0), in_another_order, 0.0, marks=pytest.mark.exhaustive),
    ],
)
def test_a_million_values_in_another_order_are_no_alarm(one: Any, other: Any, shift: float) -> None:
    x = torch.randn(1_000_000, generator=torch.Generator().manual_seed(1)) + shift
    assert against(one, other, x, samples=0).agrees
    assert not against(one, lambda x: other(x) * 1.01, x, samples=0).agrees


def counting() -> Any:
    count = itertools.count(1)
    return lambda x: x * next(count)


def appending() -> Any:
    calls: list[int] = []

    def function(x: Tensor) -> Tensor:
        calls.append(1)
        return x * len(calls)

    return function


@pytest.mark.parametrize(
    "function", [counting(), appending(), lambda x: x * time.perf_counter()], ids=["count", "list", "clock"]
)
def test_nothing_is_claimed_about_a_function_with_state(function: Any) -> None:
    found = verify(function, torch.ones(3, dtype=torch.float64), variants=["eager-backend"]).variants[0]
    assert found.verdict is Verdict.NONDETERMINISTIC and not found.agrees
    assert "eager itself returns a different result when it runs again" in found.reason


def test_an_exhausted_iterator_is_state() -> None:
    values = iter([2.0])
    reference = make_reference(Task(lambda x: x * next(values), (torch.ones(3),)))
    assert reference.nondeterministic == ("result (it raises StopIteration)",)


def test_a_target_that_raises_is_refused_unless_a_variant_hides_it() -> None:
    def function(x: Tensor) -> Tensor:
        raise KeyError("nothing there")

    with pytest.raises(TargetError, match="fails in eager mode: KeyError: 'nothing there'"):
        verify(function, torch.ones(3), variants=["eager-backend", "cudagraphs"])


class Marked(torch.Tensor):
    pass


def jagged() -> Tensor:
    return torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged)


@pytest.mark.parametrize(
    "x",
    [
        torch.eye(4).to_sparse(),
        torch.eye(4).to_sparse_csr(),
        jagged(),
        torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)]),
        torch.randn(3).as_subclass(Marked),
        torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8),
    ],
    ids=["sparse", "csr", "jagged", "nested", "subclass", "quantized"],
)
def test_tensors_of_other_kinds_are_compared(x: Tensor) -> None:
    def function(x: Tensor) -> Tensor:
        return x.dequantize() * 2 if x.is_quantized else x * 2

    task = Task(function, (x,))
    for factor, agrees in ((1, True), (3, False)):
        wrong = lambda x, factor=factor: function(x) * factor  # noqa: E731
        claimed = Prepared(variant("aot_eager"), lambda x, wrong=wrong: task.run(wrong, (x,), {}), None, 0.0)
        assert compare(task, claimed).agrees is agrees


def test_a_tensor_that_says_nothing_about_itself_is_declined() -> None:
    class Closed(torch.Tensor):
        def detach(self) -> Any:
            raise RuntimeError("not today")

    def function(x: Tensor) -> Tensor:
        return (x * 2).as_subclass(Closed)

    found = verify(function, torch.ones(3), variants=["aot_eager"]).variants[0]
    assert found.verdict is Verdict.REFUSED and "cannot be compared: RuntimeError: not today" in found.reason


def test_clones_share_memory_as_the_inputs_do() -> None:
    base = torch.arange(10.0)
    inputs = (base[:6], base[4:], torch.ones(2)), {"z": base[::2]}
    (one, other, alone), named = clone_inputs(inputs)
    other.zero_()
    assert one.tolist() == [0, 1, 2, 3, 0, 0] and named["z"].tolist() == [0, 2, 0, 0, 0] and alone.tolist() == [1, 1]
    assert base[9] == 9 and one.stride() == (1,) and named["z"].stride() == (2,)
    for _, made in generate_inputs(inputs, 3, seed=0):
        assert same_signature(made, inputs)
        assert made[0][0][4] == made[0][1][0]
    assert not same_signature(((base[:6].clone(), base[4:], torch.ones(2)), {"z": base[::2]}), inputs)


def test_overlapping_inputs_are_compared_as_such() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return y * 2

    base = torch.arange(6.0)
    found = against(function, lambda x, y: (y * 2, x.add_(1))[0], base[:4], base[2:])
    assert found.differences[0].kind is DifferenceKind.VALUE
    assert against(function, function, base[:4], base[2:]).agrees


def test_probes_that_would_do_harm_are_left_out_and_named() -> None:
    def halved(x: Tensor) -> Tensor:
        while x.norm() > 1:
            x = x / 2
        return x

    unseen = verify(halved, torch.rand(3), variants=["eager-backend"]).variants[0].not_probed
    assert "inputs with infinities: eager does not finish there" in unseen

    def sized(x: Tensor) -> Tensor:
        return torch.zeros(int(x.sum().item()) + 2)

    unseen = verify(sized, torch.rand(3), variants=["eager-backend"], samples=1).variants[0].not_probed
    assert "huge inputs: the function converts tensors to Python numbers, which may be sizes" in unseen


def test_extreme_integers_are_tried_where_they_are_only_numbers() -> None:
    reference = make_reference(Task(lambda x: x + 1, (torch.arange(9),)))
    assert "inputs with extreme integers" in [point.name for point in reference.points]
    found = against(lambda x: x + 1, lambda x: x + 1 - (x > 2**40).long(), torch.arange(9))
    assert found.differences[0].point == "inputs with extreme integers"


def test_a_finished_comparison_says_what_it_did_not_look_at() -> None:
    found = verify(lambda x, n: x * n, torch.ones(3), 2, variants=[Reordered()])
    expected = ("other shapes", "dtypes other than float32", "other values of non-tensor arguments", "gradients")
    assert found.variants[0].not_probed == expected
    assert "  not probed: other shapes; dtypes other than float32" in str(found)
    with_further = Target(torch.sin, (torch.ones(3),), further=(((torch.ones(4),), {}),))
    assert "shapes other than those given" in verify(with_further, variants=[Reordered()]).variants[0].not_probed
    alone = verify(torch.sin, torch.ones(3), variants=[Reordered()], samples=0).variants[0]
    assert alone.reason == "it agrees with eager at 1 input" and "inputs other than those given" in alone.not_probed


def test_gradients_are_compared_where_eager_gives_them() -> None:
    model = torch.nn.Linear(3, 2)
    assert verify(model, torch.ones(1, 3), variants=[Reordered()]).gradients
    assert not verify(model, torch.ones(1, 3), variants=[Reordered()], gradients=False).gradients
    with torch.no_grad():
        assert not verify(model, torch.ones(1, 3), variants=[Reordered()]).gradients


def test_second_derivatives_where_they_are_asked_for() -> None:
    def function(x: Tensor) -> Tensor:
        return (x.sin() * x).sum()

    x = torch.randn(4, requires_grad=True)
    found = verify(function, x, variants=[Reordered(), "aot_eager"], second_derivatives=True, blame=False)
    assert found.variant("reordered").verdict is Verdict.AGREES
    assert {"gradient of x", "second derivative by x"} <= {item.name for item in found.variant("reordered").measured}
    # What AOTAutograd makes can be differentiated once.
    assert found.variant("aot_eager").differences[0].name == "second derivative by x"
    with pytest.raises(TargetError, match="leave out gradients=False"):
        verify(function, x, gradients=False, second_derivatives=True)


class LargerGradient(torch.autograd.Function):
    """The same values, and gradients that are a tenth too large."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_: Any, above: Tensor) -> Tensor:
        return above * 1.1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(-1),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: x - x.mean(),
        lambda x: x - x.mean(-1, keepdim=True),
    ],
    ids=["softmax", "layer norm", "centered", "centered rows"],
)
def test_gradients_of_what_adds_up_to_a_constant(function: Any) -> None:
    x = torch.randn(5, 11, requires_grad=True)
    assert against(function, function, x, gradients=True).agrees
    assert not against(function, lambda x: function(LargerGradient.apply(x)), x, gradients=True).agrees


def test_what_cancels_inside_an_operation_is_rounding() -> None:
    """1 + erf(x) is 0 in float32 below -5.5, where a more careful kernel still has a few digits."""

    def careful(x: Tensor) -> Tensor:
        return (torch.nn.functional.gelu(x.double())).to(x.dtype)

    x = torch.linspace(-8.0, 8.0, 65, requires_grad=True)
    assert against(torch.nn.functional.gelu, careful, x, gradients=True).agrees


@pytest.mark.parametrize("function", [torch.log1p, torch.expm1])
def test_digits_lost_next_to_zero_are_no_rounding(function: Any) -> None:
    def careless(x: Tensor) -> Tensor:
        return torch.log(1 + x) if function is torch.log1p else torch.exp(x) - 1

    assert not against(function, careless, torch.tensor([1e-8, 1e-4, 0.5])).agrees
