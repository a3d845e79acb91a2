"""What is caught and what is let pass, on variants made wrong by hand; and the parts the verdict is made of."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compile_inspect import TargetError, verify
from compile_inspect.agreement import Comparison, compare, make_reference
from compile_inspect.agreement.float64_run import float64_run, floating_precision
from compile_inspect.agreement.inputs import clone_inputs, clone_tensor, generate_inputs, same_signature
from compile_inspect.agreement.rounding import perturbed_run
from compile_inspect.agreement.run_outcome import input_names, seed_generators
from compile_inspect.agreement.source_lines import line_of_stack
from compile_inspect.agreement.stage_search import compile_with
from compile_inspect.records import Agreement, DifferenceKind, Verdict
from compile_inspect.serialization import from_data, to_data
from compile_inspect.variants import Prepared, Task, variant

pytestmark = pytest.mark.usefixtures("unhurried")

Function = Callable[..., Any]


def against(right: Function, wrong: Function, *args: Any, gradients: bool = False, name: str = "aot_eager") -> Comparison:
    """Compare a function with another that claims to be a variant of it."""
    task = Task(right, args, {}, gradients)
    claimed = Prepared(variant(name), lambda *given, **named: task.run(wrong, given, named), None, 0.0)
    return compare(task, claimed)


def product(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


def coarse_product(x: Tensor, y: Tensor) -> Tensor:
    return (x.bfloat16() @ y.bfloat16()).float()


def reordered_product(x: Tensor, y: Tensor) -> Tensor:
    order = torch.arange(x.shape[1]).flip(0)
    return x[:, order] @ y[order]


def one_element_off(x: Tensor, y: Tensor) -> Tensor:
    result = x @ y
    result.view(-1)[37] += 1e-3
    return result


def test_another_order_of_summation_is_let_pass_and_a_coarser_product_is_not() -> None:
    x, y = torch.randn(40, 300), torch.randn(300, 50)
    assert against(product, reordered_product, x, y).agrees
    assert not against(product, coarse_product, x, y).agrees


def test_one_element_in_two_thousand_is_found() -> None:
    found = against(product, one_element_off, torch.randn(40, 300), torch.randn(300, 50))
    assert not found.agrees
    assert found.differences[0].index == (0, 37)
    assert found.differences[0].error == pytest.approx(1e-3, rel=0.2)


def test_float64_is_held_to_float64() -> None:
    x, y = torch.randn(40, 300, dtype=torch.float64), torch.randn(300, 50, dtype=torch.float64)
    assert against(product, reordered_product, x, y).agrees
    assert not against(product, lambda x, y: (x.float() @ y.float()).double(), x, y).agrees
    assert not against(product, lambda x, y: x @ y * (1 + 1e-11), x, y).agrees


def test_eager_kernels_are_held_to_the_spacing_of_numbers() -> None:
    x = torch.randn(5000)
    assert against(torch.sum, lambda x: x.double().sum().float(), x, name="aot_eager").agrees
    assert not against(torch.sum, lambda x: x.sum() * (1 + 1e-5), x, name="eager-backend").agrees


def test_a_jump_in_a_few_places_does_not_loosen_the_rest() -> None:
    def right(x: Tensor) -> Tensor:
        return torch.where(x * 3 / 3 > x, 1000.0, 0.0) * (torch.arange(len(x)) < 20) + x

    def wrong(x: Tensor) -> Tensor:
        return right(x) + (torch.arange(len(x)) == 900) * 1e-3

    x = torch.randn(1000)
    assert against(right, right, x).agrees
    assert not against(right, wrong, x).agrees


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        (torch.sqrt, lambda x: x.sqrt().nan_to_num(), DifferenceKind.NOT_FINITE),
        (lambda x: 1 / x.relu(), lambda x: -(1 / x.relu()), DifferenceKind.NOT_FINITE),
        (lambda x: x.argmax(), lambda x: x.argmin(), DifferenceKind.DISCRETE),
        (lambda x: x > 0, lambda x: x > 0.5, DifferenceKind.DISCRETE),
        (lambda x: x, lambda x: x.double(), DifferenceKind.METADATA),
        (lambda x: x, lambda x: x[None], DifferenceKind.METADATA),
        (lambda x: (x, x), lambda x: x, DifferenceKind.METADATA),
        (lambda x: {"label": "a"}, lambda x: {"label": "b"}, DifferenceKind.DISCRETE),
        (lambda x: float(x.sum()), lambda x: float(x.sum()) * 1.001, DifferenceKind.VALUE),
        (lambda x: x * 1j, lambda x: x * -1j, DifferenceKind.VALUE),
        (lambda x: x, lambda x: x.add_(1) - 1, DifferenceKind.SIDE_EFFECT),
        (lambda x: x, lambda x: x.no_such_thing(), DifferenceKind.EXCEPTION),
    ],
)
def test_every_kind_of_difference(right: Function, wrong: Function, kind: DifferenceKind) -> None:
    found = against(right, wrong, torch.linspace(-1, 2, 9))
    assert not found.agrees
    assert kind in {item.kind for item in found.differences}, found.reason
    assert against(right, right, torch.linspace(-1, 2, 9)).agrees


def test_ties_are_let_pass_with_a_note() -> None:
    def last_largest(x: Tensor) -> Tensor:
        return len(x) - 1 - x.flip(0).argmax()

    found = against(torch.argmax, last_largest, torch.tensor([1.0, 3.0, 3.0, 2.0]))
    assert found.agrees
    assert any("decides a tie" in note for note in found.notes)
    assert not against(torch.argmax, lambda x: x.argmax() * 0, torch.tensor([1.0, 3.0, 3.0, 2.0])).agrees


def test_a_dropped_update_of_a_buffer_is_found() -> None:
    model = torch.nn.BatchNorm1d(3).train()

    def without_update(x: Tensor) -> Tensor:
        return torch.nn.functional.batch_norm(x, None, None, model.weight, model.bias, True)

    task = Task(model, (torch.randn(8, 3),))
    claimed = Prepared(variant("aot_eager"), lambda x: task.run(without_update, (x,), {}), None, 0.0)
    found = compare(task, claimed)
    assert {item.name for item in found.differences} == {
        "running_mean after the call",
        "running_var after the call",
        "num_batches_tracked after the call",
    }


def test_other_random_numbers_cannot_be_compared_but_what_is_not_random_is() -> None:
    def right(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + torch.rand(5), x * 2

    def other_stream(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + torch.rand(7)[2:], x * 2

    found = against(right, other_stream, torch.ones(5))
    assert found.verdict is Verdict.RANDOM and not found.agrees
    assert found.reason == "random, cannot be compared: result[0] were drawn from different random numbers than eager's"
    wrong = against(right, lambda x: (x + torch.rand(7)[2:], x * 3), torch.ones(5))
    assert wrong.verdict is Verdict.DISAGREES and wrong.differences[0].name == "result[1]"


def test_one_reference_serves_many_variants() -> None:
    calls = []

    def function(x: Tensor) -> Tensor:
        calls.append(1)
        return x.sin()

    task = Task(function, (torch.ones(3),))
    reference = make_reference(task, samples=2)
    before = len(calls)
    claimed = Prepared(variant("aot_eager"), lambda x: task.run(torch.sin, (x,), {}), None, 0.0)
    assert compare(task, claimed, reference=reference).differences == ()
    assert len(calls) == before


def test_a_number_that_the_function_counts_up_is_an_effect() -> None:
    count = 0

    def function(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return x * 2

    found = against(function, lambda x: x * 2, torch.ones(3))
    assert {(item.kind, item.name) for item in found.differences} == {(DifferenceKind.SIDE_EFFECT, "count after the call")}
    assert count == 0


def test_clones_keep_strides_overlaps_and_gradients() -> None:
    base = torch.randn(6, 8, requires_grad=True)
    for tensor in (base, base.detach().t()[1:4, ::2], base.detach()[:1].expand(4, 8), torch.zeros(0, 3), base.detach()[2, 3]):
        copy = clone_tensor(tensor)
        assert torch.equal(copy, tensor) and copy.stride() == tensor.stride() and copy.requires_grad == tensor.requires_grad
        assert copy.numel() == 0 or copy.data_ptr() != tensor.data_ptr()
    (one, other), _ = clone_inputs(((base, base), {}))
    assert one is other


def test_generated_inputs_are_like_the_example() -> None:
    example = (
        (torch.randn(3, 4).t() * 5, torch.tensor([4, 1, 1]), torch.tensor([True, False]), "text", 2.5),
        {"z": torch.ones(2, dtype=torch.complex64, requires_grad=True), "w": torch.ones(1, 3).expand(4, 3)},
    )
    made = list(generate_inputs(example, 5, seed=3))
    assert [name for name, _ in made[:4]] == ["random", "negated", "large random", "shuffled"]
    for _, inputs in made:
        assert same_signature(inputs, example)
        assert sorted(inputs[0][1].tolist()) == [1, 1, 4]
    assert torch.equal(made[1][1][0][0], -example[0][0])
    again = list(generate_inputs(example, 5, seed=3))
    assert torch.equal(made[0][1][0][0], again[0][1][0][0])


def test_generators_are_put_back() -> None:
    random.seed(1)
    before, state = random.getstate(), torch.get_rng_state()
    with seed_generators(4):
        first = (random.random(), torch.rand(1).item())
    with seed_generators(4):
        assert first == (random.random(), torch.rand(1).item())
    assert random.getstate() == before and torch.equal(torch.get_rng_state(), state)


def test_float64_reaches_what_the_function_makes_itself() -> None:
    def function(x: Tensor) -> Tensor:
        ones = torch.ones(3, dtype=torch.float32)
        return (x.float() + torch.zeros(3) + ones).half() / 3

    task = Task(function, (torch.ones(3),))
    step = float64_run(task)(torch.ones(3))
    assert step.result.dtype == torch.float64
    assert step.result.tolist() == [2 / 3] * 3
    assert torch.get_default_dtype() == torch.float32


def test_disturbing_moves_roundings_and_nothing_else() -> None:
    task = Task(
        lambda x: (x.sin() * 3, x.relu(), x.reshape(-1).flip(0), torch.ones(3), x.to(torch.int32)), (torch.randn(2, 50),)
    )
    x = task.args[0]
    moved, *same = perturbed_run(task, 1)(x).result
    assert not torch.equal(moved, x.sin() * 3)
    assert (moved - x.sin() * 3).abs().max() < 2e-6
    expected = (x.relu(), x.reshape(-1).flip(0), torch.ones(3), x.to(torch.int32))
    assert all(torch.equal(one, other) for one, other in zip(same, expected, strict=True))


def test_sums_that_need_no_rounding_are_not_disturbed() -> None:
    task = Task(lambda x: (x + 0, x * 2, x + x, x + 0.1, x * 0.1), (torch.randn(1000),))
    x = task.args[0]
    seen = perturbed_run(task, 1)(x).result
    expected = (x + 0, x * 2, x + x, x + 0.1, x * 0.1)
    assert [torch.equal(one, other) for one, other in zip(seen, expected, strict=True)] == [True, True, True, False, False]


def test_equal_zeros_may_come_in_any_order() -> None:
    found = against(torch.argmax, lambda x: len(x) - 1 - x.flip(0).argmax(), torch.zeros(5))
    assert found.agrees and any("ties" in note for note in found.notes)


def test_precision_is_the_coarsest_in_use() -> None:
    assert floating_precision(Task(torch.add, (torch.ones(1, dtype=torch.float64), torch.ones(1)))) == torch.float32
    assert floating_precision(Task(torch.add, (torch.ones(1, dtype=torch.bfloat16), 1))) == torch.bfloat16
    assert floating_precision(Task(abs, (torch.ones(1, dtype=torch.complex128),))) == torch.float64


def test_inputs_are_named_by_their_parameters() -> None:
    def function(x: Tensor, pair: Any, *rest: Any, key: Any = None) -> None: ...

    names = input_names(Task(function, ()), ((1, (2, {"a": 3}), 4), {"key": [5]}))
    assert names == ["x", "pair[0]", "pair[1]['a']", "rest[0]", "key[0]"]


def test_a_stack_as_torch_writes_it() -> None:
    text = (
        '  File "/home/me/a.py", line 3, in f\n    return g(x)\n  File "/v/site-packages/torch/nn/m.py", line 9, in g\n    y\n'
    )
    location = line_of_stack(text)
    assert location is not None and (str(location), location.code) == ("/home/me/a.py:3", "return g(x)")
    assert line_of_stack(None) is None


def test_stages_are_compiled_however_often_a_function_was_compiled_before() -> None:
    """Dynamo gives up after eight compilations of one code object, which would look like agreement."""

    def function(x: Tensor) -> Tensor:
        return x + 1

    seen = []
    for index in range(12):

        def backend(graph: Any, example: Any, index: int = index) -> Any:
            seen.append(index)
            return graph.forward

        compile_with(Task(function, ()), backend)(torch.ones(2))
    assert seen == list(range(12))


def test_records_go_to_json_and_back() -> None:
    found = verify(
        lambda x: x.sin(), torch.ones(3), variants=["eager-backend", "relu_accuracy_error_TESTING_ONLY", "cudagraphs"]
    )
    assert from_data(Agreement, json.loads(json.dumps(to_data(found)))) == found
    assert found.variant("cudagraphs").verdict is Verdict.REFUSED
    assert "eager-backend: it agrees with eager at 12 inputs" in str(found)
    assert "not probed: other shapes; dtypes other than float32; gradients" in str(found)
    with pytest.raises(KeyError, match="was not compared"):
        found.variant("nothing")


def test_mistakes_are_named() -> None:
    with pytest.raises(TargetError, match="samples must not be negative, but is -1"):
        verify(torch.sin, torch.ones(1), samples=-1)
    with pytest.raises(TargetError, match="not a variant"):
        verify(torch.sin, torch.ones(1), variants=["nothing"])
